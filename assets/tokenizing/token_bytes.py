"""The bytes that each id of a byte-level tokenizer stands for: from ids back to text in one pass.

A byte-level BPE writes every byte as one of 256 printable characters, so the text of any ids is
their bytes one after the other. Other tokenizers (with an unknown token, or that drop white space)
have no such table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from assets.errors import IntegrityError
from assets.kernel import kernel
from assets.tokenizing.tokenizer import LoadedTokenizer

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """What every id stands for."""

    data: Array
    """uint8: the bytes of id 0, of id 1, ..."""
    starts: Array
    """int64 (ids + 1,)."""

    def lengths_of(self, ids: Array) -> Array:
        """Return the bytes of each of some ids, int64 (ids,)."""
        lengths: Array = self.starts[1:][ids] - self.starts[:-1][ids]
        return lengths

    def decode(self, ids: Array) -> bytes:
        """Return the bytes of some ids, one after the other.

        Raises:
            IntegrityError: an id that the tokenizer does not have.
        """
        if len(ids) and int(ids.max()) >= len(self.starts) - 1:
            raise IntegrityError(
                f"the id {int(ids.max()):,d} is not in a vocabulary of {len(self.starts) - 1:,d}"
            )
        size = int(self.lengths_of(ids).sum())
        out = np.empty(size, np.uint8)
        _copy(np.ascontiguousarray(ids, np.uint32), self.starts, self.data, out)
        return out.tobytes()


@kernel
def _copy(ids: Any, starts: Any, data: Any, out: Any) -> None:
    position = 0
    for number in range(len(ids)):
        token = np.int64(ids[number])
        for place in range(starts[token], starts[token + 1]):
            out[position] = data[place]
            position += 1


def token_bytes(tokenizer: LoadedTokenizer) -> TokenBytes | None:
    """Return the bytes of every id; None if the tokenizer is not byte-level."""
    value = json.loads(tokenizer.data)
    decoder = value.get("decoder") or {}
    if value["model"].get("type", "BPE") != "BPE" or decoder.get("type") != "ByteLevel":
        return None
    added = {item["id"]: item["content"] for item in value.get("added_tokens") or []}
    vocabulary = tokenizer.reference.get_vocab(with_added_tokens=True)
    pieces = [b""] * tokenizer.vocab_size
    for token, number in vocabulary.items():
        if number in added:
            pieces[number] = added[number].encode()
            continue
        piece = bytes_of(token)
        if piece is None:
            return None
        pieces[number] = piece
    starts = np.concatenate(([0], np.cumsum([len(piece) for piece in pieces])))
    return TokenBytes(np.frombuffer(b"".join(pieces), np.uint8), starts.astype(np.int64))


def bytes_of(token: str) -> bytes | None:
    """Return the bytes of a token of a byte-level vocabulary; None if it is of no such one."""
    bytes_by_character = _byte_of_character()
    found = [bytes_by_character.get(character, -1) for character in token]
    return None if min(found, default=0) < 0 else bytes(found)


@cache
def _byte_of_character() -> dict[str, int]:
    """Return the byte of each character of the byte-level alphabet (GPT-2's).

    Bytes that are printable Latin-1 characters stand for themselves, the others for the characters
    from U+0100 on, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [number for number in range(256) if number not in printable]
    shifted = {chr(0x100 + place): number for place, number in enumerate(rest)}
    return {chr(number): number for number in printable} | shifted
