"""What is open at a place of a page: a parser's stack of element names, without a tree.

`stack` holds what is open, one row (code, flags, slot in `active` or -1) per element. `active`
lists formatting elements that are opened again after a block closed them: rows (code, digest of the
tag, is open), with rows of code `MARKER` where a cell or object begins and of code `REMOVED` where
one was taken out. Both are int64 arrays of fixed size; who overruns them has passed the depth
limit. `state` is an int64 array of the counters named below.
"""

from __future__ import annotations

from typing import Any

from assets.cleaning.pages.tag_names import CELL, FORMATTING, tag_code
from assets.kernel import kernel

OPEN, DEPTH, ACTIVE, NODES, OPTIONS, HAS_FORM = range(6)
"""Places in `state`: rows of `stack`, depth they stand for, rows of `active`, nodes so far, options
of the current menu, whether a form waits for its end tag."""
STATE_SIZE = 6
ACTIVE_FACTOR = 4
"""Rows of `active` for each row of `stack`."""

DEPTH_PER_NODE = 32
"""An element at depth d counts as 1 + d // 32 nodes."""

CODE, FLAGS, SLOT = range(3)
DIGEST, IS_OPEN = 1, 2
MARKER = -1
REMOVED = 0
IN_SVG, IN_MATH = 1 << 20, 1 << 21
"""Flags of an open element of SVG or MathML."""
IS_INTEGRATION = 1 << 22
"""Flag of an open element of SVG or MathML in which HTML goes on."""
NOT_HTML = IN_SVG | IN_MATH | IS_INTEGRATION

_TD, _TH, _CAPTION = tag_code("td"), tag_code("th"), tag_code("caption")
_TABLE, _TEMPLATE = tag_code("table"), tag_code("template")
_CELL_DEPTH = 3
"""A part of a table stands for up to three levels: section, row and cell."""


@kernel
def is_foreign(stack: Any, state: Any) -> Any:
    """Return whether (bool) the innermost open element belongs to SVG or MathML."""
    return state[OPEN] > 0 and (stack[state[OPEN] - 1, FLAGS] & (IN_SVG | IN_MATH)) != 0


@kernel
def is_between_cells(stack: Any, state: Any) -> bool:
    """Return whether a table is open and none of its cells."""
    for index in range(state[OPEN] - 1, -1, -1):
        if (
            stack[index, CODE] == _TD
            or stack[index, CODE] == _TH
            or stack[index, CODE] == _CAPTION
            or stack[index, CODE] == _TEMPLATE
        ):
            return False
        if stack[index, FLAGS] & CELL or stack[index, CODE] == _TABLE:
            return True
    return False


@kernel
def count_element(state: Any) -> None:
    """Count an element where it stands: extraction looks at all that are open around it."""
    state[NODES] += 1 + state[DEPTH] // DEPTH_PER_NODE


@kernel
def push(code: int, flags: int, slot: int, stack: Any, state: Any) -> None:
    """Open an element."""
    if state[OPEN] == len(stack):
        state[DEPTH] = len(stack)
        return
    top = state[OPEN]
    stack[top, CODE], stack[top, FLAGS], stack[top, SLOT] = code, flags, slot
    state[OPEN] += 1
    state[DEPTH] += _CELL_DEPTH if flags & CELL else 1


@kernel
def push_active(code: int, digest: int, active: Any, state: Any) -> Any:
    """Append a row to `active`; return its slot, or -1 where there is no room."""
    slot = state[ACTIVE]
    if slot == len(active):
        state[DEPTH] = len(active)
        return -1
    active[slot, CODE], active[slot, DIGEST], active[slot, IS_OPEN] = code, digest, 1
    state[ACTIVE] += 1
    return slot


@kernel
def pop_to(length: int, stack: Any, active: Any, state: Any) -> None:
    """Close every element above the first `length` ones."""
    while state[OPEN] > length:
        state[OPEN] -= 1
        top = state[OPEN]
        state[DEPTH] -= _CELL_DEPTH if stack[top, FLAGS] & CELL else 1
        slot = stack[top, SLOT]
        if slot >= 0 and slot < state[ACTIVE]:
            if active[slot, CODE] == MARKER:
                state[ACTIVE] = slot
            else:
                active[slot, IS_OPEN] = 0


@kernel
def remove_open(index: int, stack: Any, state: Any) -> None:
    """Close one element and leave those above it open."""
    state[DEPTH] -= _CELL_DEPTH if stack[index, FLAGS] & CELL else 1
    for row in range(index, state[OPEN] - 1):
        for column in range(3):
            stack[row, column] = stack[row + 1, column]
    state[OPEN] -= 1


@kernel
def remove_active(slot: int, active: Any, state: Any) -> None:
    """Never open the formatting element in `slot` again."""
    if 0 <= slot < state[ACTIVE]:
        active[slot, CODE] = REMOVED
    while state[ACTIVE] > 0 and active[state[ACTIVE] - 1, CODE] == REMOVED:
        state[ACTIVE] -= 1


@kernel
def find(code: int, stops: int, stack: Any, state: Any) -> int:
    """Return the index of the innermost open HTML element `code`, or -1.

    The search ends at an element with a flag of `stops`.
    """
    for index in range(state[OPEN] - 1, -1, -1):
        if stack[index, CODE] == code and not stack[index, FLAGS] & NOT_HTML:
            return index
        if stack[index, FLAGS] & stops:
            return -1
    return -1


@kernel
def reopen_formatting(stack: Any, active: Any, state: Any) -> None:
    """Open again the formatting elements that a closed block took with it."""
    first = state[ACTIVE]
    while first > 0:
        code = active[first - 1, CODE]
        if code == MARKER or (code != REMOVED and active[first - 1, IS_OPEN]):
            break
        first -= 1
    for slot in range(first, state[ACTIVE]):
        if active[slot, CODE] != REMOVED:
            active[slot, IS_OPEN] = 1
            count_element(state)
            push(active[slot, CODE], FORMATTING, slot, stack, state)
