"""In which forms countries write their telephone numbers.

A form is the sizes of the groups of digits, what stands between them, and whether the area code is
in parentheses. Numbers here have no country code.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from assets.cleaning.pii.phone_plans import NORTH_AMERICA, Plan, plan_of

# The plan of North America: neither area nor exchange begins with 0 or 1 or is a service (N11).
_NORTH_AMERICAN = re.compile(r"1?[2-9](?!11)\d\d[2-9](?!11)\d{6}")
_AREA = re.compile(r"1?[2-9]\d{9}")
_YEARS = re.compile(r"(?:1[5-9]|20)\d\d(?:1[5-9]|20)\d\d")
_DAYS = (
    re.compile(r"(?:1[5-9]|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])?"),
    re.compile(r"(?:0?[1-9]|[12]\d|3[01])(?:0?[1-9]|[12]\d|3[01])(?:1[5-9]|20)\d\d"),
)
_DATE_SIZES = frozenset(
    [
        (4, 2, 2),
        (4, 1, 2),
        (4, 2, 1),
        (4, 1, 1),
        (4, 2, 2, 2),
        (2, 2, 4),
        (1, 2, 4),
        (2, 1, 4),
        (8,),
    ]
)
_YEAR_SIZES = frozenset([(4, 4), (8,)])
_TEN = ((3, 3, 4), (1, 3, 3, 4))
_LEADS = ("0", "1", "7", "8")
_WHOLE = re.compile(r"0\d{8,10}|[2-9]\d{9}|3\d{10}")
_SEQUENCES = ("0123456789", "2345678901", "9876543210")
_PLUS_FOUR = (5, 4)
_ITALY, _ITALIAN_MOBILE, _SPANISH_LANDLINE = (
    39,
    ((3, 7), (3, 3, 4), (3, 4, 3), (3, 4, 4)),
    (2, 3, 2, 2),
)
_ZERO_SIZES = range(9, 13)
_SPACES = (b" ", "\u00a0".encode(), "\u202f".encode())


class Written(NamedTuple):
    """Groups of digits without a country code."""

    digits: str
    sizes: tuple[int, ...]
    gaps: tuple[bytes, ...]
    """What stands between the groups."""
    is_opened: bool
    """A parenthesis stands before the first group."""

    @property
    def has_opened_area(self) -> bool:
        """Whether the first group is alone in parentheses."""
        return self.is_opened and bool(self.gaps) and self.gaps[0].startswith(b")")

    @property
    def has_area(self) -> bool:
        """Whether the first group, behind a digit to dial first, is alone in parentheses."""
        is_led = self.sizes[0] == 1 and self.digits[0] in _LEADS and len(self.gaps) > 1
        is_behind = is_led and self.gaps[0].endswith(b"(") and self.gaps[1].startswith(b")")
        return is_behind or self.has_opened_area

    @property
    def is_balanced(self) -> bool:
        """Whether parentheses stand around an area code, or nowhere."""
        rest = self.gaps
        if not any(b"(" in gap or b")" in gap for gap in rest):
            return True
        if self.has_area:
            rest = self.gaps[1 if self.has_opened_area else 2 :]
        return not any(b"(" in gap or b")" in gap for gap in rest)


def is_written(number: Written, regions: tuple[str, ...]) -> bool:
    """Tell whether a number is written as one of the regions writes its numbers."""
    if not _is_phone_like(number):
        return False
    if number.has_area and any(_fits_area(number, plan) for plan in _plans(regions)):
        return True
    return len(number.sizes) > 1 and any(_fits(number, plan) for plan in _plans(regions))


def is_valid(number: Written, regions: tuple[str, ...]) -> bool:
    """Tell whether digits are a valid number of one of the regions, in whatever groups."""
    is_long = len(number.digits) > 8 or number.digits[0] == "0"
    return (
        is_long
        and _is_phone_like(number)
        and any(plan.is_valid(number.digits) for plan in _plans(regions))
    )


def is_reached(number: Written, regions: tuple[str, ...]) -> bool:
    """Tell whether digits that somebody is reached by are possible in one of the regions."""
    return _is_phone_like(number) and any(_could_be(number, plan) for plan in _plans(regions))


def _could_be(number: Written, plan: Plan) -> bool:
    if plan.code == NORTH_AMERICA:
        is_grouped = number.sizes in _TEN and number.digits[0] != "0"
        return is_grouped or _NORTH_AMERICAN.fullmatch(number.digits) is not None
    is_grouped = len(number.sizes) > 1 and len(number.digits) >= 8
    return is_grouped and plan.is_possible(number.digits)


def is_telephone(number: Written, regions: tuple[str, ...]) -> bool:
    """Tell whether digits after a word such as "tel" could be a number of any country."""
    del regions
    return _is_phone_like(number)


def is_whole(number: Written, regions: tuple[str, ...]) -> bool:
    """Tell whether one group of digits, and no word with it, is a number of one of the regions.

    Only with the trunk 0, as ten digits of North America or as an Italian mobile number, and valid:
    everything else that is as long is more often an id.
    """
    digits = number.digits
    if digits in _SEQUENCES or not _WHOLE.fullmatch(digits) or _is_power_of_two(int(digits)):
        return False
    begin = digits[0]
    return any(
        plan.is_valid(digits)
        for plan in _plans(regions)
        if begin == "0" or plan.code == NORTH_AMERICA or (plan.code == _ITALY and begin == "3")
    )


def _is_power_of_two(value: int) -> bool:
    """Tell whether a number is a power of two, or next below one: a limit of computers."""
    return value & (value - 1) == 0 or value & (value + 1) == 0


def is_date(number: Written, *, is_told: bool) -> bool:
    """Tell whether groups of digits are a date, or the years from and to."""
    if number.sizes in _YEAR_SIZES and _YEARS.fullmatch(number.digits):
        return True
    if is_told and number.sizes == (8,):
        return False
    if not is_told and len(number.gaps) > 1 and set(number.gaps) == {b"/"}:
        return True
    return number.sizes in _DATE_SIZES and any(day.fullmatch(number.digits) for day in _DAYS)


def _fits(number: Written, plan: Plan) -> bool:
    digits, sizes = number.digits, number.sizes
    if plan.code == NORTH_AMERICA:
        return _is_north_american(number)
    if digits[0] == "0":
        has_trunk = sizes[0] > 1 and len(digits) in _ZERO_SIZES and digits[1] != "0"
        return has_trunk and sizes != _PLUS_FOUR and plan.is_valid(digits)
    return _is_bare_form(number, plan) and plan.is_valid(digits)


def _is_bare_form(number: Written, plan: Plan) -> bool:
    """Tell whether groups without a trunk 0 are those of a country that writes none."""
    sizes = number.sizes
    if plan.code == _ITALY:
        return sizes in _ITALIAN_MOBILE
    if not plan.is_narrow:
        return False
    if plan.prefix is not None and plan.prefix.match("0") and b"-" not in number.gaps:
        return False
    is_usual = sizes == plan.usual_sizes(number.digits)
    return is_usual or (sizes == _SPANISH_LANDLINE and plan.prefix is None)


def _fits_area(number: Written, plan: Plan) -> bool:
    """Tell whether a number with its area code in parentheses is possible in a country."""
    digits, sizes = number.digits, number.sizes
    if plan.code == NORTH_AMERICA:
        area = digits[1:] if sizes[0] == 1 else digits
        return len(area) == 10 and area[:3] != "000" and sizes[0] in (1, 3)
    if digits[0] == "0":
        return 2 <= sizes[0] <= 6 and len(digits) in _ZERO_SIZES and plan.is_possible(digits)
    return len(digits) > 8 and plan.is_valid(digits)


def _is_north_american(number: Written) -> bool:
    """Tell whether ten digits are grouped as in North America, by hyphens, dots or spaces."""
    if number.sizes not in _TEN:
        return False
    gaps = number.gaps[-2:]
    if gaps[0] == gaps[1] and gaps[0] in _SPACES:
        return _NORTH_AMERICAN.fullmatch(number.digits) is not None
    is_same = gaps[0] == gaps[1] or (gaps[1] == b"-" and gaps[0] != b".")
    return is_same and _AREA.fullmatch(number.digits) is not None


def _is_phone_like(number: Written) -> bool:
    """Tell whether groups are no decimal number, no IPv4 address and not one digit all over."""
    gaps = number.gaps
    if b"." in gaps and not number.has_area:
        is_decimal = len(gaps) == 1 and number.sizes != (4, 4)
        is_address = gaps == (b".",) * 3 and number.digits[0] != "0" and max(number.sizes) < 5
        if is_decimal or is_address or b" " in gaps:
            return False
    return number.is_balanced and len(set(number.digits)) > 1


@cache
def _plans(regions: tuple[str, ...]) -> tuple[Plan, ...]:
    plans = [plan_of(region) for region in regions]
    return tuple(plan for plan in plans if plan is not None)
