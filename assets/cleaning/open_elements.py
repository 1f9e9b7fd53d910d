"""Which tags open, close and re-open elements, by the HTML standard's rules of tree construction.

The rules are reduced to what `element_stack` knows: names. Where a rule would need more, the
element stays open.
"""

# ruff: noqa: PLR1714, SIM109 - numba compiles comparisons in a tenth of the time of `in`
from __future__ import annotations

from typing import Any

from assets.cleaning.element_stack import (
    ACTIVE,
    CODE,
    DIGEST,
    FLAGS,
    HAS_FORM,
    IN_MATH,
    IN_SVG,
    IS_INTEGRATION,
    IS_OPEN,
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
    remove_open,
    reopen_formatting,
)
from assets.cleaning.kernel import kernel
from assets.cleaning.tag_names import (
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

_OPTIONS_PER_NODE = 256
"""The n-th option of a menu is charged n // 256 nodes."""
_MAX_BLOCKS_PASSED = 7
"""A formatting end tag is given up after eight rounds, each of which passes one block."""
_MAX_SAME = 3
"""Of formatting elements that are equal down to the attributes, three are opened again."""

_A, _NOBR, _P, _LI, _DD, _DT = (tag_code(name) for name in ("a", "nobr", "p", "li", "dd", "dt"))
_TD, _TH, _TR, _TBODY = (tag_code(name) for name in ("td", "th", "tr", "tbody"))
_CAPTION, _TABLE, _TEMPLATE = (tag_code(name) for name in ("caption", "table", "template"))
_SELECT, _OPTION, _OPTGROUP = (tag_code(name) for name in ("select", "option", "optgroup"))
_BUTTON, _FORM, _BR, _SVG = (tag_code(name) for name in ("button", "form", "br", "svg"))
_INPUT, _RP, _RT = (tag_code(name) for name in ("input", "rp", "rt"))
_ADDRESS, _DIV, _UL, _OL = (tag_code(name) for name in ("address", "div", "ul", "ol"))
_APPLET, _MARQUEE, _OBJECT = (tag_code(name) for name in ("applet", "marquee", "object"))


@kernel
def open_tag(
    code: int, flags: int, digest: int, self_closing: bool, stack: Any, active: Any, state: Any
) -> None:
    """Follow a start tag."""
    if is_foreign(stack, state):
        if not flags & BREAKOUT:
            _open_foreign(code, flags, self_closing, stack, state)
            return
        _break_out(stack, active, state)
    if flags & CELL:
        _open_cell(code, flags, stack, active, state)
    elif flags & BLOCK:
        _open_block(code, flags, stack, active, state)
    elif flags & FORMATTING:
        _open_formatting(code, flags, digest, stack, active, state)
    elif not flags & (IGNORED | RAW):
        _open_inline(code, flags, self_closing, stack, active, state)


@kernel
def _break_out(stack: Any, active: Any, state: Any) -> None:
    """Close SVG and MathML down to the HTML around."""
    while is_foreign(stack, state):
        pop_to(state[OPEN] - 1, stack, active, state)


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
    _close_paragraph(stack, active, state)
    if flags & HEADING and state[OPEN] and stack[state[OPEN] - 1, FLAGS] & HEADING:
        pop_to(state[OPEN] - 1, stack, active, state)
    if not flags & (VOID | RAW):
        push(code, flags, -1, stack, state)


@kernel
def _close_paragraph(stack: Any, active: Any, state: Any) -> bool:
    """Close an open paragraph in button scope; return whether there was one."""
    for index in range(state[OPEN] - 1, -1, -1):
        if stack[index, CODE] == _P:
            pop_to(index, stack, active, state)
            return True
        if stack[index, FLAGS] & SCOPE or stack[index, CODE] == _BUTTON:
            return False
    return False


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
        _close_formatting(code, stack, active, state)
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


@kernel
def close_tag(code: int, flags: int, stack: Any, active: Any, state: Any) -> None:
    """Follow an end tag; one that has no open element it may close means nothing."""
    if code == _P or code == _BR:
        _break_out(stack, active, state)
    elif _close_foreign(code, stack, active, state):
        return
    if flags & CELL:
        _close_cell(code, stack, active, state)
    elif flags & FORMATTING:
        _close_formatting(code, stack, active, state)
    elif flags & HEADING:
        _close_heading(stack, active, state)
    elif code == _P:
        # A paragraph is made to be closed where there is none.
        state[NODES] += not _close_paragraph(stack, active, state)
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
def _close_formatting(code: int, stack: Any, active: Any, state: Any) -> None:
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
