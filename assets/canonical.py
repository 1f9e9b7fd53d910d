"""Canonical JSON: the bytes that are hashed and written, one form for one value."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """Return `value` as UTF-8 JSON with sorted keys, no spaces and one trailing newline.

    Raises:
        ValueError: the value holds NaN or an infinity.
    """
    text = json.dumps(
        value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return text.encode() + b"\n"


def fingerprint(**inputs: Any) -> str:
    """Return the hex SHA-256 of named inputs; equal inputs, equal fingerprint.

    An input that is None is left out, so that a setting added later does not change the
    fingerprints of roots that do not use it.
    """
    present = {name: value for name, value in inputs.items() if value is not None}
    return hashlib.sha256(canonical_json(present)).hexdigest()
