"""Lists of domains and words that a user supplies: one a line, `#` starts a comment.

A list is kept as sorted 64-bit hashes, 8 bytes for each entry, so that one of millions of domains
fits into every worker. Entries are compared in lower case.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import xxhash

from assets.errors import ConfigurationError

MAX_LINE_BYTES = 4096


class WordList:
    """A set of entries that can be asked for one."""

    def __init__(self, hashes: np.ndarray) -> None:
        self._hashes = hashes

    def __len__(self) -> int:
        return len(self._hashes)

    def __contains__(self, entry: str) -> bool:
        value = np.uint64(xxhash.xxh3_64_intdigest(entry.lower().encode()))
        place = int(np.searchsorted(self._hashes, value))
        return place < len(self._hashes) and self._hashes[place] == value


@cache
def read_word_list(path: str | None) -> WordList:
    """Return the list in a file; None is an empty one.

    Raises:
        ConfigurationError: the file cannot be read, is not UTF-8, or has a line that is no entry.
    """
    return WordList(np.unique(np.array([*_hashes(path)] if path else [], np.uint64)))


def _hashes(path: str) -> list[int]:
    hashes = []
    try:
        with Path(path).open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                entry = line.partition("#")[0].strip().lower()
                if len(entry) > MAX_LINE_BYTES or " " in entry:
                    raise ConfigurationError(
                        f"{path}: line {number} is not one word or domain; one a line is expected"
                    )
                if entry:
                    hashes.append(xxhash.xxh3_64_intdigest(entry.encode()))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: the list cannot be read: {error}") from None
    return hashes


@cache
def list_sha256(path: str | None) -> str | None:
    """Return the SHA-256 of a list's file in hex, for the stage fingerprint.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    if path is None:
        return None
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigurationError(f"{path}: the list cannot be read: {error}") from None
