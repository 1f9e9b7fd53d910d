"""What a converter of markup gives: the plain text, and what to say of it in the metadata.

Converters write paragraphs with blank lines between, and put aside what must stay as it is: such a
piece stands in their text as a mark, NUL number NUL. `BREAK` is a line end inside a paragraph.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import Any

BREAK = "\x01"
_BLANK_LINES = re.compile(r"\n{3,}")
_MARK = re.compile(r"\0(\d{1,9})\0")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
_WIDE = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_WIDE_LINE_END = re.compile(f"(?<=[{_WIDE}]) ?\n ?(?=[{_WIDE}])")
_SPACES = re.compile(r"[ \t\n]+")
_LONG_NUMBER = re.compile(r"&#[0-9]{40,};?")


@dataclass(frozen=True, slots=True)
class Plain:
    """A text without markup."""

    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    """Title and the like; `left_out` counts by kind what the text does not show."""


class Verbatim:
    """Pieces that stay as they are while the text around them is joined and cleaned."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def put(self, piece: str) -> str:
        """Put a piece aside and return the mark that stands for it."""
        self._pieces.append(piece)
        return f"\0{len(self._pieces) - 1}\0"

    def restore(self, text: str) -> str:
        """Return a text with the pieces in the place of their marks."""
        return _MARK.sub(lambda match: self._piece(int(match[1])), text)

    def _piece(self, number: int) -> str:
        return self._pieces[number] if number < len(self._pieces) else ""


def without_marks(source: str) -> str:
    """Return a source without the characters that mark pieces and breaks."""
    return source.replace("\0", "").replace(BREAK, "").replace("\r\n", "\n").replace("\r", "\n")


def unescape_entities(text: str) -> str:
    """Return a text with HTML's character references resolved.

    Python refuses to read numbers of thousands of digits; like every other number beyond Unicode,
    one of those stands for U+FFFD.
    """
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text))


def join_lines(lines: list[str]) -> str:
    """Return lines as a text: no spaces at their ends, at most one blank line in a row."""
    text = "\n".join(line.rstrip() for line in lines)
    return _BLANK_LINES.sub("\n\n", text).strip("\n")


def join_paragraphs(text: str, verbatim: Verbatim) -> str:
    """Return a text with each paragraph on one line, and the pieces put aside back in place.

    Between wide characters (Chinese, Japanese) a line end is no space.
    """
    paragraphs = []
    for paragraph in _PARAGRAPH_END.split(text):
        joined = _WIDE_LINE_END.sub("", paragraph.strip())
        joined = _SPACES.sub(" ", joined).strip()
        if joined:
            lines = (line.strip() for line in joined.split(BREAK))
            paragraphs.append("\n".join(line for line in lines if line))
    joined = "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
    return verbatim.restore(joined).strip("\n")
