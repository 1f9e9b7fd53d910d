"""fastText models by path: their hash for the fingerprint, and the model; one error for both."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import fasttext

from assets.errors import ConfigurationError


@cache
def fasttext_sha256(path: str, setting: str) -> str:
    """Return the SHA-256 of a model file in hex.

    Args:
        path: the file.
        setting: what names it in the configuration, for the error.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigurationError(
            f"{setting}: {path} cannot be read: {error.strerror or error}"
        ) from error


@cache
def load_fasttext(path: str, setting: str) -> Any:
    """Return the model of a file, as the library reads it; raises as `fasttext_sha256` does."""
    fasttext_sha256(path, setting)  # one error for a file that is not there
    try:
        return fasttext.load_model(path)
    except (ValueError, RuntimeError) as error:
        raise ConfigurationError(f"{setting}: {path} is no fastText model: {error}") from error
