"""Telephone numbers: is a run of digits really one?

How much a number must prove depends on how it is written and on the words around it:

- after a + it must be possible in the country whose code it begins with; after 00 or 011, valid;
- grouped as its country writes it, or with an area code in parentheses, it must fit the plan of one
  of the configured countries, unless the word before it makes it an order or an ISBN;
- after a word such as "tel" any grouping will do, and it need only be possible;
- digits alone, without such a word, must be valid in one of the configured countries and stand in
  prose or in a cell of a table.

An extension belongs to a number. What one candidate costs is bounded: a start is tried with a few
ends, and every test of an end is a look at lengths first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from assets.cleaning.pii.phone_forms import (
    Written,
    is_date,
    is_reached,
    is_telephone,
    is_valid,
    is_whole,
    is_written,
)
from assets.cleaning.pii.phone_plans import NORTH_AMERICA, international_plans
from assets.cleaning.pii.phone_words import Said, said_before, says_phone_after

Range = tuple[int, int]

_GROUPS = re.compile(rb"\d+")
_MAX_GROUPS, _MAX_INTERNATIONAL_GROUPS = 6, 8
_MIN_DIGITS, _MAX_DIGITS = 7, 15
_MIN_INTERNATIONAL = 8
_SPACES = (b" ", b"\xc2\xa0", b"\xe2\x80\xaf")
_COLUMN_GAP = re.compile(rb"\. |  |\) ?\(|/ ?\(")
"""What ends a number, whatever digits follow: a full stop, a column, another number's area code."""
_NO_PHONE_BEFORE = re.compile(rb"(?:[$#\xa3\xac_=/\\]|[A-Za-z]|\d[,:]|[A-Za-z\d]\.)\Z")
_NO_SIGN_BEFORE = re.compile(
    rb"(?:[\d)]|[A-Za-z](?<!tel)(?<!fax)(?<!fon)(?<!phone)(?<!mob))\+\(?\Z", re.IGNORECASE
)
_NO_PHONE_AFTER = re.compile(rb"(?:[A-Za-z_%]|[,:]\d|\.\d|-[A-Za-z]|\xc2\xb0|/[A-Za-z])")
_EXTENSION = re.compile(rb"[ ,]{0,2}(?:x|extn?\.?|extension)[ :]{0,2}\d{1,6}(?!\w)", re.IGNORECASE)
_ALONE_BEFORE = re.compile(
    rb"(?:\A|[\w\x80-\xff,.;!?)|] |(?:\A|\s)- |[|,;\t\n]|(?:\A|[\s>])\("
    rb"|(?:\A|\n)[ \t]*[*] "
    rb"|<(?:td|th|li|p|b|dd|div|strong|em|span)(?: (?![^<>]*numb)[^<>]{0,40})?>)\Z"
)
_NUMBERS_BEFORE = re.compile(rb"\d[ \t]{0,4}[|,;\t][ \t]{0,4}\Z")
_NAME_BEFORE = re.compile(rb"[A-Z][\w\x80-\xff.'-]+ [A-Z][\w\x80-\xff'-]+: \Z")
_ALONE_AFTER = re.compile(rb"(?:\Z|[\s<|,;!?]|\.(?:\s|\Z)|\)(?![.\w]))")
_NO_NUMBER_BEFORE = re.compile(rb"(?:[/#]|\d[,:.]|[\w$][$.](?<![Tt][Ee][Ll]\.))\Z")
_NO_NUMBER_AFTER = re.compile(rb"[,:.]\d|:[0-9a-fA-F]")
_LOOK_BACK = 48


@dataclass(frozen=True, slots=True)
class _Run:
    """Groups of digits with nothing between them that ends a number."""

    text: bytes
    spans: Sequence[Range]
    said: Said
    """What the words before it say of its first number, and of the others if they are its like."""
    is_other: bool
    """The very last word before it says that its first number is something else."""

    def written(self, first: int, last: int) -> Written:
        """Return the groups [first, last) as they are written."""
        spans, text = self.spans[first:last], self.text
        gaps = tuple([text[a[1] : b[0]] for a, b in itertools.pairwise(spans)])
        sizes = tuple([end - start for start, end in spans])
        digits = b"".join([text[start:end] for start, end in spans]).decode()
        opened = self.text[spans[0][0] - 1 : spans[0][0]] == b"("
        return Written(digits, sizes, gaps, is_opened=opened)

    def gap(self, border: int) -> bytes:
        """Return what joins the groups on both sides of a border; empty outside the run."""
        if border in (0, len(self.spans)):
            return b""
        return self.text[self.spans[border - 1][1] : self.spans[border][0]]

    def is_free(self, border: int, *, is_strict: bool, is_spaced: bool) -> bool:
        """Tell whether a number may begin or end at a border.

        Groups that a single space joins to a number in which spaces join the groups belong to a
        longer one, unless words say what it is.
        """
        gap = self.gap(border)
        if not gap:
            return True
        if gap in _SPACES:
            return not (is_strict and is_spaced)
        return gap[:1] == b" " or gap[-1:] in (b" ", b"(")

    def is_decimal(self, first: int, last: int) -> bool:
        """Tell whether a dot stands before a last group of one digit: a number with a fraction."""
        start, end = self.spans[last - 1]
        return end - start == 1 and last - first > 1 and self.text[start - 1 : start] == b"."


def find_phones(text: bytes, start: int, end: int, regions: tuple[str, ...]) -> Iterator[Range]:
    """Yield the telephone numbers of a run of digits.

    Args:
        text: the text's bytes.
        start: where the run's first digit stands.
        end: where it ends.
        regions: countries whose numbers need no leading +.
    """
    for run in _runs(text, start, end):
        first = 0
        while first < len(run.spans):
            last = _find_at(run, first, regions)
            if last:
                yield _range(run, first, last)
            first = last or first + 1


def _runs(text: bytes, start: int, end: int) -> Iterator[_Run]:
    spans: list[Range] = []
    for match in _GROUPS.finditer(text, start, end):
        if spans and _COLUMN_GAP.search(text, spans[-1][1], match.start()):
            yield _run(text, spans)
            spans = []
        spans.append(match.span())
    if spans:
        yield _run(text, spans)


def _run(text: bytes, spans: list[Range]) -> _Run:
    said, is_last = said_before(text, spans[0][0])
    return _Run(text, spans, said, is_other=said is Said.OTHER and is_last)


def _range(run: _Run, first: int, last: int) -> Range:
    """Return where a number stands, its sign, parenthesis and extension included."""
    text, start, end = run.text, run.spans[first][0], run.spans[last - 1][1]
    if run.written(first, last).has_opened_area:
        start -= 1
    elif text[start - 1 : start] == b"+":
        is_inside = last > first + 1 and run.gap(first + 1)[:1] == b")"
        is_code_alone = is_inside and text[start - 2 : start - 1] == b"("
        start -= 2 if is_code_alone else 1
    match = _EXTENSION.match(text, end)
    return start, match.end() if match else end


def _find_at(run: _Run, first: int, regions: tuple[str, ...]) -> int:
    """Return where the number that begins with group `first` ends; 0: there is none."""
    text, start = run.text, run.spans[first][0]
    before = text[max(0, start - _LOOK_BACK) : start]
    if before.endswith((b"+", b"+(")):
        return 0 if _NO_SIGN_BEFORE.search(before) else _international(run, first, is_signed=True)
    if text.startswith((b"00", b"011"), start) and not before.endswith((b".", b"-")):
        last = _international(run, first, is_signed=False)
        if last:
            return last
    is_other = first == 0 and run.is_other and not before.endswith(b"(")
    if is_other or (first > 0 and not _can_begin(run, first)):
        return 0
    return _national(run, first, before, regions)


def _can_begin(run: _Run, first: int) -> bool:
    """Tell whether a number may begin with a later group of a run: not inside a row of groups."""
    if run.said >= Said.REACHED or run.gap(first) not in _SPACES:
        return True
    gap = run.gap(first + 1)
    return bool(gap) and gap not in _SPACES


def _international(run: _Run, first: int, *, is_signed: bool) -> int:
    """Return where the number with a country code that begins with group `first` ends; 0: none."""
    possible = 0
    for last in range(min(len(run.spans), first + _MAX_INTERNATIONAL_GROUPS), first, -1):
        written = run.written(first, last)
        digits = written.digits if is_signed else _dialled(written.digits)
        if not _MIN_INTERNATIONAL <= len(digits) <= _MAX_DIGITS + 1 or not _ends(run, first, last):
            continue
        plans = list(international_plans(digits))
        if any(plan.is_valid(rest) for plan, rest in plans):
            return last
        if not possible and any(plan.is_possible(rest) for plan, rest in plans):
            is_grouped = plans[0][0].code == NORTH_AMERICA and written.sizes[-3:] == (3, 3, 4)
            if is_signed or is_grouped or run.said >= Said.REACHED:
                possible = last
                if plans[0][0].is_narrow:  # what is shorter and valid is a part of it
                    return last
    return possible


def _ends(run: _Run, first: int, last: int) -> bool:
    """Tell whether a number may end where the group before `last` does."""
    is_free = run.is_free(last, is_strict=False, is_spaced=False)
    after = _NO_NUMBER_AFTER.match(run.text, run.spans[last - 1][1])
    return is_free and after is None and not run.is_decimal(first, last)


def _dialled(digits: str) -> str:
    """Return a number without what is dialled for a line to another country."""
    return digits[3:] if digits.startswith("011") else digits[2:]


def _national(run: _Run, first: int, before: bytes, regions: tuple[str, ...]) -> int:
    """Return where the number without a country code that begins with group `first` ends."""
    ends = _possible_ends(run, first)
    if not ends:
        return 0
    said = run.said if first == 0 or run.said >= Said.REACHED else Said.NOTHING
    if said is Said.NOTHING and says_phone_after(run.text, run.spans[ends[0] - 1][1]):
        said = Said.PHONE
    is_told = said >= Said.REACHED
    written = {
        last: run.written(first, last)
        for last in ends
        if _has_borders(run, first, last, before, is_told=is_told)
    }
    for test in _tests(said):
        for last, number in written.items():
            if test(number, regions) and not is_date(number, is_told=is_told):
                return last
    alone = written.get(first + 1)
    if said is Said.NOTHING and alone is not None and is_whole(alone, regions):
        return first + 1 if _stands_alone(run, first) else 0
    return 0


def _tests(said: Said) -> Iterator[Callable[[Written, tuple[str, ...]], bool]]:
    yield is_written
    if said >= Said.REACHED:
        yield is_valid
        yield is_reached
    if said is Said.PHONE:
        yield is_telephone


def _possible_ends(run: _Run, first: int) -> list[int]:
    """Return where a number that begins with group `first` may end, the longest first."""
    ends = []
    digits = 0
    for last in range(first + 1, min(len(run.spans), first + _MAX_GROUPS) + 1):
        start, end = run.spans[last - 1]
        digits += end - start
        if digits > _MAX_DIGITS:
            break
        if digits >= _MIN_DIGITS and _ends(run, first, last):
            ends.append(last)
    return ends[::-1]


def _has_borders(run: _Run, first: int, last: int, before: bytes, *, is_told: bool) -> bool:
    """Tell whether what stands around some groups leaves them a number of their own."""
    start, end = run.spans[first][0], run.spans[last - 1][1]
    inside = run.text[start:end]
    is_spaced = last == first + 1 or any(space in inside for space in _SPACES)
    for border in (first, last):
        if not run.is_free(border, is_strict=not is_told, is_spaced=is_spaced):
            return False
    if _EXTENSION.match(run.text, end):
        return True
    before = before.removesuffix(b"(")
    if is_told:
        return not _NO_NUMBER_BEFORE.search(before)
    return not (_NO_PHONE_BEFORE.search(before) or _NO_PHONE_AFTER.match(run.text, end))


def _stands_alone(run: _Run, first: int) -> bool:
    """Tell whether digits stand in prose or in a cell of a table, and not in code or among ids."""
    start, end = run.spans[first]
    before = run.text[max(0, start - _LOOK_BACK) : start]
    if run.gap(first) or run.gap(first + 1) or not _ALONE_AFTER.match(run.text, end):
        return False
    is_in_call = run.text[end : end + 1] == b")" and not before.endswith(b"(")
    if is_in_call or _NUMBERS_BEFORE.search(before):
        return False
    return bool(_ALONE_BEFORE.search(before) or _NAME_BEFORE.search(before))
