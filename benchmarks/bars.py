"""What a measurement must not exceed, and whether it does."""

from __future__ import annotations


def verdict(found: float, most: float) -> str:
    """Return ``found``, two digits behind the point, with PASS or FAIL against its bar."""
    return f"{found:.2f}, {'PASS' if found <= most else 'FAIL'} (<= {most:.3g})"
