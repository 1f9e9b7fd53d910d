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
    wrong = _assemble(plain, starts, sizes, eos, begin, out, counts)
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
) -> int:
    """Fill `out` and add to `counts`; return the place of a wrong id in `plain`, or `_FINE`."""
    place = 0
    vocab_size = len(counts)
    for document in range(len(starts)):
        start = starts[document]
        if bos != _NO_BOS:
            out[place] = bos
            counts[bos] += 1
            place += 1
        for number in range(start, start + sizes[document]):
            found = np.int64(plain[number])
            if found >= vocab_size or found in (eos, bos):
                return number
            out[place] = found
            counts[found] += 1
            place += 1
        out[place] = eos
        counts[eos] += 1
        place += 1
    return _FINE
