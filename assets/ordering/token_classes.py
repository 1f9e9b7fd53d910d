"""Which tokens end a paragraph or a sentence: where a long document may be cut."""

from __future__ import annotations

import hashlib

import numpy as np
import tokenizers

from assets.errors import IntegrityError
from assets.ordering.packing import PARAGRAPH, SENTENCE
from assets.ordering.published import in_dataset
from assets.root import Root

SENTENCE_ENDS = ".!?\u3002\uff01\uff1f\u0964\u06d4"
CLOSING = "\"'\u201d\u2019)]}\u300d\u00bb "
"""What may stand between the end of a sentence and the end of its token."""


def token_classes(root: Root, tokenizer_sha256: str, vocab_size: int) -> np.ndarray:
    """Return `PARAGRAPH`, `SENTENCE` or 0 for each id, uint8 (vocab_size,).

    Args:
        root: whose data set holds the tokenizer.
        tokenizer_sha256: of tokenizer.json.
        vocab_size: largest id + 1.

    Raises:
        FileNotFoundError: the data set does not hold it.
        IntegrityError: its bytes are others.
    """
    name = in_dataset(f"tokenizer/{tokenizer_sha256}/tokenizer.json")
    data = root.storage.read(name)
    if hashlib.sha256(data).hexdigest() != tokenizer_sha256:
        raise IntegrityError(
            f"{root.url}: {name} is not the tokenizer that the shards were made by"
        )
    tokenizer = tokenizers.Tokenizer.from_str(data.decode())
    texts = tokenizer.decode_batch([[number] for number in range(vocab_size)])
    return np.array([class_of(text) for text in texts], np.uint8)


def class_of(text: str) -> int:
    """Return the class of a token's text."""
    if "\n" in text:
        return PARAGRAPH
    return SENTENCE if text.rstrip(CLOSING).endswith(tuple(SENTENCE_ENDS)) else 0
