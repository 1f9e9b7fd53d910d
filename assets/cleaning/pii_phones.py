"""Telephone numbers: is a run of digits really one?

A number is taken if its country's numbering plan has it (libphonenumber's tables), and if it looks
like one: with a leading +, grouped as its country writes it, with the trunk 0, or after a word such
as "tel". An extension belongs to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import phonenumbers

Range = tuple[int, int]

MAX_GROUPS = 12
"""More groups of digits in a row are a table; then only a number with a + is looked for."""
_GROUPS = re.compile(rb"\d+")
_DATE = re.compile(
    rb"(?:\d{4}[-./ ]\d\d?[-./ ]\d\d?|\d\d?[-./ ]\d\d?[-./ ](?:\d\d|\d{4})|\d{4}[-/ ]\d{4}"
    rb"|\d{4}-\d\d-\d\d \d\d)"
)
_CALLED = re.compile(
    rb"(?:\b(?:tel|telephone|telefon|phone|phones|mobile|mob|cell|cellular|fax|call|called|dial|sms"
    rb"|whatsapp|hotline|contact|ph|reach (?:me|us|him|her|them))\b|\xe2\x98\x8e"
    rb"|\xf0\x9f\x93\x9e)[^\dA-Za-z\n]{0,6}"
    rb"(?:(?:no|nr|num|number|us|me|at|on|is|now|him|her|them|line|:|=)[^\dA-Za-z\n]{0,4}){0,3}[(+]?$",
    re.IGNORECASE,
)
_NO_PHONE_BEFORE = re.compile(
    rb"(?:[$#\xa3\xac_=/\\]|[A-Za-z]|\d[,:]|[A-Za-z\d]\.|\b(?:isbn|issn|doi|ean|upc|oclc|pmid|arxiv)"
    rb"(?:-1[03])?[\s:#]{0,3})$",
    re.IGNORECASE,
)
_NO_PHONE_AFTER = re.compile(rb"(?:[A-Za-z_%]|[,:]\d|\.\d|-[A-Za-z]|\xc2\xb0|/[A-Za-z])")
_CALL_HINTS = re.compile(
    rb"tel|fon|phon|mob|cell|fax|call|dial|sms|whatsapp|hotline|contact|ph|reach|\xe2\x98|\xf0\x9f",
    re.IGNORECASE,
)
_EXTENSION = re.compile(rb" ?(?:x|ext\.?|extension) ?\d{1,6}(?!\w)", re.IGNORECASE)
# The plan of North America: neither area nor exchange begins with 0 or 1 or is a service (N11).
_NORTH_AMERICAN = re.compile(r"1?[2-9](?!11)\d\d[2-9](?!11)\d{6}")
_LOOK_BACK = 40
_MIN_LENGTH, _MAX_LENGTH = 7, 15
_SPACES = (b" ", b"\xc2\xa0", b"\xe2\x80\xaf")


class _Groups(NamedTuple):
    """The groups of digits of a candidate."""

    text: bytes
    spans: Sequence[Range]

    def digits(self, first: int, last: int) -> str:
        """Return the digits of the groups [first, last)."""
        return b"".join(self.text[a:b] for a, b in self.spans[first:last]).decode()

    def sizes(self, first: int, last: int) -> tuple[int, ...]:
        """Return the number of digits of each group."""
        return tuple(b - a for a, b in self.spans[first:last])

    def is_decimal(self, first: int, last: int) -> bool:
        """Tell whether a dot stands before a last group of one digit: a number with a fraction."""
        start, end = self.spans[last - 1]
        return end - start == 1 and last - first > 1 and self.text[start - 1 : start] == b"."

    def is_free(self, border: int) -> bool:
        """Tell whether nothing but a space joins the groups on both sides of a border."""
        if border in (0, len(self.spans)):
            return True
        gap = self.text[self.spans[border - 1][1] : self.spans[border][0]]
        return gap in _SPACES or gap[:1] == b" " or gap[-1:] == b" "


def find_phones(text: bytes, start: int, end: int, regions: tuple[str, ...]) -> Iterator[Range]:
    """Yield the telephone numbers of a run of digits.

    Args:
        text: the text's bytes.
        start: where the run's first digit stands.
        end: where it ends.
        regions: countries whose numbers need no leading +.
    """
    at = start
    while at < end:  # a full stop ends a number, whatever digits the next sentence begins with
        stop = text.find(b". ", at, end)
        last = end if stop < 0 else stop
        yield from _find_in_run(text, at, last, regions)
        at = end if stop < 0 else _GROUPS.search(text, stop).start()  # type: ignore[union-attr]


def _find_in_run(text: bytes, start: int, end: int, regions: tuple[str, ...]) -> Iterator[Range]:
    if _DATE.fullmatch(text, start, end):
        return
    groups = _Groups(text, [match.span() for match in _GROUPS.finditer(text, start, end)])
    before = text[max(0, start - _LOOK_BACK) : start]
    has_prefix = text[start : start + 2] == b"00" and not before.endswith((b".", b"-"))
    if before.endswith((b"+", b"+(")) or has_prefix:
        size = _international(groups, has_sign=not has_prefix)
        if size:
            first = groups.spans[0][0]
            first -= text[first - 1 : first] == b"+"
            yield first, _extension_end(text, groups.spans[size - 1][1])
            return
    if len(groups.spans) <= MAX_GROUPS and not before.endswith(b"+"):
        yield from _national_numbers(groups, before, regions)


def _extension_end(text: bytes, end: int) -> int:
    """Return where the extension of a number that ends at `end` ends; `end` if it has none."""
    match = _EXTENSION.match(text, end)
    return match.end() if match else end


def _international(groups: _Groups, *, has_sign: bool) -> int:
    """Return how many groups make a number with a country code; 0 if none do.

    After a + it is enough that a number of that country could have so many digits.
    """
    sizes = range(min(len(groups.spans), 8), 0, -1)
    for is_number in (_is_valid, _is_possible) if has_sign else (_is_valid,):
        for size in sizes:
            digits = groups.digits(0, size).removeprefix("00")
            if groups.is_decimal(0, size) or not 8 <= len(digits) <= _MAX_LENGTH:
                continue
            if is_number("+" + digits, None):
                return size
    return 0


def _national_numbers(groups: _Groups, before: bytes, regions: tuple[str, ...]) -> Iterator[Range]:
    count, first = len(groups.spans), 0
    is_called = _is_called(before)
    if count == 1 and not is_called and not _is_whole(groups.digits(0, 1)):
        return
    while first < count:
        size = _national(groups, first, regions, is_called=is_called and first == 0)
        if size and not _is_other_number(groups, first, size):
            start = groups.spans[first][0]
            last = groups.spans[size - 1][1]
            if groups.text[start - 1 : start] == b"(" and b")" in groups.text[start:last]:
                start -= 1
            yield start, _extension_end(groups.text, last)
        first = size or first + 1


def _is_called(before: bytes) -> bool:
    """Tell whether the words before a number say that it can be called."""
    return bool(_CALL_HINTS.search(before, len(before) - 24) and _CALLED.search(before))


def _is_other_number(groups: _Groups, first: int, last: int) -> bool:
    """Tell whether what stands around some groups makes them something else."""
    start, end = groups.spans[first][0], groups.spans[last - 1][1]
    before = groups.text[max(0, start - _LOOK_BACK) : start].removesuffix(b"(")
    if _is_called(before):
        return False
    if _EXTENSION.match(groups.text, end):
        return False
    return bool(_NO_PHONE_BEFORE.search(before) or _NO_PHONE_AFTER.match(groups.text, end))


def _national(groups: _Groups, first: int, regions: tuple[str, ...], *, is_called: bool) -> int:
    """Return where the national number that begins with group `first` ends; 0: there is none."""
    count = len(groups.spans)
    if not groups.is_free(first):
        return 0
    is_whole = _is_whole(groups.digits(first, first + 1))
    for last in range(first + 1 if is_whole else min(count, first + 5), first, -1):
        if not groups.is_free(last):
            continue
        sizes = groups.sizes(first, last)
        digits = groups.digits(first, last)
        is_single = len(sizes) == 1 and not (is_called or is_whole)
        if is_single or not _MIN_LENGTH <= len(digits) <= 12:
            continue
        if any(_fits(digits, sizes, region, is_called=is_called) for region in regions):
            return last
    return 0


def _fits(digits: str, sizes: tuple[int, ...], region: str, *, is_called: bool) -> bool:
    """Tell whether digits are a number of a region, written as one."""
    if is_called and _is_valid(digits, region):
        return True
    if _has_north_american_plan(region):
        return sizes in ((3, 3, 4), (1, 3, 3, 4)) and _NORTH_AMERICAN.fullmatch(digits) is not None
    if _has_trunk(digits, sizes):
        return _is_valid(digits, region)
    return digits[0] != "0" and len(sizes) >= 3 and sizes == _usual_sizes(digits, region)


def _is_whole(digits: str) -> bool:
    """Tell whether one group of digits can be a whole number with its trunk 0."""
    return digits[0] == "0" and 10 <= len(digits) <= 11


def _has_trunk(digits: str, sizes: tuple[int, ...]) -> bool:
    """Tell whether a number begins with the trunk 0 that most countries dial before an area."""
    return digits[0] == "0" and sizes[0] > 1 and 9 <= len(digits) <= 12


@cache
def _has_north_american_plan(region: str) -> bool:
    code: int = phonenumbers.country_code_for_region(region)
    return code == 1


def _is_valid(digits: str, region: str | None) -> bool:
    try:
        number = phonenumbers.parse(digits, region)
    except phonenumbers.NumberParseException:
        return False
    return bool(phonenumbers.is_valid_number(number))


def _is_possible(digits: str, region: str | None) -> bool:
    try:
        number = phonenumbers.parse(digits, region)
    except phonenumbers.NumberParseException:
        return False
    return bool(phonenumbers.is_possible_number(number))


def _usual_sizes(digits: str, region: str) -> tuple[int, ...]:
    """Return the groups in which a region writes a number; none if it is no number there."""
    try:
        number = phonenumbers.parse(digits, region)
    except phonenumbers.NumberParseException:
        return ()
    if not phonenumbers.is_valid_number(number):
        return ()
    written = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    return tuple(len(group) for group in re.findall(r"\d+", written))
