"""Drop rows by a value in their metadata: what taggers measured, or what a corpus says of itself.

A row without the value is quarantined unless the filter says what to do with it: a misspelt name
must not let everything pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assets.settings.reading import RowFilter
from assets.sources.formats.record import Found, Lost, Record

_MISSING = object()


def apply_filters(record: Found, filters: Iterable[RowFilter]) -> Record:
    """Return the record, or the loss that the first filter it meets makes of it."""
    for wanted in filters:
        value = _find(record.metadata, wanted.path)
        rule, reason = _judge(value, wanted)
        if rule is not None:
            return Lost(rule=rule, position=record.position, reason=reason)
    return record


def _find(value: Any, path: str) -> Any:
    """Return the value at a dotted path of keys and list places, `_MISSING` if there is none."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _judge(value: Any, wanted: RowFilter) -> tuple[str | None, str]:
    """Return the rule that drops a row with this value, None if it stays, and the reason."""
    if value is _MISSING or value is None:
        if wanted.missing == "keep":
            return None, ""
        rule = "filtered" if wanted.missing == "drop" else "filter_value_missing"
        return rule, f"no value {wanted.path!r}; see read.drop"
    if wanted.equals is not None:
        # True and 1 are equal in Python, and are not the same in JSON.
        same_kind = isinstance(value, bool) == isinstance(wanted.equals, bool)
        is_met = same_kind and value == wanted.equals
        return ("filtered" if is_met else None), f"{wanted.path} is {value!r}"[:300]
    if not isinstance(value, int | float) or isinstance(value, bool):
        hint = (
            "; places in lists are numbers in the path: `.0.2`" if isinstance(value, list) else ""
        )
        return "filter_value_missing", f"{wanted.path} is {value!r}"[:200] + f", not a number{hint}"
    is_above = wanted.above is not None and value > wanted.above
    is_below = wanted.below is not None and value < wanted.below
    limit = f"above {wanted.above}" if is_above else f"below {wanted.below}"
    return ("filtered" if is_above or is_below else None), f"{wanted.path} is {value}, {limit}"
