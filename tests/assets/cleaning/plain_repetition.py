"""Repetition, lines and encoded data in plain Python: what the kernels must agree with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from assets.cleaning.terminal_marks import TERMINAL_MARKS


def _later(items: Sequence[str]) -> tuple[float, int]:
    seen: set[str] = set()
    duplicates = [item for item in items if item in seen or seen.add(item)]  # type: ignore[func-returns-value]
    return len(duplicates) / len(items), sum(map(len, duplicates))


def _all(items: Sequence[str]) -> tuple[float, int]:
    counts = Counter(items)
    duplicates = [item for item in items if counts[item] > 1]
    return len(duplicates) / len(items), sum(map(len, duplicates))


def _ngrams(words: list[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + size]) for at in range(len(words) - size + 1)]


def _walked(words: list[str], size: int) -> int:
    seen: set[tuple[str, ...]] = set()
    characters = at = 0
    while at + size <= len(words):
        ngram = tuple(words[at : at + size])
        if ngram in seen:
            characters += sum(map(len, ngram))
            at += size
        else:
            seen.add(ngram)
            at += 1
    return characters


def plain_repetition(text: str, counting: str) -> list[float]:
    """Return what `measure_repetition` returns for one text."""
    words = text.split()
    every = counting == "all"
    denominator = sum(map(len, words)) if every else len(text)
    if denominator == 0:
        return [0.0] * 13
    duplicates = _all if every else _later
    values: list[float] = []
    lines = text.split("\n") if every else re.split("\n+", text)
    for items in (re.split("\n{2,}", text.strip()), lines):
        share, characters = duplicates(items)
        values += [share, characters / denominator]
    for size in (2, 3, 4):
        counts = Counter(_ngrams(words, size))
        if not counts:
            values.append(0.0)
            continue
        ngram, times = counts.most_common(1)[0]
        values.append(len(("" if every else " ").join(ngram)) * times / denominator)
    for size in range(5, 11):
        if every:
            counts = Counter(_ngrams(words, size))
            lengths = {ngram: sum(map(len, ngram)) * counts[ngram] for ngram in counts}
            repeated = sum(lengths[ngram] for ngram in counts if counts[ngram] > 1)
            values.append(repeated / max(sum(lengths.values()), 1))
        else:
            values.append(_walked(words, size) / denominator)
    return values


def plain_lines(text: str, short: int) -> list[int]:
    """Return what `count_lines` returns for one text."""
    lines = text.split("\n")
    filled = [line for line in lines if line.strip()]
    longest = sorted(map(len, lines), reverse=True)
    return [
        len(lines),
        len(filled),
        sum(line.endswith(tuple(TERMINAL_MARKS)) for line in filled),
        sum(len(line) <= short for line in filled),
        _later(filled)[1] if filled else 0,
        longest[2] if len(lines) >= 3 else 0,
    ]


_BASE64 = re.compile(r"[A-Za-z0-9+/=\-_]{64,}")
_UNIT = r"(?:[0-9a-fA-F]{2})+(?![0-9A-Za-z])"
_BETWEEN = r"(?:[,;: \t\n]{1,2}(?:0x|\\x)?|\\x)"
_HEX = re.compile(rf"(?:(?<![0-9A-Za-z])(?:0x)?|(?<=\\x))({_UNIT}(?:{_BETWEEN}{_UNIT})*)")


def plain_encoded(text: str) -> list[int]:
    """Return what `count_encoded` returns for one text."""
    base64 = sum(
        len(run)
        for run in _BASE64.findall(text)
        if re.search("[A-Z]", run) and re.search("[a-z]", run) and re.search("[0-9]", run)
    )
    hexadecimal = 0
    for run in _HEX.findall(text):
        digits = "".join(re.findall(_UNIT, run))
        kinds = re.search("[0-9]", digits) and re.search("[a-fA-F]", digits)
        if len(digits) >= 16 and kinds:
            hexadecimal += len(run)
    return [base64, hexadecimal]
