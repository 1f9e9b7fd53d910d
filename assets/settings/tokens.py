"""Settings of the tokenizer, and of how its tokens are cut into shards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from assets.errors import ConfigurationError
from assets.settings.checks import require

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""owner/name of a repository on the hub."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainTokenizerSettings:
    """A byte-level BPE, trained once on kept documents of the first generation."""

    vocab_size: int
    max_bytes: int = 256 << 20
    """UTF-8 bytes of text the training may read."""

    def __post_init__(self) -> None:
        require(
            self.vocab_size >= 260,
            f"vocab_size: {self.vocab_size} is below 260, the 256 bytes and special tokens",
        )
        require(self.max_bytes >= 1, "max_bytes: must be at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerSettings:
    """The tokenizer: a tokenizer.json by path, or one to be trained."""

    path: str | None = None
    """A file; what is on the hub is brought by `olmo-data tokenizer` first."""
    eos_token: str = "<|endoftext|>"  # noqa: S105 (a token of a vocabulary)
    """Ends every document; never guessed from the vocabulary."""
    pad_token: str | None = None
    """Pads and masks; the EOS token when not set."""
    bos_token: str | None = None
    """Begins every document; null: nothing does. A token of its own, not the EOS."""
    train: TrainTokenizerSettings | None = None
    max_document_tokens: int | None = None
    """Most tokens of a document, EOS and BOS included; null: no limit."""
    long_documents: Literal["drop", "split"] = "drop"
    """What becomes of a longer document: dropped as `too_many_tokens`, or cut into documents of
    `max_document_tokens` that keep its id."""
    max_run_bytes: int | None = 1 << 20
    """Most bytes of letters, digits, white space or other characters in a row, with nothing of
    another kind between them: a document with more is quarantined as `unbroken_run`. The time to
    encode a word grows faster than its length. Null: no limit."""
    mask_spans: tuple[str, ...] = ()
    """Kinds of spans that cleaning left (`email`, ...; `name*` for all that begin so, `*` for all)
    whose tokens nobody should learn to write: shards with any get a label mask. `boilerplate`: the
    lines that the web line rules (RefinedWeb's, as in DCLM) would take out."""
    allow_vocabulary_holes: bool = False
    """Accept a vocabulary with ids that stand for nothing; they cost rows of every embedding."""

    def __post_init__(self) -> None:
        require(
            (self.path is None) != (self.train is None),
            "exactly one of `path` and `train` is needed",
        )
        require(
            self.bos_token is None or self.bos_token != self.eos_token,
            f"bos_token: {self.bos_token!r} ends documents already (eos_token); give another "
            "token, or none: the EOS before a document marks its begin",
        )
        require(
            self.max_run_bytes is None or self.max_run_bytes >= 1024,
            f"max_run_bytes: {self.max_run_bytes} is below 1,024: names and tables would be lost",
        )
        least = 2 if self.bos_token is None else 3
        if self.max_document_tokens is not None and self.max_document_tokens < least:
            raise ConfigurationError(
                f"max_document_tokens: {self.max_document_tokens} is below {least}, one token and "
                "what is put around every document"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardingSettings:
    """How token streams are cut into shards."""

    max_tokens: int = 268_435_456
    min_tokens: int = 262_144
    """A smaller rest of a group stays pending until more documents land."""
    layout: Literal["raw", "tok"] = "raw"
    """`raw`: bare ids that OLMo reads, with sidecars; `tok`: one file per shard, of which only
    Dolma's table and the label mask stay outside."""
    tails: str = "drop"
    """Shards keep all their tokens; what plans do with those behind a shard's last whole instance
    is `ordering.tails`. Stays for configurations that name it: `drop` is its one value."""
    document_order: Literal["landing", "seeded"] = "landing"
    seed: int = 0

    def __post_init__(self) -> None:
        require(
            self.tails == "drop",
            f"tails: {self.tails!r} is no property of shards, which keep all their tokens; leave "
            "it out and set ordering.tails to drop, carry or pad",
        )
        require(self.max_tokens >= 1, f"max_tokens: {self.max_tokens} must be at least 1")
        require(
            0 <= self.min_tokens <= self.max_tokens,
            f"min_tokens: {self.min_tokens:,d} is outside [0, max_tokens {self.max_tokens:,d}]",
        )
