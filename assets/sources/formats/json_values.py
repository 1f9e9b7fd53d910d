"""Values of typed formats as JSON values, for a document's metadata; nothing is dropped.

Times become ISO 8601, decimals their digits, bytes their text or, if they are none, base64; numbers
that JSON does not have become "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from typing import Any


def json_value(value: Any) -> Any:
    """Return a Python value of an Arrow array as a JSON value."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else _name_of(value)
    return _text_of(value)


def _name_of(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _text_of(value: Any) -> str:
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()
