"""The signals of a text in plain Python: slow, and what the kernels must agree with."""

from __future__ import annotations

import itertools
import re
import unicodedata

STOP_WORDS = {"the", "be", "to", "of", "and", "that", "have", "with"}


def is_symbol_only(word: str) -> bool:
    return all(
        unicodedata.category(character)[0] in "PS"
        or unicodedata.category(character) in ("Cc", "Cf")
        for character in word
    )


def plain_words(text: str, splitter: str = "whitespace") -> list[str]:
    """Return the words of a text: runs of signs of one kind are words by the splitter `signs`."""
    if splitter == "whitespace":
        return text.split()
    words: list[str] = []
    for word in text.split():
        for key, run in itertools.groupby(word, lambda c: c if is_symbol_only(c) else ""):
            del key
            words.append("".join(run))
    return words


def plain_counts(text: str, splitter: str = "whitespace") -> dict[str, int]:
    """Return what `split_texts` counts for one text, by name."""
    words = plain_words(text, splitter)
    real = [word for word in words if not is_symbol_only(word)]
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return {
        "words": len(real),
        "word_characters": sum(len(word) for word in real),
        "symbol_words": len(words) - len(real),
        "alpha_words": sum(any(map(str.isalpha, word)) for word in words),
        "hashes": text.count("#"),
        "ellipses": text.count("...") + text.count("\u2026"),
        "stop_words": len(STOP_WORDS & set(words)),
        "lines": len(lines),
        "line_characters": sum(map(len, lines)),
        "bullet_lines": sum(line.lstrip().startswith(("-", "\u2022")) for line in lines),
        "ellipsis_lines": sum(line.rstrip().endswith(("...", "\u2026")) for line in lines),
        "longest_line": max(map(len, lines), default=0),
        "characters": len(text),
        "alphanumeric": sum(map(str.isalnum, text)),
        "special": sum(
            not (character.isalnum() or character.isspace())
            and unicodedata.category(character)[0] != "M"
            for character in text
        ),
        "digits": sum(map(str.isdigit, text)),
        "caps_words": sum(word.isupper() and len(word) > 1 for word in words),
        "caps_letters": sum(word.isupper() and len(word) == 1 for word in words),
        "marks": sum(
            unicodedata.category(character)[0] == "M" and not character.isalnum()
            for character in text
        ),
    }


def plain_has_content(text: str) -> bool:
    return any(
        not character.isspace()
        and unicodedata.category(character)[0] != "P"
        and unicodedata.category(character) not in ("Cc", "Cf")
        for character in text
    )


def plain_normalise(text: str) -> str:
    text = text.removeprefix("\ufeff")
    text = re.sub("\x1b\\[[0-?]*[ -/]*[@-~]", "", text)
    text = re.sub("\r\n|[\r\v\f\x85]", "\n", text)
    text = "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) != "Cc"
    )
    return "\n".join(line.rstrip(" \t") for line in text.split("\n"))
