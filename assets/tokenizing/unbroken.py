"""Unbroken runs: letters, digits, white space or other characters without any of another kind.

What a tokenizer takes as one word never goes across a change of kind (but for the one character
before a word, and line ends behind punctuation), and the time that merging takes grows faster than
the length of the word: 4 MiB of letters take 4 to 6 CPU seconds in every engine, and training on a
quarter of that takes a minute. So a document with a longer run than `max_run_bytes` is quarantined,
and training passes over such runs. No prose has them; data written into a text does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from assets.cleaning.characters import ALNUM, ALPHA, SPACE, character_flags, decode_at
from assets.kernel import kernel

MAX_TRAINED_RUN = 1 << 10
"""Bytes of a run that training takes; it takes the square of the length of a word."""

_NO_KIND = -1


@kernel
def next_run(data: Any, start: int, end: int, limit: int, flags: Any) -> tuple[int, int]:
    """Return [begin, end) of the first run longer than `limit` bytes; (end, end) without one.

    Args:
        data: UTF-8 bytes, uint8.
        start: begin of a character.
        end: end of the text.
        limit: bytes a run may have.
        flags: `character_flags()`.
    """
    begin, kind, position = start, _NO_KIND, start
    while position < end:
        point, size = decode_at(data, position)
        flag = flags[point]
        if flag & SPACE:
            found = 0
        elif flag & ALPHA:
            found = 1
        elif flag & ALNUM:
            found = 2
        else:
            found = 3
        if found != kind:
            if position - begin > limit:
                return begin, position
            begin, kind = position, found
        position += size
    if position - begin > limit:
        return begin, position
    return end, end


def first_long_run(text: bytes, limit: int) -> int:
    """Return the bytes of the first run longer than `limit`, 0 if there is none."""
    if len(text) <= limit:
        return 0
    data = np.frombuffer(text, np.uint8)
    begin, end = next_run(data, 0, len(data), limit, character_flags())
    return int(end - begin)


def without_long_runs(text: bytes, limit: int = MAX_TRAINED_RUN) -> tuple[bytes, int]:
    """Return a text (valid UTF-8) without its runs longer than `limit`, and the bytes left out."""
    if len(text) <= limit:
        return text, 0
    data, flags = np.frombuffer(text, np.uint8), character_flags()
    pieces, start = [], 0
    while start < len(text):
        begin, end = next_run(data, start, len(text), limit, flags)
        pieces.append(text[start:begin])
        start = int(end)
    kept = b"".join(pieces)
    return kept, len(text) - len(kept)
