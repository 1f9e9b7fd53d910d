"""Models that were learned once and never change: `models/<name>/<sha256>/` of a root.

A model is `model.json` and arrays beside it as .npy files (no pickle). The hash is that of
model.json, which names the arrays with their own hashes, so that one hash in a configuration fixes
every byte. Freezing the same model twice is one model.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from assets.canonical import canonical_json
from assets.errors import ConfigurationError, IntegrityError
from assets.root import Root

_RECORD = "model.json"


class Frozen(NamedTuple):
    """A frozen model as it was read."""

    record: dict[str, Any]
    arrays: dict[str, np.ndarray]


def freeze(
    root: Root, name: str, record: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None
) -> str:
    """Write a model and return its hash.

    Raises:
        RootError: it cannot be written.
    """
    files = {key: _npy(array) for key, array in (arrays or {}).items()}
    hashes = {key: hashlib.sha256(data).hexdigest() for key, data in files.items()}
    data = canonical_json({**record, "arrays": hashes})
    sha256 = hashlib.sha256(data).hexdigest()
    folder = f"models/{name}/{sha256}"
    for key, content in files.items():
        root.publish_bytes(f"{folder}/{key}.npy", content)
    root.publish_bytes(f"{folder}/{_RECORD}", data)  # last: a model with a record is whole
    return sha256


@lru_cache(maxsize=8)
def thaw(root_url: str, name: str, sha256: str) -> Frozen:
    """Read a model, every byte of it checked.

    Raises:
        ConfigurationError: the root has no such model.
        IntegrityError: it is damaged.
    """
    root = Root(root_url)
    folder = f"models/{name}/{sha256}"
    try:
        data = root.storage.read(f"{folder}/{_RECORD}")
    except FileNotFoundError:
        raise ConfigurationError(
            f"{root_url} has no {name} model {sha256}: learn it there (olmo-data learn {name}), or "
            f"copy the folder {folder} from the root where it was learned"
        ) from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise IntegrityError(f"{root_url}: {folder}/{_RECORD} is not what its name says")
    record = json.loads(data)
    arrays = {
        key: _read_array(root, f"{folder}/{key}.npy", expected)
        for key, expected in record.pop("arrays").items()
    }
    return Frozen(record, arrays)


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _read_array(root: Root, name: str, expected: str) -> np.ndarray:
    try:
        data = root.storage.read(name)
    except FileNotFoundError:
        raise IntegrityError(f"{root.url}: {name} is missing") from None
    if hashlib.sha256(data).hexdigest() != expected:
        raise IntegrityError(f"{root.url}: {name} is not what its model says")
    array: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
    return array
