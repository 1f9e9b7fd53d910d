"""Where a root's catalog lies."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from assets.root import Root
from assets.sources.hash_cache import CACHE_VARIABLE, cache_dir

SUFFIX = "catalog.duckdb"


def catalog_path(root: Root) -> Path:
    """Return the catalog's path; its folder exists.

    A local root `data/demo` has `data/demo.catalog.duckdb`. With `OLMO_DATA_CACHE` set, or for a
    remote root, the file lies in the cache folder under a hash of the root's url.
    """
    local = root.storage.local_path(SUFFIX)
    if local is not None and not os.environ.get(CACHE_VARIABLE):
        folder = local.parent.absolute()
        folder.parent.mkdir(parents=True, exist_ok=True)
        return folder.with_name(f"{folder.name}.{SUFFIX}")
    url = str(local.parent.absolute()) if local is not None else root.url
    name = hashlib.sha256(url.encode()).hexdigest()[:16]
    return cache_dir() / f"{name}.{SUFFIX}"
