"""Cut edits out of a text, and move the spans that point into it.

Edits are sorted, disjoint, half-open ranges in UTF-8 bytes of the clean text, each with what takes
their place. Offsets of spans are bytes of the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assets.errors import IntegrityError

Edit = dict[str, Any]
Span = dict[str, Any]


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with each edit's range replaced.

    Raises:
        IntegrityError: edits overlap, are not in order, lie outside the text, or cut a character.
    """
    data = text.encode()
    pieces, at = [], 0
    for edit in edits:
        if not at <= edit["start"] <= edit["end"] <= len(data):
            raise IntegrityError(
                f"an edit covers bytes {edit['start']:,d} to {edit['end']:,d} of a text of "
                f"{len(data):,d} bytes, after one that ends at {at:,d}"
            )
        pieces += [data[at : edit["start"]], edit["replacement"].encode()]
        at = edit["end"]
    pieces.append(data[at:])
    try:
        return b"".join(pieces).decode()
    except UnicodeDecodeError as error:
        raise IntegrityError(f"an edit cuts a character in two: {error}") from error


def shift_spans(spans: Sequence[Span], edits: Sequence[Edit]) -> list[Span]:
    """Return the spans where they lie after the edits.

    A span that an edit covers is gone; one that an edit overlaps keeps the part outside of it.
    """
    shifted = []
    for span in spans:
        start = _moved(span["start"], edits, is_end=False)
        end = _moved(span["end"], edits, is_end=True)
        if start < end or span["start"] == span["end"]:
            shifted.append({**span, "start": start, "end": max(start, end)})
    return shifted


def _moved(offset: int, edits: Sequence[Edit], *, is_end: bool) -> int:
    """Return where an offset lies afterwards.

    One inside an edit goes to the edge of its replacement: a start after it, an end before it.
    """
    shift = 0
    for edit in edits:
        start, end, size = int(edit["start"]), int(edit["end"]), len(edit["replacement"].encode())
        if end <= offset and (start < offset or not is_end):
            shift += size - (end - start)
        elif start < offset:
            return start + shift + (0 if is_end else size)
        else:
            break
    return offset + shift
