"""Bring a tokenizer.json from the hub to a file, when a person asks for it by name.

A run never does: its configuration names a file, whose bytes are pinned.
"""

from __future__ import annotations

import hashlib
import re
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

import tokenizers

from assets.errors import ConfigurationError
from assets.settings.tokens import HUB_NAME

ENDPOINT = "https://huggingface.co"
MAX_BYTES = 256 << 20
TIMEOUT_S = 30.0
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]*")


def download_tokenizer(
    name: str, target: Path, *, revision: str = "main", endpoint: str = ENDPOINT
) -> str:
    """Download the tokenizer.json of a repository and check that `tokenizers` can load it.

    Args:
        name: owner/name.
        target: file to create; one that is there is never replaced.
        revision: branch, tag or commit.
        endpoint: of the hub.

    Returns:
        Hex SHA-256 of the file.

    Raises:
        ConfigurationError: no such name, the hub cannot be reached, the file is there already, or
            what came is no tokenizer.
    """
    if not HUB_NAME.fullmatch(name) or not _REVISION.fullmatch(revision) or ".." in revision:
        raise ConfigurationError(f"{name!r} at {revision!r}: owner/name and a revision are needed")
    if target.exists():
        raise ConfigurationError(f"{target} is there already; give another --output")
    url = f"{endpoint}/{name}/resolve/{quote(revision)}/tokenizer.json"
    data = _read(url)
    try:
        tokenizers.Tokenizer.from_buffer(data)
    except Exception as error:  # the library raises Exception itself, with the reason
        raise ConfigurationError(f"{url} is no tokenizer.json: {error}") from error
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:
        file.write(data)
    return hashlib.sha256(data).hexdigest()


def _read(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310 (http or https)
            data: bytes = answer.read(MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise ConfigurationError(
            f"{url}: {error.code} {error.reason}; gated and private repositories need their file "
            "downloaded by hand: set tokenizer.path to it"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{url} cannot be reached from this machine ({error}); download tokenizer.json "
            "elsewhere, copy it here, and set tokenizer.path to it"
        ) from error
    if len(data) > MAX_BYTES:
        raise ConfigurationError(f"{url} is larger than {MAX_BYTES:,d} bytes; no tokenizer is")
    return data
