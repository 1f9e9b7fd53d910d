"""What `learn` may be asked for; apart, so that a parser of arguments loads no kernel."""

from __future__ import annotations

MAX_ORDER = 5
"""Words of the longest n-gram."""
MIN_BITS, MAX_BITS = 10, 28
"""Of the number of slots of a table."""
DEFAULT_MAX_BYTES = 256 << 20
"""Bytes of text that a model learns from."""
