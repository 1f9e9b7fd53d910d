"""Canonical JSON: the bytes that are hashed and written, one form for one value."""

from __future__ import annotations

import hashlib
from typing import Any

from olmo_loader.records import canonical_json

__all__ = ["canonical_json", "fingerprint"]


def fingerprint(**inputs: Any) -> str:
    """Return the hex SHA-256 of named inputs; equal inputs, equal fingerprint.

    An input that is None is left out, so that a setting added later does not change the
    fingerprints of roots that do not use it.
    """
    present = {name: value for name, value in inputs.items() if value is not None}
    return hashlib.sha256(canonical_json(present)).hexdigest()
