"""Markdown (CommonMark with tables and strikethrough) to plain text.

What is kept: paragraphs, headings, list items, code, table cells, labels of links, descriptions of
images. What goes: their marks, addresses, HTML tags and comments. A YAML head becomes metadata.

The parser takes more than linear time where thousands of brackets follow one another without a
blank line: a text with more than `MAX_MARKS` marks in one block is not converted.
"""

from __future__ import annotations

import re
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from assets.sources.formats.plain_text import Plain, join_lines, unescape_entities
from assets.sources.formats.record import UnusableError

MAX_MARKS = 20_000
_MARKS = re.compile(r"[\[\]*_`<!~&\\]")
_HEAD = re.compile(r"---[ \t]*\n(.{0,8192}?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_HEAD_LINE = re.compile(r"([A-Za-z_][\w-]{0,40}):[ \t]*(.{0,1000})")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,2000}>")
_parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def markdown_to_text(source: str) -> Plain:
    """Return the plain text of a Markdown document.

    Raises:
        UnusableError: it has too many marks in one block, or is nested too deep.
    """
    metadata: dict[str, Any] = {}
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    head = _HEAD.match(source)
    if head is not None:
        source = source[head.end() :]
        metadata["front_matter"] = {
            match[1]: match[2].strip("\"' ")
            for match in map(_HEAD_LINE.fullmatch, head[1].split("\n"))
            if match is not None
        }
    for block in source.split("\n\n"):
        if len(block) > MAX_MARKS and len(_MARKS.findall(block)) > MAX_MARKS:
            raise UnusableError("too_complex", f"more than {MAX_MARKS:,d} marks in one block")
    try:
        tokens = _parser.parse(source)
    except RecursionError:
        raise UnusableError("too_complex", "nested too deep") from None
    writer = _Writer()
    for token in tokens:
        writer.write(token)
    title = writer.title
    if title:
        metadata["title"] = title
    return Plain(join_lines(writer.lines), metadata)


class _Writer:
    """Writes the blocks of a document as lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.title = ""
        self._lists: list[int | None] = []
        """Next number of each open list, None for bullets."""
        self._marker = ""
        self._cells: list[str] | None = None
        self._in_heading = False

    def write(self, token: Token) -> None:
        """Write one token of the parser's flat list."""
        kind = token.type
        if kind == "inline":
            self._inline(token)
        elif kind in ("fence", "code_block"):
            self.lines += [*token.content.rstrip("\n").split("\n"), ""]
        elif kind == "html_block":
            text = unescape_entities(_TAG.sub("", _without_comments(token.content))).strip()
            self.lines += [*text.split("\n"), ""] if text else []
        elif kind.endswith(("list_open", "list_close", "item_open")):
            self._list(token)
        elif kind.startswith(("t", "heading")):
            self._table_or_heading(kind)
        elif kind == "paragraph_close" and not token.hidden:
            self.lines.append("")

    def _list(self, token: Token) -> None:
        if token.type == "list_item_open":
            number = self._lists[-1]
            self._marker = "- " if number is None else f"{number}. "
            if number is not None:
                self._lists[-1] = number + 1
        elif token.nesting == 1:
            start = int(token.attrGet("start") or 1) if token.type[0] == "o" else None
            self._lists.append(start)
        else:
            self._lists.pop()
            self.lines.append("")

    def _table_or_heading(self, kind: str) -> None:
        if kind == "tr_open":
            self._cells = []
        elif kind == "tr_close":
            self.lines.append(" | ".join(self._cells or []))
            self._cells = None
        elif kind == "heading_open":
            self._in_heading = True
            self.lines.append("")
        elif kind in ("heading_close", "table_close"):
            self._in_heading = False
            self.lines.append("")

    def _inline(self, token: Token) -> None:
        text = "".join(_inline_text(child) for child in token.children or [])
        if self._cells is not None:
            self._cells.append(text.strip())
            return
        if self._in_heading and not self.title:
            self.title = text.strip()
        self.lines += (self._marker + text).split("\n")
        self._marker = ""


def _inline_text(token: Token) -> str:
    if token.type in ("text", "code_inline"):
        return token.content
    if token.type == "image":
        return "".join(_inline_text(child) for child in token.children or [])
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    if token.type == "html_inline" and token.content.lower().startswith("<br"):
        return "\n"
    return ""


def _without_comments(text: str) -> str:
    """Return HTML without its comments; one that is never closed is text."""
    pieces = []
    position = 0
    while (start := text.find("<!--", position)) >= 0:
        end = text.find("-->", start + 4)
        if end < 0:
            break
        pieces.append(text[position:start])
        position = end + 3
    return "".join([*pieces, text[position:]])
