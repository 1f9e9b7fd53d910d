"""Payment cards and US social security numbers: is a run of digits really one?"""

from __future__ import annotations

import re
from collections.abc import Iterator

Range = tuple[int, int]

_NOT_BEFORE = rb"(?<!\d)(?<!\d[-./])(?<!\d\xc2\xa0)"
_GAP = rb"(?:[ -]|\xc2\xa0)"
# ISO/IEC 7812: four groups of four (and one of three), or those of American Express and Diners.
_CARD = re.compile(
    _NOT_BEFORE
    + rb"(?:\d{4}(?P<a>"
    + _GAP
    + rb")\d{4}(?P=a)\d{4}(?P=a)\d{4}(?:(?P=a)\d{3})?|\d{4}(?P<b>"
    + _GAP
    + rb")\d{6}(?P=b)\d{4,5}|\d{12,19})(?!\d|[-.]\d)"
)
_SSN = re.compile(
    _NOT_BEFORE + rb"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?!\d|[-./]\d|[A-Za-z_])"
)
_SPOKEN_SSN = re.compile(
    _NOT_BEFORE + rb"(?!000|666|9)\d{3}[ .-]?(?!00)\d\d[ .-]?(?!0000)\d{4}(?!\d|[-./]\d|[A-Za-z_])"
)
_SSN_BEFORE = re.compile(rb"(?:\bssn\b|social[ -]security)[^\d\n]{0,24}\Z", re.IGNORECASE)
_LOOK_BACK = 48
_MIN_CARD, _MIN_SSN = 12, 9
_NO_CARD_BEFORE = (b"_", b"#", b".", b"+", b"/")
_QUERY = re.compile(rb"[?&][\w.-]{1,24}=\Z")  # a number in the query of a URL
_BOOK_BEFORE = re.compile(
    rb"(?:isbn|issn|ean|gtin|upc|doi|imei|barcode|order|invoice|ticket|tracking|\bref|\bids?|tweet"
    rb"|status|serial|timestamp)\.?(?:[ _]?(?:no|nr|num|number)\.?)?[-\s:#=\d]{0,8}\Z",
    re.IGNORECASE,
)


def find_cards(text: bytes, start: int, end: int) -> Iterator[Range]:
    """Yield the card numbers of a run of digits: known issuer, right length, Luhn's checksum."""
    if end - start < _MIN_CARD:
        return
    for match in _CARD.finditer(text, start, end):
        digits = match[0].translate(None, b" -\xc2\xa0")
        if not _is_issued(digits) or not passes_luhn(digits):
            continue
        ahead = text[max(0, match.start() - 1) : match.start()]
        if (
            ahead.isalpha()
            or ahead in _NO_CARD_BEFORE
            or (ahead == b"=" and _is_query(text, match.start()))
            or text[match.end() : match.end() + 1].isalpha()
        ):
            continue
        if not _BOOK_BEFORE.search(text[max(0, match.start() - _LOOK_BACK) : match.start()]):
            yield match.span()


def _is_query(text: bytes, start: int) -> bool:
    return _QUERY.search(text[max(0, start - _LOOK_BACK) : start]) is not None


def _is_issued(digits: bytes) -> bool:
    """Tell whether an issuer gives out numbers of these first digits in this length."""
    size, two, four = len(digits), int(digits[:2]), int(digits[:4])
    is_maestro = two in (50, 56, 57, 58, 67) or four in (6304, 6390)
    if size == 16:
        is_first = digits[:1] == b"4" or two in (35, 62, 65) or four == 6011 or is_maestro
        return is_first or 51 <= two <= 55 or 2221 <= four <= 2720 or 644 <= four // 10 <= 649
    if size == 15:
        return two in (34, 37) or four in (2131, 1800)
    if size == 14:
        return two in (36, 38) or 300 <= four // 10 <= 305
    is_visa = digits[:1] == b"4" and size in (13, 19)
    return is_visa or (is_maestro and size in (12, 13, 18, 19)) or (two == 62 and size >= 17)


def passes_luhn(digits: bytes) -> bool:
    """Tell whether ASCII digits have the checksum of ISO/IEC 7812."""
    values = [digit - 48 for digit in reversed(digits)]
    doubled = sum(2 * value - 9 * (value > 4) for value in values[1::2])
    return (sum(values[::2]) + doubled) % 10 == 0


def find_ssns(text: bytes, start: int, end: int) -> Iterator[Range]:
    """Yield the US social security numbers of a run of digits.

    Without hyphens it is one only if the words before it say so. Area 000, 666 and 900 to 999,
    group 00 and serial 0000 are not given out.
    """
    if end - start < _MIN_SSN:
        return
    before = text[max(0, start - _LOOK_BACK) : start]
    pattern = _SPOKEN_SSN if _SSN_BEFORE.search(before) else _SSN
    for match in pattern.finditer(text, start, end):
        ahead = text[max(0, match.start() - 1) : match.start()]
        if not (ahead.isalnum() or ahead in (b"_", b"$", b"#")):
            yield match.span()
