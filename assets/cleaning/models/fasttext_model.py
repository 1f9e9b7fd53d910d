"""Read a small fastText model, of the kind of lid.176.ftz, into the tables a kernel asks.

A model is read here if it is supervised, quantised at its input alone, has a hierarchical softmax
and no word n-grams; of any other `read_small_model` is None. The format is that of version 12.
What of it decides a prediction stands in `fasttext_labels`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from assets.kernel import kernel

_HEADER = struct.Struct("<ii12id")
_SIZES = struct.Struct("<iiiqq")
_COUNT = struct.Struct("<qb")
_FLAG = struct.Struct("<?")
_MATRIX = struct.Struct("<?qqi")
_MAGIC, _VERSION = 793712314, 12
_HIERARCHICAL, _SUPERVISED = 1, 3
_CENTROIDS = 256
_END_OF_LINE = b"</s>"
HASH_START, _HASH_PRIME = 2166136261, 16777619
_MASK32 = 0xFFFFFFFF


@dataclass(frozen=True, kw_only=True, slots=True)
class SmallModel:
    """A model as the kernel reads it."""

    labels: tuple[str, ...]
    word_bytes: np.ndarray
    """uint8, the words one behind the other."""
    word_starts: np.ndarray
    """int64, shape (words + 1,)."""
    word_slots: np.ndarray
    """int32 at a power of two of slots: word at the slot of its hash or behind, else -1."""
    ngram_keys: np.ndarray
    """int32 at a power of two of slots: n-gram hash at its slot or behind, else -1."""
    ngram_rows: np.ndarray
    """int32: row of the n-gram at the same slot."""
    rows: np.ndarray
    """float32, shape (words + n-grams, dim): the input vectors."""
    output: np.ndarray
    """float32, shape (labels, dim)."""
    children: np.ndarray
    """int32, shape (2 * labels - 1, 2): left and right child of a node of the tree, -1: a leaf."""
    shape: np.ndarray
    """int64: least and greatest length of an n-gram, number of hashes of n-grams."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        values = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return values

    def array(self, kind: str, count: int) -> np.ndarray:
        values = np.frombuffer(self.data, kind, count, self.at)
        self.at += values.nbytes
        return values


def read_small_model(path: Path) -> SmallModel | None:
    """Return the model of a file, or None if it is of another kind, or none that this reads."""
    try:
        return _read(_Reader(path.read_bytes()))
    except (struct.error, ValueError, IndexError):
        return None  # cut or another format: the library says what is wrong with it


def _require(*conditions: bool) -> None:
    """Raise ValueError, which says that a model is of another kind, unless all hold."""
    if not all(conditions):
        raise ValueError("a model of another kind")


def _read(reader: _Reader) -> SmallModel:
    magic, version, dim, _, _, _, _, word_ngrams, loss, kind, bucket, *rest = reader.take(_HEADER)
    least, most = rest[0], rest[1]
    _require(magic == _MAGIC, version == _VERSION, word_ngrams == 1)
    _require(loss == _HIERARCHICAL, kind == _SUPERVISED, least > 0, most > 0, bucket > 0)
    size, num_words, num_labels, _, num_ngrams = reader.take(_SIZES)
    _require(num_words > 0, num_labels > 0, num_ngrams > 0, size == num_words + num_labels)
    names, counts = _read_names(reader, size)
    _require(names[0] == _END_OF_LINE)
    ngrams = reader.array("<i4", 2 * num_ngrams).reshape(-1, 2)
    # Or the kernel would read beyond the vectors.
    _require(ngrams.min() >= 0, ngrams[:, 1].max() < num_ngrams)
    rows = _read_rows(reader, dim)
    _require(len(rows) == num_words + num_ngrams, not reader.take(_FLAG)[0])
    num_outputs, width = reader.take(struct.Struct("<qq"))
    _require(num_outputs == num_labels, width == dim)
    words = names[:num_words]
    starts = np.cumsum([0, *map(len, words)], dtype=np.int64)
    word_bytes = np.frombuffer(b"".join(words), np.uint8)
    keys, values = _ngram_table(ngrams)
    return SmallModel(
        labels=tuple(name.decode() for name in names[num_words:]),
        word_bytes=word_bytes,
        word_starts=starts,
        word_slots=_word_table(word_bytes, starts),
        ngram_keys=keys,
        ngram_rows=values + np.int32(num_words),
        rows=rows,
        output=reader.array("<f4", num_labels * dim).reshape(-1, dim),
        children=_tree(counts[num_words:]),
        shape=np.array([least, most, bucket], np.int64),
    )


def _read_names(reader: _Reader, size: int) -> tuple[list[bytes], list[int]]:
    """Return the words and labels, and how often each was seen."""
    names, counts = [], []
    for _ in range(size):
        end = reader.data.index(b"\0", reader.at)
        names.append(reader.data[reader.at : end])
        reader.at = end + 1
        count, _ = reader.take(_COUNT)
        counts.append(count)
    return names, counts


def _read_rows(reader: _Reader, dim: int) -> np.ndarray:
    """Return the input vectors, product quantisation undone."""
    _require(reader.take(_FLAG)[0])
    has_norms, num_rows, width, num_codes = reader.take(_MATRIX)
    _require(width == dim, num_rows > 0, num_codes > 0)
    rows = _read_centroids(reader, reader.array("u1", num_codes).reshape(num_rows, -1), dim)
    if has_norms:
        norm_codes = reader.array("u1", num_rows).reshape(num_rows, 1)
        rows *= _read_centroids(reader, norm_codes, 1)
    return rows


def _read_centroids(reader: _Reader, codes: np.ndarray, dim: int) -> np.ndarray:
    width, num_parts, part, last = reader.take(struct.Struct("<4i"))
    _require(width == dim, codes.shape[1] == num_parts, part * (num_parts - 1) + last == dim)
    centroids = reader.array("<f4", dim * _CENTROIDS)
    pieces = []
    for number in range(num_parts):
        size = last if number == num_parts - 1 else part
        start = number * part * _CENTROIDS
        table = centroids[start : start + size * _CENTROIDS].reshape(_CENTROIDS, size)
        pieces.append(table[codes[:, number]])
    return np.ascontiguousarray(np.concatenate(pieces, axis=1))


def _ngram_table(ngrams: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    size = 1 << (2 * len(ngrams)).bit_length()
    keys, values = np.full(size, -1, np.int32), np.zeros(size, np.int32)
    _fill_ngrams(ngrams, keys, values)
    return keys, values


def _word_table(word_bytes: np.ndarray, starts: np.ndarray) -> np.ndarray:
    slots = np.full(1 << (2 * len(starts)).bit_length(), -1, np.int32)
    _fill_words(word_bytes, starts, slots)
    return slots


def _tree(counts: list[int]) -> np.ndarray:
    """Return the children of the nodes of the Huffman tree over labels, most frequent first."""
    num_labels = len(counts)
    children = np.full((2 * num_labels - 1, 2), -1, np.int32)
    weights = counts + [10**15] * (num_labels - 1)
    leaf, node = num_labels - 1, num_labels
    for parent in range(num_labels, 2 * num_labels - 1):
        weight = 0
        for side in range(2):
            if leaf >= 0 and weights[leaf] < weights[node]:
                child, leaf = leaf, leaf - 1
            else:
                child, node = node, node + 1
            children[parent, side] = child
            weight += weights[child]
        weights[parent] = weight
    return children


@kernel
def hash_byte(state: int, byte: Any) -> Any:
    """Return the FNV-1a hash with one more byte; the library takes bytes for signed."""
    value = np.int64(byte)
    if value >= 0x80:
        value |= 0xFFFFFF00
    return ((state ^ value) * _HASH_PRIME) & _MASK32


@kernel
def _fill_ngrams(ngrams: Any, keys: Any, values: Any) -> None:
    mask = len(keys) - 1
    for number in range(len(ngrams)):
        slot = np.int64(ngrams[number, 0]) & mask
        while keys[slot] >= 0:
            slot = (slot + 1) & mask
        keys[slot] = ngrams[number, 0]
        values[slot] = ngrams[number, 1]


@kernel
def _fill_words(word_bytes: Any, starts: Any, slots: Any) -> None:
    mask = len(slots) - 1
    for word in range(len(starts) - 1):
        state = HASH_START
        for at in range(starts[word], starts[word + 1]):
            state = hash_byte(state, word_bytes[at])
        slot = state & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = word
