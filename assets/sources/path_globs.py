"""Globs over names that no file system lists: the objects of a bucket, the links of a page.

They mean what they mean for files: `*`, `?` and `[...]` stay within one part of a path and do not
match a leading dot; `**` as a whole part matches any number of folders, none included, but no
hidden one. `{a,b}` and `{000..127}` are written out first, because a web server has many names and
may list none.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Sequence

from assets.errors import LandingError

WILDCARDS = frozenset("*?[")
MOST_EXPANDED = 1_000_000
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d{1,12})\.\.(\d{1,12})")


def has_wildcard(part: str) -> bool:
    """Return whether a part of a path is more than a plain name."""
    return bool(WILDCARDS & set(part))


def split_wildcards(parts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a path's parts into the wildcard-free folder and the rest, which is never empty."""
    count = 0
    while count < len(parts) - 1 and not has_wildcard(parts[count]):
        count += 1
    return list(parts[:count]), list(parts[count:])


def matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether a path matches a pattern, both as lists of parts.

    Takes time with the product of their lengths: each (part, part) pair is looked at once.
    """

    @functools.cache
    def match(at: int, place: int) -> bool:
        if place == len(pattern):
            return at == len(path)
        if pattern[place] == "**":
            if match(at, place + 1):
                return True
            return at < len(path) and not path[at].startswith(".") and match(at + 1, place)
        return at < len(path) and match_part(path[at], pattern[place]) and match(at + 1, place + 1)

    return match(0, 0)


def match_part(name: str, pattern: str) -> bool:
    """Return whether one part of a path matches one part of a pattern."""
    if name.startswith(".") and not pattern.startswith("."):
        return False
    return fnmatch.fnmatchcase(name, pattern)


def expand_braces(pattern: str) -> list[str]:
    """Return the patterns that braces stand for, in the order they are written.

    Raises:
        LandingError: they stand for more than `MOST_EXPANDED`, or a range runs backwards.
    """
    found = [pattern]
    while any(_BRACES.search(item) for item in found):
        found = [expanded for item in found for expanded in _expand_first(item, pattern)]
        if len(found) > MOST_EXPANDED:
            raise LandingError(f"{pattern}: stands for more than {MOST_EXPANDED:,d} addresses")
    return found


def _expand_first(item: str, pattern: str) -> list[str]:
    match = _BRACES.search(item)
    if match is None:
        return [item]
    numbers = _RANGE.fullmatch(match[1])
    if numbers is None:
        choices = match[1].split(",")
    else:
        first, last = int(numbers[1]), int(numbers[2])
        if last < first or last - first >= MOST_EXPANDED:
            raise LandingError(
                f"{pattern}: {{{match[1]}}} must run upwards, over {MOST_EXPANDED:,d} at most"
            )
        choices = [f"{number:0{len(numbers[1])}d}" for number in range(first, last + 1)]
    return [item[: match.start()] + choice + item[match.end() :] for choice in choices]
