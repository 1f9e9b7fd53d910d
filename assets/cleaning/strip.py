"""Find where a text begins and ends without the whitespace around it."""

from __future__ import annotations

from typing import Any

from assets.cleaning.characters import SPACE, decode_at
from assets.kernel import kernel


@kernel
def strip_text(data: Any, start: int, end: int, flags: Any) -> tuple[int, int]:
    """Return the bounds of data[start:end] without whitespace at its ends, as `str.strip`."""
    while start < end:
        code_point, length = decode_at(data, start)
        if not flags[code_point] & SPACE:
            break
        start += length
    while end > start:
        last = end - 1
        while (data[last] & 0xC0) == 0x80:
            last -= 1
        code_point, _ = decode_at(data, last)
        if not flags[code_point] & SPACE:
            break
        end = last
    return start, end


@kernel
def strip_written(output: Any, first: int, written: int, flags: Any) -> int:
    """Strip the text that was written to output[first:written] in place; return where it ends."""
    start, stop = strip_text(output, first, written, flags)
    for at in range(start, stop):
        output[first + at - start] = output[at]
    return first + stop - start
