"""Which elements a start tag opens and closes, by the HTML standard's rules of tree construction.

The rules are reduced to what `element_stack` knows: names. Where a rule would need more, the
element stays open.
"""

# ruff: noqa: PLR1714, SIM109 - numba compiles comparisons faster than `in`
from __future__ import annotations

from typing import Any

from assets.cleaning.pages.close_elements import break_out, close_formatting, close_paragraph
from assets.cleaning.pages.element_stack import (
    ACTIVE,
    CODE,
    DIGEST,
    FLAGS,
    HAS_FORM,
    IN_MATH,
    IN_SVG,
    IS_INTEGRATION,
    MARKER,
    NODES,
    NOT_HTML,
    OPEN,
    OPTIONS,
    SLOT,
    find,
    is_foreign,
    pop_to,
    push,
    push_active,
    remove_active,
    reopen_formatting,
)
from assets.cleaning.pages.tag_names import (
    BLOCK,
    BREAKOUT,
    CELL,
    FOREIGN,
    FORMATTING,
    HEADING,
    IGNORED,
    MATH_INTEGRATION,
    NO_REOPEN,
    RAW,
    SCOPE,
    SPECIAL,
    SVG_INTEGRATION,
    VOID,
    tag_code,
)
from assets.kernel import kernel

_OPTIONS_PER_NODE = 256
"""The n-th option of a menu is charged n // 256 nodes."""
_MAX_SAME = 3
"""Of formatting elements that are equal down to the attributes, three are opened again."""
_A = tag_code("a")
_NOBR = tag_code("nobr")
_P = tag_code("p")
_LI = tag_code("li")
_DD = tag_code("dd")
_DT = tag_code("dt")
_TD = tag_code("td")
_TH = tag_code("th")
_CAPTION = tag_code("caption")
_TABLE = tag_code("table")
_TEMPLATE = tag_code("template")
_SELECT = tag_code("select")
_OPTION = tag_code("option")
_OPTGROUP = tag_code("optgroup")
_BUTTON = tag_code("button")
_FORM = tag_code("form")
_SVG = tag_code("svg")
_INPUT = tag_code("input")
_ADDRESS = tag_code("address")
_DIV = tag_code("div")
_APPLET = tag_code("applet")
_MARQUEE = tag_code("marquee")
_OBJECT = tag_code("object")


@kernel
def open_tag(
    code: int, flags: int, digest: int, self_closing: bool, stack: Any, active: Any, state: Any
) -> None:
    """Follow a start tag."""
    if is_foreign(stack, state):
        if not flags & BREAKOUT:
            _open_foreign(code, flags, self_closing, stack, state)
            return
        break_out(stack, active, state)
    if flags & CELL:
        _open_cell(code, flags, stack, active, state)
    elif flags & BLOCK:
        _open_block(code, flags, stack, active, state)
    elif flags & FORMATTING:
        _open_formatting(code, flags, digest, stack, active, state)
    elif not flags & (IGNORED | RAW):
        _open_inline(code, flags, self_closing, stack, active, state)


@kernel
def _open_foreign(code: int, flags: int, self_closing: bool, stack: Any, state: Any) -> None:
    if self_closing:
        return
    family = stack[state[OPEN] - 1, FLAGS] & (IN_SVG | IN_MATH)
    is_integration = flags & (SVG_INTEGRATION if family == IN_SVG else MATH_INTEGRATION)
    push(code, SCOPE | IS_INTEGRATION if is_integration else family, -1, stack, state)


@kernel
def _open_cell(code: int, flags: int, stack: Any, active: Any, state: Any) -> None:
    """Close everything down to the table; outside one the tag means nothing."""
    index = state[OPEN] - 1
    while index >= 0 and stack[index, CODE] != _TABLE and stack[index, CODE] != _TEMPLATE:
        index -= 1
    if index < 0:
        return
    pop_to(index + 1, stack, active, state)
    slot = -1
    if code == _TD or code == _TH or code == _CAPTION:
        slot = push_active(MARKER, 0, active, state)
    push(code, flags, slot, stack, state)


@kernel
def _open_block(code: int, flags: int, stack: Any, active: Any, state: Any) -> None:
    if code == _LI:
        _close_item(_LI, _LI, stack, active, state)
    elif code == _DD or code == _DT:
        _close_item(_DD, _DT, stack, active, state)
    elif code == _FORM and find(_TEMPLATE, 0, stack, state) < 0:
        if state[HAS_FORM]:  # one inside another means nothing
            return
        state[HAS_FORM] = 1
    close_paragraph(stack, active, state)
    if flags & HEADING and state[OPEN] and stack[state[OPEN] - 1, FLAGS] & HEADING:
        pop_to(state[OPEN] - 1, stack, active, state)
    if not flags & (VOID | RAW):
        push(code, flags, -1, stack, state)


@kernel
def _close_item(first: int, second: int, stack: Any, active: Any, state: Any) -> None:
    """Close the list item that a new one ends."""
    for index in range(state[OPEN] - 1, -1, -1):
        code = stack[index, CODE]
        if code == first or code == second:
            pop_to(index, stack, active, state)
            return
        is_passed = code == _ADDRESS or code == _DIV or code == _P
        if stack[index, FLAGS] & (SPECIAL | SCOPE) and not is_passed:
            return


@kernel
def _open_formatting(
    code: int, flags: int, digest: int, stack: Any, active: Any, state: Any
) -> None:
    if code == _A or code == _NOBR:
        close_formatting(code, stack, active, state)
    reopen_formatting(stack, active, state)
    same = 0
    earliest = -1
    for slot in range(state[ACTIVE] - 1, -1, -1):
        if active[slot, CODE] == MARKER:
            break
        if active[slot, CODE] == code and active[slot, DIGEST] == digest:
            same += 1
            earliest = slot
    if same >= _MAX_SAME:
        for index in range(state[OPEN]):
            if stack[index, SLOT] == earliest:
                stack[index, SLOT] = -1
        remove_active(earliest, active, state)
    push(code, flags, push_active(code, digest, active, state), stack, state)


@kernel
def _open_inline(
    code: int, flags: int, self_closing: bool, stack: Any, active: Any, state: Any
) -> None:
    if (
        code == _TABLE
        or code == _SELECT
        or code == _BUTTON
        or code == _INPUT
        or code == _OPTION
        or code == _OPTGROUP
    ):
        is_end = _end_by_start(code, stack, active, state)
        if is_end:
            return
    if not flags & NO_REOPEN:
        reopen_formatting(stack, active, state)
    if flags & VOID or (flags & FOREIGN and self_closing):
        return
    slot = -1
    if code == _APPLET or code == _MARQUEE or code == _OBJECT or code == _TEMPLATE:
        slot = push_active(MARKER, 0, active, state)
    if flags & FOREIGN:
        flags |= IN_SVG if code == _SVG else IN_MATH
    push(code, flags, slot, stack, state)


@kernel
def _end_by_start(code: int, stack: Any, active: Any, state: Any) -> bool:
    """Close what a start tag of this name ends; return whether it is an end tag and no more."""
    if code == _TABLE:
        _end_table(stack, active, state)
        return False
    if code == _OPTION or code == _OPTGROUP:
        _count_option(stack, active, state)
        return False
    index = find(_SELECT if code == _INPUT else code, SCOPE, stack, state)
    if index >= 0:
        pop_to(index, stack, active, state)
    if code == _SELECT:
        state[OPTIONS] = 0
    return code == _SELECT and index >= 0


@kernel
def _end_table(stack: Any, active: Any, state: Any) -> None:
    """Close the table that another one ends, which starts outside its cells."""
    for index in range(state[OPEN] - 1, -1, -1):
        if stack[index, FLAGS] & NOT_HTML:
            continue
        if stack[index, CODE] == _TABLE:
            pop_to(index, stack, active, state)
            return
        if (
            stack[index, CODE] == _TD
            or stack[index, CODE] == _TH
            or stack[index, CODE] == _CAPTION
            or stack[index, CODE] == _TEMPLATE
        ):
            return


@kernel
def _count_option(stack: Any, active: Any, state: Any) -> None:
    """Charge one more option of a menu; it ends the one before."""
    if state[OPEN] and stack[state[OPEN] - 1, CODE] == _OPTION:
        pop_to(state[OPEN] - 1, stack, active, state)
    state[OPTIONS] += 1
    state[NODES] += state[OPTIONS] // _OPTIONS_PER_NODE
