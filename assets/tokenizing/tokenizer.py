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

BOS_POLICY = "none"
"""No token is put before a document; the EOS after each one is the only id that is added."""


@dataclass(frozen=True, kw_only=True)
class LoadedTokenizer:
    """A tokenizer that is ready to encode documents."""

    engine: tokenizers.Tokenizer
    sha256: str
    """Of the bytes of tokenizer.json: the tokenizer's identity."""
    vocab_size: int
    """Largest id + 1; ids that stand for nothing (holes) count."""
    eos_token_id: int
    pad_token_id: int
    special_tokens: tuple[str, ...]
    """Strings of the special tokens, longest first; inside a text they are plain text."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Smallest little-endian type of at least 16 bits that holds every id."""
        return smallest_token_dtype(self.vocab_size)

    @property
    def special_pattern(self) -> str | None:
        """Regular expression (RE2) of the special-token strings; None if there are none."""
        return "|".join(re.escape(token) for token in self.special_tokens) or None


def load_tokenizer(
    data: bytes, *, eos_token: str, pad_token: str | None, where: str
) -> LoadedTokenizer:
    """Load the tokenizer in the bytes of a tokenizer.json; both forms of BPE merges are read.

    Args:
        data: the file.
        eos_token: ends every document.
        pad_token: pads and masks; the EOS token when None.
        where: name of the file, for errors.

    Raises:
        ConfigurationError: no tokenizer, an empty one, one that is random (BPE dropout), a token
        that
            it does not have, or an EOS that a document's text could produce.
    """
    engine = _parse(data, where)
    vocabulary: dict[str, int] = engine.get_vocab(with_added_tokens=True)
    if not vocabulary:
        raise ConfigurationError(f"{where}: the vocabulary is empty; give a trained tokenizer")
    _make_exact(engine, where)
    added = engine.get_added_tokens_decoder().values()
    special = sorted((token.content for token in added if token.special), key=_longest_first)
    eos_token_id = _find(vocabulary, special, eos_token, key="eos_token", where=where)
    pad = eos_token if pad_token is None else pad_token
    loaded = LoadedTokenizer(
        engine=engine,
        sha256=hashlib.sha256(data).hexdigest(),
        vocab_size=max(vocabulary.values()) + 1,
        eos_token_id=eos_token_id,
        pad_token_id=_find(vocabulary, special, pad, key="pad_token", where=where),
        special_tokens=tuple(special),
    )
    _refuse_reachable_eos(loaded, eos_token, where)
    return loaded


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


def _refuse_reachable_eos(loaded: LoadedTokenizer, eos_token: str, where: str) -> None:
    for text in (eos_token, f"a{eos_token}b", f" {eos_token}\n"):
        ids = loaded.engine.encode(text, add_special_tokens=False).ids
        if loaded.eos_token_id in ids:
            raise ConfigurationError(
                f"{where}: the text {text!r} encodes to the EOS id {loaded.eos_token_id}, so a "
                f"document could end itself; mark {eos_token!r} as special in `added_tokens`"
            )


def _longest_first(token: str) -> tuple[int, str]:
    return (-len(token), token)


def library_versions() -> dict[str, str]:
    """Return the versions that decide ids, for fingerprints."""
    return {"tokenizers": tokenizers.__version__}
