"""How deep and how full a page is, found in one linear pass before anything parses it.

Main-content extraction takes time with nesting depth times page size, and an HTML parser can make
far more elements than a page has tags: a formatting element that is never closed is opened again in
every following block. So the pass follows the HTML standard's rules of which tags open, close and
re-open elements (`open_elements`, `close_elements`). Where it simplifies, it mostly leaves an
element open that a parser would close: the depth errs upwards on all but contrived pages. Elements
that a parser adds unasked (rows and sections of a table) are not counted as nodes.

What costs more than its share of time is charged as further nodes: an element the deeper it stands,
the many attributes of one element, the many options of one menu.
"""

# ruff: noqa: PLR1714, SIM109 - numba compiles comparisons faster than `in`
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from assets.cleaning.pages.close_elements import close_tag
from assets.cleaning.pages.element_stack import (
    ACTIVE,
    ACTIVE_FACTOR,
    DEPTH,
    NODES,
    STATE_SIZE,
    count_element,
    is_between_cells,
    is_foreign,
    reopen_formatting,
)
from assets.cleaning.pages.open_elements import open_tag
from assets.cleaning.pages.tag_names import (
    BREAKOUT,
    CODE_FACTOR,
    CODE_MASK,
    IGNORED,
    RAW,
    TAG_CODES,
    TAG_FLAGS,
    VOID,
    tag_code,
)
from assets.kernel import kernel

_ATTRIBUTES_PER_NODE = 1024
"""The n-th attribute of an element is charged n // 1024 nodes."""
_PLAINTEXT, _FONT = tag_code("plaintext"), tag_code("font")
_COLOR, _FACE, _SIZE = tag_code("color"), tag_code("face"), tag_code("size")

_LT, _GT, _SLASH, _BANG, _QUESTION = 0x3C, 0x3E, 0x2F, 0x21, 0x3F
_DASH, _EQUALS, _DOUBLE, _SINGLE = 0x2D, 0x3D, 0x22, 0x27
_BRACKET, _CLOSING_BRACKET, _LETTER_C = 0x5B, 0x5D, 0x43


class PageShape(NamedTuple):
    """What the pass found; it stops where a limit is passed."""

    depth: int
    """Greatest number of elements open at once."""
    nodes: int
    """Elements, with the charges the module names."""


def scan_page(page: bytes, *, max_depth: int, max_nodes: int) -> PageShape:
    """Return the depth and the number of nodes of a page (UTF-8 markup).

    A figure above its limit says that the limit is passed, not by how much.
    """
    stack = np.zeros((max_depth + 4, 3), np.int64)
    active = np.zeros((ACTIVE_FACTOR * (max_depth + 4), 3), np.int64)
    state = np.zeros(STATE_SIZE, np.int64)
    depth = _scan(
        np.frombuffer(page, np.uint8), TAG_CODES, TAG_FLAGS, stack, active, state, max_nodes
    )
    return PageShape(int(depth), int(state[NODES]))


@kernel
def _scan(
    data: Any, codes: Any, flags: Any, stack: Any, active: Any, state: Any, max_nodes: int
) -> int:
    """Walk over the page token by token; return the greatest depth."""
    max_depth = len(stack) - 4
    depth = 0
    page_attributes = 0  # of <html> and <body>, whose tags all add to the same two elements
    position = 0
    while position < len(data) and depth <= max_depth and state[NODES] <= max_nodes:
        is_leaf = False
        if data[position] != _LT:
            position = _skip_text(data, position, stack, active, state)
        elif position + 1 >= len(data):
            break
        elif _is_letter(data[position + 1]):
            code, attributes, self_closing, digest, end = _read_tag(data, position + 1)
            kind = _flags_of(code, codes, flags) | _breakout_of_font(data, code, position + 5, end)
            if kind & IGNORED:
                attributes += page_attributes
                page_attributes = attributes
            count_element(state)
            state[NODES] += _attribute_charge(attributes)
            if code == _PLAINTEXT:
                break
            is_leaf = self_closing or (kind & (RAW | VOID)) != 0
            raw = kind & RAW and not is_foreign(stack, state)
            open_tag(code, kind, digest, self_closing, stack, active, state)
            position = _skip_raw(data, end, code) if raw else end
        elif data[position + 1] == _SLASH:
            position = _read_end_tag(data, position, codes, flags, stack, active, state)
        else:
            position = _skip_declaration(data, position, is_foreign(stack, state))
        depth = max(depth, state[DEPTH] + is_leaf)
    return depth


@kernel
def _breakout_of_font(data: Any, code: int, position: int, end: int) -> int:
    """Return BREAKOUT for a font tag with one of HTML's own attributes, else 0.

    The tag is read from behind its name to `end`.
    """
    while code == _FONT and position < end - 1:
        if _is_space(data[position]) or data[position] == _SLASH:
            position += 1
            continue
        name: Any = 0
        for at in range(position, end - 1):
            if data[at] == _EQUALS or _ends_name(data[at]):
                break
            name = (name & CODE_MASK) * CODE_FACTOR + np.int64(data[at] | 0x20)
        if name == _COLOR or name == _FACE or name == _SIZE:
            return BREAKOUT
        position = _skip_attribute(data, position)
    return 0


@kernel
def _attribute_charge(attributes: int) -> int:
    """Return the nodes charged for the attributes of one element."""
    return attributes * attributes // (2 * _ATTRIBUTES_PER_NODE)


@kernel
def _read_end_tag(
    data: Any, position: int, codes: Any, flags: Any, stack: Any, active: Any, state: Any
) -> int:
    if position + 2 >= len(data):
        return len(data)
    if not _is_letter(data[position + 2]):
        return _find_byte(data, position + 2, _GT) + 1
    code, _, _, _, end = _read_tag(data, position + 2)
    close_tag(code, _flags_of(code, codes, flags), stack, active, state)
    return end


@kernel
def _is_letter(byte: int) -> bool:
    return 0x61 <= (byte | 0x20) <= 0x7A


@kernel
def _is_space(byte: int) -> bool:
    return byte == 0x20 or (0x09 <= byte <= 0x0D and byte != 0x0B)


@kernel
def _flags_of(code: int, codes: Any, flags: Any) -> Any:
    index = np.searchsorted(codes, code)
    if index < len(codes) and codes[index] == code:
        return flags[index]
    return 0


@kernel
def _find_byte(data: Any, position: int, byte: int) -> int:
    while position < len(data) and data[position] != byte:
        position += 1
    return position


@kernel
def _skip_text(data: Any, position: int, stack: Any, active: Any, state: Any) -> int:
    """Return where the next `<` is; text re-opens formatting elements."""
    is_blank = True
    while position < len(data) and data[position] != _LT:
        is_blank = is_blank and _is_space(data[position])
        position += 1
    if not state[ACTIVE] or is_foreign(stack, state):
        return position
    if not is_blank or not is_between_cells(stack, state):  # a table drops space between its cells
        reopen_formatting(stack, active, state)
    return position


@kernel
def _skip_declaration(data: Any, position: int, in_foreign: bool) -> int:
    """Return the end of a comment, CDATA section, doctype or of a `<` that begins nothing."""
    following = data[position + 1]
    if following == _BANG and _starts(data, position + 2, _DASH, _DASH):
        return _skip_comment(data, position + 4)
    if following == _BANG and in_foreign and _starts(data, position + 2, _BRACKET, _LETTER_C):
        at = position + 9
        while at < len(data) and not _ends_section(data, at, _CLOSING_BRACKET):
            at += 1
        return at + 3
    if following == _BANG or following == _QUESTION:
        return _find_byte(data, position + 2, _GT) + 1
    return position + 1


@kernel
def _skip_comment(data: Any, at: int) -> int:
    """Return the end of the comment whose text starts at `at`."""
    if at < len(data) and data[at] == _GT:  # "<!-->" is a whole comment, and so is "<!--->"
        return at + 1
    if _starts(data, at, _DASH, _GT):
        return at + 2
    while at < len(data):
        if _ends_section(data, at, _DASH):
            return at + 3
        if _starts(data, at, _DASH, _DASH) and _starts(data, at + 2, _BANG, _GT):
            return at + 4
        at += 1
    return at


@kernel
def _ends_section(data: Any, at: int, byte: int) -> Any:
    return _starts(data, at, byte, byte) and at + 2 < len(data) and data[at + 2] == _GT


@kernel
def _starts(data: Any, position: int, first: int, second: int) -> Any:
    return position + 1 < len(data) and data[position] == first and data[position + 1] == second


@kernel
def _read_tag(data: Any, position: int) -> tuple[int, int, bool, int, int]:
    """Read a tag whose name starts at `position`.

    Returns (name code, number of attributes, ends in "/>", digest of its bytes, position after it).
    """
    code: Any = 0
    start = position
    while position < len(data) and not _ends_name(data[position]):
        byte = np.int64(data[position])
        if 0x41 <= byte <= 0x5A:
            byte |= 0x20
        code = (code & CODE_MASK) * CODE_FACTOR + byte
        position += 1
    attributes = 0
    while position < len(data) and data[position] != _GT:
        if _is_space(data[position]) or data[position] == _SLASH:
            position += 1
        else:
            attributes += 1
            position = _skip_attribute(data, position)
    self_closing = position < len(data) and data[position - 1] == _SLASH
    digest: Any = 0
    for at in range(start, min(position, len(data))):
        digest = (digest & CODE_MASK) * CODE_FACTOR + np.int64(data[at])
    return code, attributes, self_closing, digest, position + 1


@kernel
def _ends_name(byte: int) -> bool:
    return (byte == _GT or byte == _SLASH) or _is_space(byte)


@kernel
def _skip_attribute(data: Any, position: int) -> int:
    """Return the end of the attribute that starts at `position`, its value included."""
    size = len(data)
    position += 1  # an attribute name may start with "="
    while position < size and data[position] != _EQUALS and not _ends_name(data[position]):
        position += 1
    after = position
    while after < size and _is_space(data[after]):
        after += 1
    if after >= size or data[after] != _EQUALS:
        return position
    after += 1
    while after < size and _is_space(data[after]):
        after += 1
    if after < size and (data[after] == _DOUBLE or data[after] == _SINGLE):
        return _find_byte(data, after + 1, data[after]) + 1
    while after < size and data[after] != _GT and not _is_space(data[after]):
        after += 1
    return after


@kernel
def _skip_raw(data: Any, position: int, code: int) -> int:
    """Return the position after the end tag that ends a script, style, title or the like."""
    while position < len(data):
        if _starts(data, position, _LT, _SLASH):
            found: Any = 0
            at = position + 2
            while at < len(data) and not _ends_name(data[at]) and data[at] != _LT:
                found = (found & CODE_MASK) * CODE_FACTOR + np.int64(data[at] | 0x20)
                at += 1
            if found == code:
                return _find_byte(data, at, _GT) + 1
            position = at
        else:
            position += 1
    return position
