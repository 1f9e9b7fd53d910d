"""Token ids back to text, for people.

This is the only place that imports ``tokenizers``, and only when text is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.published import PublishedDataset
from olmo_loader.records import sha256_hex

Decode = Callable[[Sequence[int]], str]


def open_decoder(data: PublishedDataset) -> Decode:
    """Return a function from ids to text, with the tokenizer the data set was made with.

    Raises:
        ConfigurationError: the package ``tokenizers`` is not installed.
        IntegrityError: the tokenizer's file is not the one the data set names.
    """
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - only for people who ask for text
    except ImportError as error:
        raise ConfigurationError("--text needs the package tokenizers: pip install it") from error
    path = data.place.fetch(data.file.tokenizer["path"], data.file.tokenizer["sha256"])
    content = path.read_bytes()
    if sha256_hex(content) != data.file.tokenizer["sha256"]:
        raise IntegrityError(f"{path}: not the tokenizer that the data set names")
    tokenizer = Tokenizer.from_str(content.decode())

    def decode(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(list(ids), skip_special_tokens=False))

    return decode


def printable(text: str) -> str:
    """Return ``text`` on one line, with everything a terminal could act on escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
