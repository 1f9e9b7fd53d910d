"""What a converter of markup gives: the plain text, and what to say of it in the metadata."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Plain:
    """A text without markup."""

    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    """Title and the like; `left_out` counts by kind what the text does not show."""


def join_lines(lines: list[str]) -> str:
    """Return lines as a text: no spaces at their ends, at most one blank line in a row."""
    text = "\n".join(line.rstrip() for line in lines)
    return _BLANK_LINES.sub("\n\n", text).strip("\n")
