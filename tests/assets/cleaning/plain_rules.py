"""The rules as their publications define them, in plain Python over one text; written apart from
the kernels and from the other plain helpers, so that a common misreading shows.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

STOP_WORDS = frozenset(["the", "be", "to", "of", "and", "that", "have", "with"])
GREATEST = {
    "num_words": 100_000, "mean_word_length": 10, "hash_ratio": 0.1, "ellipsis_ratio": 0.1,
    "bullet_line_ratio": 0.9, "ellipsis_line_ratio": 0.3, "caps_word_ratio": 0.3,
    "special_character_ratio": 0.1, "outside_range_ratio": 0.1, "short_line_ratio": 0.67,
    "duplicate_character_ratio": 0.01, "newline_word_ratio": 0.3,
    "duplicate_paragraph_ratio": 0.3, "duplicate_paragraph_character_ratio": 0.2,
    "duplicate_line_ratio": 0.3, "duplicate_line_character_ratio": 0.2,
    "top_2gram_ratio": 0.2, "top_3gram_ratio": 0.18, "top_4gram_ratio": 0.16,
    "duplicate_5gram_ratio": 0.15, "duplicate_6gram_ratio": 0.14, "duplicate_7gram_ratio": 0.13,
    "duplicate_8gram_ratio": 0.12, "duplicate_9gram_ratio": 0.11, "duplicate_10gram_ratio": 0.1,
}  # fmt: skip
LEAST = {
    "num_words": 50, "mean_word_length": 3, "alpha_word_ratio": 0.8, "num_stop_words": 2,
    "terminal_line_ratio": 0.12, "third_longest_line": 200,
}  # fmt: skip
ORDER: list[tuple[str, str, str]] = [
    ("gopher_short_doc", "num_words", "<"),
    ("gopher_long_doc", "num_words", ">"),
    ("gopher_below_avg_threshold", "mean_word_length", "<"),
    ("gopher_above_avg_threshold", "mean_word_length", ">"),
    ("gopher_too_many_hashes", "hash_ratio", ">"),
    ("gopher_too_many_ellipsis", "ellipsis_ratio", ">"),
    ("gopher_too_many_bullets", "bullet_line_ratio", ">"),
    ("gopher_too_many_end_ellipsis", "ellipsis_line_ratio", ">"),
    ("gopher_below_alpha_threshold", "alpha_word_ratio", "<"),
    ("gopher_enough_stop_words", "num_stop_words", "<"),
    ("too_many_caps_words", "caps_word_ratio", ">"),
    ("too_many_special_characters", "special_character_ratio", ">"),
    ("too_many_characters_outside", "outside_range_ratio", ">"),
    ("fineweb_line_punct_ratio", "terminal_line_ratio", "<"),
    ("fineweb_short_line_ratio", "short_line_ratio", ">"),
    ("fineweb_char_dup_ratio", "duplicate_character_ratio", ">"),
    ("fineweb_list_ratio", "newline_word_ratio", ">"),
    ("mc4_short_paragraphs", "third_longest_line", "<"),
    ("dup_para_frac", "duplicate_paragraph_ratio", ">"),
    ("dup_para_char_frac", "duplicate_paragraph_character_ratio", ">"),
    ("dup_line_frac", "duplicate_line_ratio", ">"),
    ("dup_line_char_frac", "duplicate_line_character_ratio", ">"),
    *((f"top_{n}_gram", f"top_{n}gram_ratio", ">") for n in (2, 3, 4)),
    *((f"duplicated_{n}_n_grams", f"duplicate_{n}gram_ratio", ">") for n in range(5, 11)),
]


def first_failure(values: dict[str, float], asked: Sequence[str]) -> str | None:
    """Return the first rule that some values fail, of those whose value is among `asked`."""
    for rule, value, sign in ORDER:
        if value in asked:
            found = values[value]
            if found < LEAST[value] if sign == "<" else found > GREATEST[value]:
                return rule
    return None


def rule_values(text: str, terminal: frozenset[str], *, plain_shares: bool) -> dict[str, float]:
    """Return every value of the rules about a text by its field in the signals."""
    words = text.split()
    return {
        **_gopher(text, words),
        **_shares(text, words, plain_shares),
        **_fineweb(text, words, terminal),
        **_repetition(text, words),
    }


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _is_sign(character: str) -> bool:
    category = unicodedata.category(character)
    return category.startswith(("P", "S")) or category in ("Cc", "Cf")


def _gopher(text: str, words: list[str]) -> dict[str, float]:
    lines = text.removesuffix("\n").split("\n") if text else []
    proper = [word for word in words if not all(map(_is_sign, word))]
    ends = [line.rstrip() for line in lines]
    return {
        "num_words": len(proper),
        "mean_word_length": _share(sum(map(len, proper)), len(proper)),
        "hash_ratio": _share(text.count("#"), len(words)),
        "ellipsis_ratio": _share(text.count("...") + text.count("\u2026"), len(words)),
        "bullet_line_ratio": _share(
            sum(line.lstrip()[:1] in ("-", "\u2022") for line in lines), len(lines)
        ),
        "ellipsis_line_ratio": _share(
            sum(line[-3:] == "..." or line[-1:] == "\u2026" for line in ends), len(lines)
        ),
        "alpha_word_ratio": _share(sum(any(c.isalpha() for c in w) for w in words), len(words)),
        "num_stop_words": len(STOP_WORDS.intersection(words)),
    }


def _shares(text: str, words: list[str], plain: bool) -> dict[str, float]:
    special = [c for c in text if not c.isalnum() and not c.isspace()]
    if not plain:
        special = [c for c in special if not unicodedata.category(c).startswith("M")]
    inside = "\u0000-\u024f\u1e00-\u1eff\u2000-\u206f\u20a0-\u20cf"
    outside = [c for c in re.findall(f"[^{inside}]", text) if not c.isspace()]
    return {
        "caps_word_ratio": _share(
            sum(word.isupper() and (plain or len(word) > 1) for word in words), len(words)
        ),
        "special_character_ratio": _share(len(special), len(text)),
        "outside_range_ratio": _share(len(outside), len(text)),
    }


def _fineweb(text: str, words: list[str], terminal: frozenset[str]) -> dict[str, float]:
    every = text.split("\n")
    lines = [line for line in every if line.strip()]
    again = 0
    seen = set()
    for line in lines:
        again += len(line) if line in seen else 0
        seen.add(line)
    lengths = sorted(len(line) for line in every)
    return {
        "terminal_line_ratio": _share(sum(line[-1] in terminal for line in lines), len(lines)),
        "short_line_ratio": _share(sum(len(line) <= 30 for line in lines), len(lines)),
        "duplicate_character_ratio": _share(again, len(text.replace("\n", ""))),
        "newline_word_ratio": _share(text.count("\n"), len(words)),
        "third_longest_line": lengths[-3] if len(lengths) > 2 else 0,
    }


def _repetition(text: str, words: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    pieces = {
        "paragraph": re.compile(r"\n{2,}").split(text.strip()),
        "line": re.compile(r"\n+").split(text),
    }
    for name, items in pieces.items():
        later = [item for number, item in _numbered(items) if number]
        found[f"duplicate_{name}_ratio"] = _share(len(later), len(items))
        found[f"duplicate_{name}_character_ratio"] = _share(sum(map(len, later)), len(text))
    for size in (2, 3, 4):
        runs = Counter(" ".join(words[i : i + size]) for i in range(len(words) - size + 1))
        run, times = runs.most_common(1)[0] if runs else ("", 0)
        found[f"top_{size}gram_ratio"] = _share(len(run) * times, len(text))
    for size in range(5, 11):
        found[f"duplicate_{size}gram_ratio"] = _share(_walk(words, size), len(text))
    return found


def _numbered(items: list[str]) -> list[tuple[int, str]]:
    """Return each item with the number of equal ones before it."""
    before: Counter[str] = Counter()
    numbered = []
    for item in items:
        numbered.append((before[item], item))
        before[item] += 1
    return numbered


def _walk(words: list[str], size: int) -> int:
    met = set()
    again = place = 0
    while place <= len(words) - size:
        run = " ".join(words[place : place + size])
        if run in met:
            again += len(run) - (size - 1)
            place += size
        else:
            met.add(run)
            place += 1
    return again
