"""Arrays as objects of a root: plain `.npy` files, read whole or mapped."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from assets.errors import IntegrityError, RootError
from assets.root import ObjectRef, Root


def save_array(array: np.ndarray, path: Path) -> None:
    """Write an array as a plain `.npy` file."""
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def load_small(root: Root, reference: ObjectRef) -> np.ndarray:
    """Return a whole array, checked by its SHA-256."""
    array: np.ndarray = np.load(io.BytesIO(root.read_bytes(reference)), allow_pickle=False)
    return array


def map_plain(path: Path, kind: np.dtype) -> np.ndarray:
    """Return what a file without a header holds as one array, mapped."""
    if not path.stat().st_size:
        return np.empty(0, kind)
    return np.asarray(np.memmap(path, kind, "r")).view(np.ndarray)


def local_path(root: Root, reference: ObjectRef) -> Path:
    """Return where an array can be mapped; its size is checked.

    Raises:
        IntegrityError: it is missing or has another size.
        RootError: the root is no local folder.
    """
    size = root.storage.size(reference.name)
    if size != reference.size:
        raise IntegrityError(
            f"{root.url}: {reference.name} has {size or 0:,d} bytes, its record says "
            f"{reference.size:,d}; run `unique` again, it makes a damaged run anew"
        )
    path = root.storage.local_path(reference.name)
    if path is None:
        raise RootError(f"{root.url}: runs can be mapped from a local folder only, in this version")
    return path
