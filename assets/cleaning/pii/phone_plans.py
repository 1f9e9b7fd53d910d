"""The numbering plans of all countries: can these digits be a telephone number there?

The plans are libphonenumber's tables, each compiled once. Two questions are asked of them: whether
a number is *possible* (a number of that country may have so many digits) and whether it is *valid*
(its first digits have been given out). Both agree with `phonenumbers.is_possible_number` and
`is_valid_number`, which first parse a text and take ten times as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import phonenumbers
from phonenumbers.phonemetadata import PhoneMetadata

_KINDS = (
    "fixed_line", "mobile", "toll_free", "premium_rate", "shared_cost", "personal_number", "voip",
    "pager", "uan", "voicemail",
)  # fmt: skip
NORTH_AMERICA = 1
"""The country code of the North American plan."""
_NOT_GEOGRAPHIC = "001"
_MAX_CODE, _NARROW = 3, 4


class Plan(NamedTuple):
    """The numbering plan of one country."""

    code: int
    """What is dialled after the +."""
    lengths: frozenset[int]
    """Digits that a number may have, without what is dialled before it inside the country."""
    prefix: re.Pattern[str] | None
    """What is dialled before a number inside the country."""
    rule: str | None
    """What a prefix with a carrier's digits is replaced by."""
    general: re.Pattern[str]
    kinds: tuple[re.Pattern[str], ...]
    formats: tuple[tuple[re.Pattern[str] | None, re.Pattern[str]], ...]
    """(first digits, groups) of the ways in which a number is written; the first fitting counts."""

    @property
    def is_narrow(self) -> bool:
        """Whether all numbers have about as many digits."""
        return max(self.lengths) - min(self.lengths) <= _NARROW

    def national(self, digits: str) -> str:
        """Return a number without what is dialled before it inside the country."""
        match = self.prefix.match(digits) if self.prefix is not None else None
        if match is None or not match.end():
            return digits
        if self.rule is not None and match.re.groups and match[match.re.groups] is not None:
            short = match.expand(self.rule) + digits[match.end() :]
        else:
            short = digits[match.end() :]
        if self.general.fullmatch(digits) and not self.general.fullmatch(short):
            return digits
        return short if len(short) in self.lengths else digits

    def is_possible(self, digits: str) -> bool:
        """Tell whether a number of the country may have so many digits."""
        return len(self.national(digits)) in self.lengths

    def is_valid(self, digits: str) -> bool:
        """Tell whether the first digits of a number have been given out."""
        number = self.national(digits)
        if len(number) not in self.lengths or not self.general.fullmatch(number):
            return False
        return any(kind.fullmatch(number) for kind in self.kinds)

    def usual_sizes(self, digits: str) -> tuple[int, ...]:
        """Return the groups in which a number is written, without a prefix; none: not in any."""
        number = self.national(digits)
        for first, groups in self.formats:
            match = groups.fullmatch(number)
            if match is not None and (first is None or first.match(number)):
                return tuple(len(group) for group in match.groups())
        return ()


@cache
def plan_of(region: str) -> Plan | None:
    """Return the plan of a country by its ISO 3166 code; None if there is none."""
    tables = PhoneMetadata.metadata_for_region(region)
    return None if tables is None else _plan(tables)


def international_plans(digits: str) -> Iterator[tuple[Plan, str]]:
    """Yield the plans that digits after a + begin with the code of, and the digits after the code.

    Some codes belong to several countries; no code begins with another.
    """
    for size in range(1, min(_MAX_CODE, len(digits)) + 1):
        plans = _plans_of(int(digits[:size]))
        if plans:
            yield from ((plan, digits[size:]) for plan in plans)
            return


@cache
def _plans_of(code: int) -> tuple[Plan, ...]:
    plans = []
    for region in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.get(code, ()):
        if region == _NOT_GEOGRAPHIC:
            tables = PhoneMetadata.metadata_for_nongeo_region(code)
        else:
            tables = PhoneMetadata.metadata_for_region(region)
        if tables is not None:
            plans.append(_plan(tables))
    return tuple(plans)


def _plan(tables: Any) -> Plan:
    kinds = [getattr(tables, kind) for kind in _KINDS]
    prefix = tables.national_prefix_for_parsing
    return Plan(
        code=tables.country_code,
        lengths=frozenset(size for size in tables.general_desc.possible_length if size > 0),
        prefix=re.compile(prefix) if prefix else None,
        rule=tables.national_prefix_transform_rule,
        general=re.compile(tables.general_desc.national_number_pattern),
        kinds=tuple(
            re.compile(kind.national_number_pattern)
            for kind in kinds
            if kind is not None and kind.national_number_pattern
        ),
        formats=tuple(
            (
                re.compile(form.leading_digits_pattern[-1])
                if form.leading_digits_pattern
                else None,
                re.compile(form.pattern),
            )
            for form in tables.number_format
        ),
    )
