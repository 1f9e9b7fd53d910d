"""Which elements an end tag closes, by the HTML standard's rules of tree construction.

The rules are reduced to what `element_stack` knows: names. Where a rule would need more, the
element stays open.
"""

# ruff: noqa: PLR1714, SIM109 - numba compiles comparisons faster than `in`
from __future__ import annotations

from typing import Any

from assets.cleaning.pages.element_stack import (
    ACTIVE,
    CODE,
    FLAGS,
    HAS_FORM,
    IS_OPEN,
    MARKER,
    NODES,
    NOT_HTML,
    OPEN,
    SLOT,
    find,
    is_foreign,
    pop_to,
    push,
    remove_active,
    remove_open,
    reopen_formatting,
)
from assets.cleaning.pages.tag_names import (
    BLOCK,
    CELL,
    FORMATTING,
    HEADING,
    IGNORED,
    SCOPE,
    SPECIAL,
    VOID,
    tag_code,
)
from assets.kernel import kernel

_MAX_BLOCKS_PASSED = 7
"""A formatting end tag is given up after eight rounds, each of which passes one block."""
_P = tag_code("p")
_LI = tag_code("li")
_DD = tag_code("dd")
_DT = tag_code("dt")
_TD = tag_code("td")
_TH = tag_code("th")
_TR = tag_code("tr")
_TBODY = tag_code("tbody")
_CAPTION = tag_code("caption")
_TABLE = tag_code("table")
_TEMPLATE = tag_code("template")
_OPTION = tag_code("option")
_OPTGROUP = tag_code("optgroup")
_BUTTON = tag_code("button")
_FORM = tag_code("form")
_BR = tag_code("br")
_RP = tag_code("rp")
_RT = tag_code("rt")
_UL = tag_code("ul")
_OL = tag_code("ol")


@kernel
def break_out(stack: Any, active: Any, state: Any) -> None:
    """Close SVG and MathML down to the HTML around."""
    while is_foreign(stack, state):
        pop_to(state[OPEN] - 1, stack, active, state)


@kernel
def close_paragraph(stack: Any, active: Any, state: Any) -> bool:
    """Close an open paragraph in button scope; return whether there was one."""
    for index in range(state[OPEN] - 1, -1, -1):
        if stack[index, CODE] == _P:
            pop_to(index, stack, active, state)
            return True
        if stack[index, FLAGS] & SCOPE or stack[index, CODE] == _BUTTON:
            return False
    return False


@kernel
def close_tag(code: int, flags: int, stack: Any, active: Any, state: Any) -> None:
    """Follow an end tag; one that has no open element it may close means nothing."""
    if code == _P or code == _BR:
        break_out(stack, active, state)
    elif _close_foreign(code, stack, active, state):
        return
    if flags & CELL:
        _close_cell(code, stack, active, state)
    elif flags & FORMATTING:
        close_formatting(code, stack, active, state)
    elif flags & HEADING:
        _close_heading(stack, active, state)
    elif code == _P:
        # A paragraph is made to be closed where there is none.
        state[NODES] += not close_paragraph(stack, active, state)
    elif flags & (IGNORED | VOID):
        _close_void(code, stack, active, state)
    else:
        _close_other(code, flags, stack, active, state)


@kernel
def _close_void(code: int, stack: Any, active: Any, state: Any) -> None:
    """Take the end tag of a line break for a line break; others mean nothing."""
    if code == _BR:
        reopen_formatting(stack, active, state)
        state[NODES] += 1


@kernel
def _close_foreign(code: int, stack: Any, active: Any, state: Any) -> bool:
    """Close an element of SVG or MathML, if the tag names one around; return whether it did."""
    index = state[OPEN] - 1
    while index >= 0 and stack[index, FLAGS] & NOT_HTML:
        if stack[index, CODE] == code:
            pop_to(index, stack, active, state)
            return True
        index -= 1
    return False


@kernel
def _close_cell(code: int, stack: Any, active: Any, state: Any) -> None:
    """Empty the innermost part of a table, which stays open as the part that is left around it."""
    index = state[OPEN] - 1
    while index >= 0 and not stack[index, FLAGS] & CELL:
        if stack[index, CODE] == _TABLE or stack[index, CODE] == _TEMPLATE:
            return
        index -= 1
    if index < 0:
        return
    inside = stack[index, CODE]
    in_row = inside == _TD or inside == _TH or inside == _TR
    left = 0
    if code == inside and (code == _TD or code == _TH):
        left = _TR
    elif (code == _TR and in_row) or (code == _CAPTION and inside == _CAPTION):
        left = _TBODY
    if left:
        flags = stack[index, FLAGS]
        pop_to(index, stack, active, state)
        push(left, flags, -1, stack, state)


@kernel
def close_formatting(code: int, stack: Any, active: Any, state: Any) -> None:
    """Close a formatting element, in the middle of the stack if blocks were opened in it."""
    slot = _find_active(code, active, state)
    if slot < 0:
        return
    if not active[slot, IS_OPEN]:
        remove_active(slot, active, state)
        return
    index = state[OPEN] - 1
    blocks = 0
    while index >= 0 and stack[index, SLOT] != slot:
        if stack[index, FLAGS] & SCOPE:
            return
        blocks += (stack[index, FLAGS] & SPECIAL) != 0
        index -= 1
    if index < 0:
        return
    # Each block's content is wrapped in a copy, and so are up to three elements between.
    state[NODES] += min(blocks, _MAX_BLOCKS_PASSED + 1) * 4
    if blocks > _MAX_BLOCKS_PASSED:
        return
    if blocks == 0:
        pop_to(index, stack, active, state)
    else:
        remove_open(index, stack, state)
    remove_active(slot, active, state)


@kernel
def _find_active(code: int, active: Any, state: Any) -> int:
    """Return the last slot of `code` after the last marker, or -1."""
    for slot in range(state[ACTIVE] - 1, -1, -1):
        if active[slot, CODE] == code:
            return slot
        if active[slot, CODE] == MARKER:
            return -1
    return -1


@kernel
def _close_heading(stack: Any, active: Any, state: Any) -> None:
    for index in range(state[OPEN] - 1, -1, -1):
        if stack[index, FLAGS] & HEADING:
            pop_to(index, stack, active, state)
            return
        if stack[index, FLAGS] & SCOPE:
            return


@kernel
def _close_other(code: int, flags: int, stack: Any, active: Any, state: Any) -> None:
    if code == _FORM:
        _close_form(stack, active, state)
        return
    if code == _TABLE or code == _TEMPLATE:
        index = find(code, 0, stack, state)
        between = find(_TEMPLATE, 0, stack, state)
        index = -1 if code == _TABLE and between > index else index
    elif flags & (BLOCK | SCOPE) or code == _BUTTON:
        index = find(code, SCOPE, stack, state)
        if code == _LI and index >= 0:
            lists = max(find(_UL, SCOPE, stack, state), find(_OL, SCOPE, stack, state))
            index = -1 if lists > index else index
    else:
        index = find(code, SCOPE | SPECIAL, stack, state)
    if index >= 0:
        pop_to(index, stack, active, state)


@kernel
def _close_form(stack: Any, active: Any, state: Any) -> None:
    """Close the form, and leave open what was opened in it except for implied ends."""
    index = find(_FORM, SCOPE, stack, state)
    if find(_TEMPLATE, 0, stack, state) < 0:
        if not state[HAS_FORM]:
            return
        state[HAS_FORM] = 0
    if index < 0:
        return
    while (
        stack[state[OPEN] - 1, CODE] == _DD
        or stack[state[OPEN] - 1, CODE] == _DT
        or stack[state[OPEN] - 1, CODE] == _LI
        or stack[state[OPEN] - 1, CODE] == _OPTION
        or stack[state[OPEN] - 1, CODE] == _OPTGROUP
        or stack[state[OPEN] - 1, CODE] == _P
        or stack[state[OPEN] - 1, CODE] == _RP
        or stack[state[OPEN] - 1, CODE] == _RT
    ):
        pop_to(state[OPEN] - 1, stack, active, state)
    remove_open(index, stack, state)
