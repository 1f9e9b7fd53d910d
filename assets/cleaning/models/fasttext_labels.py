"""The most probable label of texts by a small fastText model, in one kernel.

The library looks every character n-gram up in a hash map of nodes; here it is one place of a flat
table, which takes a quarter of the time. Everything else is what the library does, in its order and
in float32, so that labels and scores are equal to the last bit (a test compares them).
"""

# ruff: noqa: SIM110 - numba compiles loops and comparisons best
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.models.fasttext_model import HASH_START, SmallModel, hash_byte
from assets.cleaning.text_column import text_buffers
from assets.kernel import kernel

_LESS, _GREATER = 0x3C, 0x3E
"""What the library puts around a word before it takes n-grams."""
_LABEL_PREFIX = np.frombuffer(b"__label__", np.uint8)
_FLOOR = 1e-5
"""Added to a probability before its logarithm, as the library does."""


def predict_labels(model: SmallModel, lines: pa.LargeStringArray) -> tuple[list[str], list[float]]:
    """Return the most probable label of each text and its probability (float32), as the library.

    No text has a line feed. Memory: 40 bytes for each text, and one text.
    """
    data, offsets = text_buffers(lines)
    labels = np.empty(len(lines), np.int64)
    scores = np.empty(len(lines), np.float32)
    _predict_all(
        data, offsets, model.word_bytes, model.word_starts, model.word_slots, model.ngram_keys,
        model.ngram_rows, model.rows, model.output, model.children, model.shape, labels, scores,
    )  # fmt: skip
    return [model.labels[label] for label in labels.tolist()], scores.tolist()


@kernel
def _find_word(token: Any, size: int, word_bytes: Any, starts: Any, slots: Any) -> Any:
    """Return the word of the bytes token[1 : size + 1], -1 if it is none."""
    mask = len(slots) - 1
    state = HASH_START
    for at in range(1, size + 1):
        state = hash_byte(state, token[at])
    slot = state & mask
    while slots[slot] >= 0:
        word = np.int64(slots[slot])
        start = starts[word]
        if starts[word + 1] - start == size:
            at = 0
            while at < size and word_bytes[start + at] == token[1 + at]:
                at += 1
            if at == size:
                return word
        slot = (slot + 1) & mask
    return -1


@kernel
def _add_row(hidden: Any, rows: Any, row: Any) -> None:
    for index in range(len(hidden)):
        hidden[index] += rows[row, index]


@kernel
def _add_ngrams(
    token: Any, size: int, shape: Any, keys: Any, ngram_rows: Any, rows: Any, hidden: Any
) -> int:
    """Add the vectors of the n-grams of token[:size], which has its marks; return how many."""
    mask = len(keys) - 1
    added = 0
    for start in range(size):
        if token[start] & 0xC0 == 0x80:
            continue
        state = HASH_START
        at, length = start, 1
        while at < size and length <= shape[1]:
            state = hash_byte(state, token[at])
            at += 1
            while at < size and token[at] & 0xC0 == 0x80:
                state = hash_byte(state, token[at])
                at += 1
            if length >= shape[0] and not (length == 1 and (start == 0 or at == size)):
                key = state % shape[2]
                slot = key & mask
                while keys[slot] >= 0:
                    if keys[slot] == key:
                        _add_row(hidden, rows, np.int64(ngram_rows[slot]))
                        added += 1
                        break
                    slot = (slot + 1) & mask
            length += 1
    return added


@kernel
def _take_token(data: Any, at: int, end: int, token: Any) -> tuple[int, int]:
    """Copy the next word to token[1:]; return (where it ends, its bytes: 0 at the end)."""
    while at < end and _is_separator(data[at]):
        at += 1
    size = 0
    while at < end and not _is_separator(data[at]):
        size += 1
        token[size] = data[at]
        at += 1
    return at, size


@kernel
def _is_separator(byte: Any) -> Any:
    return byte == 0x20 or 0x09 <= byte <= 0x0D or byte == 0


@kernel
def _is_label(token: Any, size: int) -> bool:
    """Return whether token[1 : size + 1] begins like a label, and so is no word if unknown."""
    if size < len(_LABEL_PREFIX):
        return False
    for at in range(len(_LABEL_PREFIX)):
        if token[1 + at] != _LABEL_PREFIX[at]:
            return False
    return True


@kernel
def _predict_all(
    data: Any,
    offsets: Any,
    word_bytes: Any,
    word_starts: Any,
    word_slots: Any,
    keys: Any,
    ngram_rows: Any,
    rows: Any,
    output: Any,
    children: Any,
    shape: Any,
    labels: Any,
    scores: Any,
) -> None:
    longest = 0
    for number in range(len(offsets) - 1):
        longest = max(longest, offsets[number + 1] - offsets[number])
    token = np.empty(longest + 2, np.uint8)
    token[0] = _LESS
    hidden = np.empty(rows.shape[1], np.float32)
    nodes = np.empty(len(children), np.int64)
    node_scores = np.empty(len(children), np.float32)
    for number in range(len(offsets) - 1):
        hidden[:] = 0
        added = _add_words(
            data, offsets[number], offsets[number + 1], token, word_bytes, word_starts, word_slots,
            keys, ngram_rows, rows, shape, hidden,
        )  # fmt: skip
        _add_row(hidden, rows, 0)
        share = np.float32(1.0 / (added + 1))
        for index in range(len(hidden)):
            hidden[index] *= share
        labels[number], scores[number] = _descend(hidden, output, children, nodes, node_scores)


@kernel
def _add_words(
    data: Any,
    at: int,
    end: int,
    token: Any,
    word_bytes: Any,
    word_starts: Any,
    word_slots: Any,
    keys: Any,
    ngram_rows: Any,
    rows: Any,
    shape: Any,
    hidden: Any,
) -> int:
    """Add the vectors of the words of data[at:end] and of their n-grams; return how many."""
    added = 0
    while True:
        at, size = _take_token(data, at, end, token)
        if size == 0:
            return added
        word = _find_word(token, size, word_bytes, word_starts, word_slots)
        if word == 0:  # the mark of an end, written out: what follows is not read
            return added
        if word < 0 and _is_label(token, size):
            continue
        if word >= 0:
            _add_row(hidden, rows, word)
            added += 1
        token[size + 1] = _GREATER
        added += _add_ngrams(token, size + 2, shape, keys, ngram_rows, rows, hidden)


@kernel
def _log(value: Any) -> Any:
    return np.float32(math.log(np.float64(value) + _FLOOR))


@kernel
def _descend(
    hidden: Any, output: Any, children: Any, nodes: Any, node_scores: Any
) -> tuple[int, Any]:
    """Return the best leaf of the tree and its probability; branches that are worse are left."""
    num_labels = len(output)
    best, best_score = -1, np.float32(0.0)
    depth = 1
    nodes[0], node_scores[0] = len(children) - 1, np.float32(0.0)
    least = _log(np.float32(0.0))
    while depth:
        depth -= 1
        node, score = nodes[depth], node_scores[depth]
        if score < least or (best >= 0 and score < best_score):
            continue
        if children[node, 0] < 0:
            best, best_score = node, score
            continue
        product = np.float32(0.0)
        for index in range(len(hidden)):
            product += output[node - num_labels, index] * hidden[index]
        share = np.float32(1.0 / np.float64(np.float32(1.0) + math.exp(-product)))
        nodes[depth], node_scores[depth] = children[node, 1], score + _log(share)
        rest = np.float32(1.0 - np.float64(share))
        nodes[depth + 1], node_scores[depth + 1] = children[node, 0], score + _log(rest)
        depth += 2
    return best, math.exp(best_score)
