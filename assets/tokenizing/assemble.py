"""Put EOS, and BOS, around the ids of documents, and count them: one pass over the ids.

The pass also makes the ids as narrow as they are stored, and finds what no document may hold: an id
outside the vocabulary, or an EOS or BOS that would end or begin it early.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from assets.errors import IntegrityError
from assets.kernel import kernel
from assets.tokenizing.tokenizer import LoadedTokenizer

Array = np.ndarray[Any, Any]
Lengths = np.ndarray[Any, np.dtype[np.int64]]

_NO_BOS = -1
_FINE = -1


def assemble(
    tokenizer: LoadedTokenizer, plain: Array, starts: Lengths, sizes: Lengths, counts: Lengths
) -> Array:
    """Return the ids of documents, one after the other, EOS and BOS around each.

    Args:
        tokenizer: says what stands around documents, and how ids are stored.
        plain: uint32 ids of texts.
        starts: (documents,), first id of each in `plain`.
        sizes: (documents,), ids of each.
        counts: (vocab_size,), how often each id occurs; raised here, EOS and BOS too.

    Raises:
        IntegrityError: an id outside the vocabulary, or the EOS or BOS id, in `plain`.
    """
    eos, bos = tokenizer.eos_token_id, tokenizer.bos_token_id
    around = 1 if bos is None else 2
    out = np.empty(int(sizes.sum()) + around * len(sizes), tokenizer.dtype)
    begin = _NO_BOS if bos is None else bos
    # Half as wide as the sums, so that more of them stay in the processor's cache.
    found = np.zeros(len(counts), np.uint32)
    wrong = _assemble(plain, starts, sizes, eos, begin, out, found)
    counts += found
    if wrong != _FINE:
        raise IntegrityError(_refusal(tokenizer, int(plain[wrong])))
    return out


def _refusal(tokenizer: LoadedTokenizer, found: int) -> str:
    if found >= tokenizer.vocab_size:
        size = tokenizer.vocab_size
        return f"the engine gave the id {found:,d}, the vocabulary has {size:,d} ids"
    name = "EOS" if found == tokenizer.eos_token_id else "BOS"
    return f"the tokenizer gave the {name} id {found} inside a document: it would end early"


@kernel
def _assemble(
    plain: Any, starts: Any, sizes: Any, eos: int, bos: int, out: Any, counts: Any
) -> Any:
    """Fill `out` and add to `counts`; return the place of a wrong id in `plain`, or `_FINE`."""
    # Unsigned, so that no index is looked at twice for being negative.
    size, end_id, begin_id = np.uint32(len(counts)), np.uint32(eos), np.uint32(bos)
    place = np.uint64(0)
    one = np.uint64(1)
    for document in range(len(starts)):
        if bos != _NO_BOS:
            out[place] = bos
            place += one
        first = np.uint64(starts[document])
        for number in range(first, first + np.uint64(sizes[document])):
            found = plain[number]
            if found >= size or found in (end_id, begin_id):
                return np.int64(number)
            out[place] = found
            counts[found] += 1
            place += one
        out[place] = eos
        place += one
    counts[eos] += len(starts)
    if bos != _NO_BOS:
        counts[bos] += len(starts)
    return _FINE
