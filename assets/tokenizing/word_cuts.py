"""Cut texts behind words where no tokenization crosses, so that a slow encoder gets little alone.

The splits named here part an ASCII letter or digit from a space, a comma or a line end behind it:
no word, number or contraction goes on with one, and nothing that begins with one looks back. No
normalization form joins either of them with the other. So the ids of `"...a, ..."` are those of
`"...a"` followed by those of `", ..."`. Tokenizers of any other kind are not cut for.
"""

from __future__ import annotations

import string
from typing import Any

import numpy as np
import pyarrow as pa

from assets.tokenizing.training import WORDS

Rows = np.ndarray[Any, np.dtype[np.int64]]

_SPLITS = frozenset(
    (
        WORDS,
        WORDS.replace("{1,3}", ""),
        r"(?:'s|'t|'re|'ve|'m|'ll|'d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    )
)
"""Of cl100k, Llama 3 and OLMo 2; of Qwen 2; of GPT-2, written in two ways."""
_FORMS = frozenset(("NFC", "NFD", "NFKC", "NFKD"))
_BEHIND = " ,\n"
_APART = 6
"""Bits: of each 64 bytes one place at most is cut, so that pieces stay few."""


def cuts_behind_words(value: dict[str, Any]) -> bool:
    """Return whether texts may be cut for the tokenizer of a decoded tokenizer.json."""
    steps = _steps(value.get("pre_tokenizer"), "pretokenizers")
    forms = _steps(value.get("normalizer"), "normalizers")
    added = [token for token in value.get("added_tokens") or [] if not token.get("special")]
    return (
        value["model"].get("type") == "BPE"
        and not value["model"].get("dropout")
        and all(form.get("type") in _FORMS for form in forms)
        and _is_split_of_words(steps)
        and not any(_reaches_over(token) for token in added)
    )


def _reaches_over(token: dict[str, Any]) -> bool:
    """Return whether an added token may lie across a cut, or see one."""
    if token.get("lstrip") or token.get("rstrip") or token.get("single_word"):
        return True
    return len(_cuts(np.frombuffer(token["content"].encode(), np.uint8))) > 0


def _steps(value: dict[str, Any] | None, name: str) -> list[dict[str, Any]]:
    if value is None:
        return []
    return list(value[name]) if value.get("type") == "Sequence" else [value]


def _is_split_of_words(steps: list[dict[str, Any]]) -> bool:
    """Return whether the last step is of bytes, and it or one known split before it of words."""
    if not steps or steps[-1].get("type") != "ByteLevel":
        return False
    if steps[-1].get("add_prefix_space", True):
        return False
    *before, last = steps
    if not before:
        return bool(last.get("use_regex", True))
    split = before[0]
    return (
        len(before) == 1
        and not last.get("use_regex", True)
        and split.get("type") == "Split"
        and split["pattern"].get("Regex") in _SPLITS
        and (split.get("behavior"), bool(split.get("invert")))
        in (("Isolated", False), ("Removed", True))
    )


def cut_behind_words(texts: pa.Array, rows: Rows) -> tuple[pa.Array, Rows]:
    """Return the texts, some of them cut behind words, and where each begins among the pieces.

    Args:
        texts: large_string, no nulls.
        rows: (some,), ascending: the texts that are cut.

    Returns:
        the pieces of all texts in order, which share the buffer of `texts`, and
        (texts + 1,): text i is pieces[starts[i]:starts[i + 1]].
    """
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.frombuffer(data, np.uint8)
    cuts = np.concatenate(
        [
            np.zeros(0, np.int64),
            *(bounds[row] + _cuts(letters[bounds[row] : bounds[row + 1]]) for row in rows.tolist()),
        ]
    )
    starts = np.arange(len(bounds)) + np.searchsorted(cuts, bounds)
    ends = np.sort(np.concatenate([bounds, cuts]))
    pieces = pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), data)
    return pieces, starts


def _cuts(text: np.ndarray[Any, np.dtype[np.uint8]]) -> Rows:
    """Return offsets where a space, a comma or a line end follows an ASCII letter or digit."""
    is_word = _IS_WORD[text[:-1]]
    found = np.flatnonzero(is_word & _IS_BEHIND[text[1:]]) + 1
    is_apart = np.diff(found >> _APART, prepend=-1) != 0
    return np.compress(is_apart, found)


def _table(letters: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    table = np.zeros(256, bool)
    table[list(letters.encode())] = True
    return table


_IS_WORD = _table(string.ascii_letters + string.digits)
_IS_BEHIND = _table(_BEHIND)
