"""Normalisation of texts: the small repairs that every prose profile wants, counted by kind.

================  =============================================================================
`bom`             a U+FEFF at the start of the text is removed
`line_endings`    CR LF, a lone CR, VT, FF and NEL become LF
`control`         other control characters (category Cc, NUL among them) are removed, except tab; a
                  terminal's control sequence (ECMA-48, `ESC [ 31 m`) goes whole and counts as one
`trailing`        spaces and tabs at the end of a line or of the text are removed
================  =============================================================================

Code is never normalised. Unicode normal forms and mojibake are not touched.
"""

# ruff: noqa: PLR1714, SIM109 - numba compiles comparisons faster than `in`
from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.text_column import text_array_of, text_buffers
from assets.kernel import kernel

CHANGES = ("bom", "line_endings", "control", "trailing")
"""Names of the columns of the counts that `normalise` returns."""
BOM, LINE_ENDINGS, CONTROL, TRAILING = range(4)

_TAB, _LF, _VT, _FF, _CR, _SPACE, _DELETE = 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0x7F
_ESCAPE, _BRACKET = 0x1B, 0x5B
_C1_LEAD, _NEL = 0xC2, 0x85
"""U+0080 to U+009F, the second block of control characters, are 0xC2 and a byte below 0xA0."""


def normalise(texts: pa.LargeStringArray) -> tuple[pa.LargeStringArray, np.ndarray]:
    """Return the normalised texts and what was changed.

    The counts have shape (len(texts), 4), dtype int64, columns as in `CHANGES`: line endings
    replaced, characters removed for the others. A text whose counts are all 0 is unchanged. A null
    text stays an empty one.
    """
    data, offsets = text_buffers(texts)
    size = int(offsets[-1] - offsets[0])
    output = np.empty(size, np.uint8)
    bounds = np.zeros(len(texts) + 1, np.int64)
    counts = np.zeros((len(texts), len(CHANGES)), np.int64)
    _normalise(data, offsets, output, bounds, counts)
    return text_array_of(output[: bounds[-1]], bounds), counts


@kernel
def _normalise(data: Any, offsets: Any, output: Any, bounds: Any, counts: Any) -> None:
    written = 0
    for index in range(len(offsets) - 1):
        written = _normalise_one(
            data, offsets[index], offsets[index + 1], output, written, counts[index]
        )
        bounds[index + 1] = written


@kernel
def _normalise_one(data: Any, start: int, end: int, output: Any, written: int, count: Any) -> int:
    """Write one text at `written`; return where the next one starts."""
    first = written
    position = start
    if _starts_with_mark(data, start, end):
        count[BOM] += 1
        position += 3
    while position < end:
        byte = data[position]
        if _SPACE < byte < _DELETE or byte > _C1_LEAD:
            output[written] = byte
            written += 1
            position += 1
            continue
        kind, length = _classify(data, position, end)
        if kind == LINE_ENDINGS:
            written = _strip_trailing(output, first, written, count)
            count[LINE_ENDINGS] += length > 1 or byte != _LF
            output[written] = _LF
            written += 1
        elif kind == CONTROL:
            count[CONTROL] += 1
        else:
            for offset in range(length):
                output[written + offset] = data[position + offset]
            written += length
        position += length
    return _strip_trailing(output, first, written, count)


@kernel
def _starts_with_mark(data: Any, start: int, end: int) -> Any:
    """Return whether (bool) a text starts with U+FEFF, in UTF-8 EF BB BF."""
    has_room = end - start >= 3
    return has_room and data[start] == 0xEF and data[start + 1] == 0xBB and data[start + 2] == 0xBF


@kernel
def _classify(data: Any, position: int, end: int) -> tuple[int, int]:
    """Return (LINE_ENDINGS, CONTROL or -1 to keep, bytes) of one ASCII or 0xC2 character."""
    byte = data[position]
    if byte == _CR:
        return LINE_ENDINGS, 2 if position + 1 < end and data[position + 1] == _LF else 1
    if byte == _LF or byte == _VT or byte == _FF:
        return LINE_ENDINGS, 1
    second = data[position + 1] if position + 1 < end else 0
    if byte == _C1_LEAD and second == _NEL:
        return LINE_ENDINGS, 2
    if byte == _C1_LEAD:
        return (CONTROL if second < 0xA0 else -1), 2
    if byte == _ESCAPE and second == _BRACKET:
        rest = _sequence_rest(data, position + 2, end)
        return CONTROL, 2 + rest if rest else 1
    return (CONTROL if byte == _DELETE or (byte < _SPACE and byte != _TAB) else -1), 1


@kernel
def _sequence_rest(data: Any, start: int, end: int) -> int:
    """Return the bytes of a control sequence behind `ESC [`, 0 if there is no whole one.

    Parameters (0 to ?), intermediates (space to /) and one final byte (@ to ~). ECMA-48's other
    introducer, U+009B, is not asked: in texts it is a quote of Windows-1252 that was read as
    Latin-1, and the letter behind it would go as a final byte.
    """
    position = start
    while position < end and 0x30 <= data[position] <= 0x3F:
        position += 1
    while position < end and 0x20 <= data[position] <= 0x2F:
        position += 1
    return position + 1 - start if position < end and 0x40 <= data[position] <= 0x7E else 0


@kernel
def _strip_trailing(output: Any, first: int, written: int, count: Any) -> int:
    """Take back the spaces and tabs just written; amortised linear, each is written once."""
    kept = written
    while kept > first and (output[kept - 1] == _SPACE or output[kept - 1] == _TAB):
        kept -= 1
    count[TRAILING] += written - kept
    return kept
