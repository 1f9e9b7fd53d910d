"""Load a tokenizer.json and settle everything about it that a shard depends on.

What a document says must never change what it is: a special-token string inside a text is encoded
as plain text, and a tokenizer under which a text could still produce the EOS id is refused here.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import tokenizers

from assets.errors import ConfigurationError
from olmo_loader.dtypes import smallest_token_dtype

SHOWN_HOLES = 10


@dataclass(frozen=True, kw_only=True)
class LoadedTokenizer:
    """A tokenizer with all that documents need from it; `engine.py` encodes with it."""

    data: bytes
    """tokenizer.json."""
    reference: tokenizers.Tokenizer
    """The `tokenizers` library's own, set to encode special-token strings as plain text."""
    sha256: str
    """Of the bytes of tokenizer.json: the tokenizer's identity."""
    vocab_size: int
    """Largest id + 1; ids that stand for nothing (holes) count."""
    eos_token_id: int
    pad_token_id: int
    bos_token_id: int | None
    """Begins every document; None: nothing does."""
    special_tokens: tuple[str, ...]
    """Strings of the special tokens, longest first; inside a text they are plain text."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Smallest little-endian type of at least 16 bits that holds every id."""
        return smallest_token_dtype(self.vocab_size)

    @property
    def bos_policy(self) -> str:
        """What shard headers say stands before a document: `none` or `document:<id>`."""
        return bos_policy(self.bos_token_id)

    @property
    def special_pattern(self) -> str | None:
        """Regular expression (RE2) of the special-token strings; None if there are none."""
        return "|".join(re.escape(token) for token in self.special_tokens) or None


def bos_policy(bos_token_id: int | None) -> str:
    """Return the BOS policy of headers and fingerprints."""
    return "none" if bos_token_id is None else f"document:{bos_token_id}"


def load_tokenizer(
    data: bytes,
    *,
    eos_token: str,
    pad_token: str | None,
    where: str,
    bos_token: str | None = None,
    allow_holes: bool = False,
) -> LoadedTokenizer:
    """Load the tokenizer in the bytes of a tokenizer.json; both forms of BPE merges are read.

    Args:
        data: the file.
        eos_token: ends every document.
        pad_token: pads and masks; the EOS token when None.
        where: name of the file, for errors.
        bos_token: begins every document; nothing does when None.
        allow_holes: accept ids below the largest one that stand for nothing.

    Raises:
        ConfigurationError: no tokenizer, an empty one, one with holes, one that is random (BPE
            dropout), a token that it does not have, or an EOS or BOS that a text could produce.
    """
    reference = _parse(data, where)
    vocabulary = _vocabulary(reference, where, allow_holes=allow_holes)
    _make_exact(reference, where)
    added = reference.get_added_tokens_decoder().values()
    special = sorted((token.content for token in added if token.special), key=_longest_first)

    def find(key: str, token: str) -> int:
        return _find(vocabulary, special, token, key=key, where=where)

    ids = {"eos_token": find("eos_token", eos_token)}
    if bos_token is not None:
        ids["bos_token"] = find("bos_token", bos_token)
    for token, token_id in zip((eos_token, bos_token), ids.values(), strict=False):
        _refuse_reachable(reference, str(token), token_id, where)
    return LoadedTokenizer(
        data=data,
        reference=reference,
        sha256=hashlib.sha256(data).hexdigest(),
        vocab_size=max(vocabulary.values()) + 1,
        eos_token_id=ids["eos_token"],
        pad_token_id=find("pad_token", eos_token if pad_token is None else pad_token),
        bos_token_id=ids.get("bos_token"),
        special_tokens=tuple(special),
    )


def _parse(data: bytes, where: str) -> tokenizers.Tokenizer:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise ConfigurationError(f"{where}: is not a tokenizer.json: {error}") from error
    if not isinstance(value, dict) or "model" not in value:
        raise ConfigurationError(
            f"{where}: has no `model`; a tokenizer.json of the `tokenizers` library is needed"
        )
    try:
        return tokenizers.Tokenizer.from_str(data.decode())
    except Exception as error:  # the library raises Exception itself, with the reason
        raise ConfigurationError(
            f"{where}: tokenizers {tokenizers.__version__} cannot load it: {error}"
        ) from error


def _vocabulary(
    reference: tokenizers.Tokenizer, where: str, *, allow_holes: bool
) -> dict[str, int]:
    """Return the id of each token, added ones included."""
    found: dict[str, int] = reference.get_vocab(with_added_tokens=True)
    if not found:
        raise ConfigurationError(f"{where}: the vocabulary is empty; give a trained tokenizer")
    if not allow_holes:
        _refuse_holes(found, where)
    return found


def _refuse_holes(vocabulary: dict[str, int], where: str) -> None:
    size = max(vocabulary.values()) + 1
    is_used = np.zeros(size, bool)
    is_used[list(vocabulary.values())] = True
    holes = np.flatnonzero(~is_used)
    if not len(holes):
        return
    shown = ", ".join(map(str, holes[:SHOWN_HOLES].tolist()))
    more = f" and {len(holes) - SHOWN_HOLES:,d} more" if len(holes) > SHOWN_HOLES else ""
    raise ConfigurationError(
        f"{where}: {len(holes):,d} of {size:,d} ids stand for nothing: {shown}{more}. Give them "
        "tokens in `added_tokens`, renumber the vocabulary, or accept rows that are never trained "
        "with tokenizer.allow_vocabulary_holes: true"
    )


def _make_exact(engine: tokenizers.Tokenizer, where: str) -> None:
    """Let the tokenizer encode every text whole, as it stands, and the same way each time."""
    if getattr(engine.model, "dropout", None):
        raise ConfigurationError(
            f"{where}: BPE dropout {engine.model.dropout} gives other ids on every run; "
            'set "dropout" to null in the file'
        )
    # A file saved from training may cut or pad what it encodes: documents would lose their ends.
    engine.no_truncation()
    engine.no_padding()
    engine.encode_special_tokens = True


def _find(
    vocabulary: dict[str, int], special: list[str], token: str, *, key: str, where: str
) -> int:
    found = vocabulary.get(token)
    if found is None:
        similar = difflib.get_close_matches(token, special, n=3, cutoff=0.3) or special[:10]
        shown = ", ".join(repr(item) for item in similar)
        hint = f"special tokens like it: {shown}" if similar else "it has no special tokens"
        raise ConfigurationError(
            f"{where}: tokenizer.{key} {token!r} is not in the vocabulary; {hint}"
        )
    return found


def _refuse_reachable(
    reference: tokenizers.Tokenizer, token: str, token_id: int, where: str
) -> None:
    for text in (token, f"a{token}b", f" {token}\n"):
        if token_id in reference.encode(text, add_special_tokens=False).ids:
            raise ConfigurationError(
                f"{where}: the text {text!r} encodes to the id {token_id} of {token!r}, so a "
                "document could end or begin itself; mark it as special in `added_tokens`"
            )


def _longest_first(token: str) -> tuple[int, str]:
    return (-len(token), token)


def library_versions() -> dict[str, str]:
    """Return the versions that decide ids, for fingerprints."""
    return {"tokenizers": tokenizers.__version__}
