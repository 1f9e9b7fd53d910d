"""Manual pages (roff with the man macros) to plain text, in one pass over their lines.

Headings, paragraphs, tagged lists, examples and tables are kept; fonts, spacing, conditions for
typesetters and macro definitions go. Pages in mdoc, the BSDs' own macros, are read by `mdoc`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from assets.sources.formats.mdoc import mdoc_line
from assets.sources.formats.plain_text import (
    BREAK,
    Plain,
    Verbatim,
    join_paragraphs,
    without_marks,
)
from assets.sources.formats.record import UnusableError
from assets.sources.formats.roff_escapes import unescape

_REQUEST = re.compile(r"[.'][ \t]*([^\s\"\\]{0,30})[ \t]*(.*)", re.DOTALL)
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|(\S+)')
_PARAGRAPHS = frozenset({"PP", "P", "LP", "sp", "HP", "Pp", "bp"})
_ALTERNATING = frozenset({"BR", "RB", "BI", "IB", "IR", "RI"})
_FONTS = frozenset({"B", "I", "SM", "SB", "R", "CW", "UL"})
_BEGIN_LITERAL = frozenset({"nf", "EX", "Vb", "DS"})
_END_LITERAL = frozenset({"fi", "EE", "Ve", "DE"})
_SKIPPED_BLOCKS = frozenset({"de", "de1", "am", "am1", "ig", "dei"})
_HEADINGS = frozenset({"SH", "SS", "Sh", "Ss"})
_CELL = re.compile(r"T\{|T\}")


MAX_STRING = 200
MAX_STRINGS = 1000
MAX_STRING_USES = 200_000
"""Uses of strings in a page, each of which may grow it by `MAX_STRING` characters."""
MAX_CONDITIONS = 20
"""Conditions on one line that are looked into; a further one is dropped with its line."""


def man_to_text(source: str) -> Plain:
    """Return the plain text of a manual page.

    Raises:
        UnusableError: the page only points to another file, or uses strings without measure.
    """
    if source.count("\\*") > MAX_STRING_USES:
        raise UnusableError("too_complex", f"more than {MAX_STRING_USES:,d} uses of strings")
    page = _Page()
    for line in without_marks(source).replace("\\\n", "").split("\n"):
        page.take(line)
    return page.finish()


class _Page:
    def __init__(self) -> None:
        self._out: list[str] = []
        self._strings: dict[str, str] = {}
        self._metadata: dict[str, Any] = {}
        self._verbatim = Verbatim()
        self._literal: list[str] | None = None
        self._table: list[str] | None = None
        self._skip_until = ""
        self._depth = 0
        """Open braces of a condition that does not hold."""
        self._last_if = False
        self._conditions = 0
        self._tag_follows = False
        self._heading_follows = False
        self._link = ""
        self._pointer = ""

    def take(self, line: str) -> None:
        """Take the next line."""
        if self._skip_until:
            if (line.strip(" \t.'") == "" and line[:1] in (".", "'")) or line.startswith(
                self._skip_until
            ):
                self._skip_until = ""
            return
        if self._depth:
            self._depth += line.count("\\{") - line.count("\\}")
            return
        if self._table is not None and not line.startswith(".TE"):
            self._table.append(line)
            return
        if line[:1] in (".", "'"):
            self._request(line)
        else:
            self._text(unescape(line, self._strings), is_blank=not line.strip())

    def finish(self) -> Plain:
        """Return the page's text."""
        self._end_literal()
        text = join_paragraphs("\n".join(self._out), self._verbatim)
        if not text and self._pointer:
            raise UnusableError("redirect", f"the page only points to {self._pointer[:200]}")
        return Plain(text, self._metadata)

    def _text(self, text: str, *, is_blank: bool = False) -> None:
        if self._literal is not None:
            self._literal.append(text)
            return
        if is_blank:
            self._out.append("")
            return
        if self._heading_follows:
            self._heading_follows = False
            self._out += ["", text, ""]
            return
        self._out.append(text)
        if self._tag_follows:
            self._tag_follows = False
            self._out.append(BREAK)

    def _request(self, line: str) -> None:
        match = _REQUEST.match(line)
        name, rest = (match[1], match[2]) if match is not None else ("", "")
        if name in ("if", "ie", "el"):
            self._condition(name, rest)
        elif name in _SKIPPED_BLOCKS:
            self._skip_until = ".."
        elif name in _HEADINGS:
            self._heading(rest)
        elif name in _PARAGRAPHS:
            self._break()
        elif name in _BEGIN_LITERAL:
            self._end_literal()
            self._literal = []
        elif name in _END_LITERAL:
            self._end_literal()
        elif name in _FONTS or name in _ALTERNATING:
            self._font(name, rest)
        else:
            self._other(name, rest)

    def _font(self, name: str, rest: str) -> None:
        arguments = self._arguments(rest)
        if arguments:
            self._text(("" if name in _ALTERNATING else " ").join(arguments))

    def _heading(self, rest: str) -> None:
        self._end_literal()
        title = " ".join(self._arguments(rest))
        self._out += ["", title, ""]
        self._heading_follows = not title

    def _other(self, name: str, rest: str) -> None:
        if name in ("TP", "TQ"):
            self._break()
            self._tag_follows = True
        elif name == "IP":
            self._item(rest)
        elif name == "br":
            self._text(BREAK)
        elif name == "TH":
            self._title(rest)
        elif name == "ds":
            self._string(rest)
        elif name in ("TS", "TE"):
            self._tables(name)
        else:
            self._link_or_mdoc(name, rest)

    def _string(self, rest: str) -> None:
        key, _, value = rest.partition(" ")
        if len(value) <= MAX_STRING and len(self._strings) < MAX_STRINGS:
            value = unescape(value.lstrip().removeprefix('"'), self._strings)
            # Cut, or strings made of strings would grow without end.
            self._strings[key] = value[:MAX_STRING]

    def _link_or_mdoc(self, name: str, rest: str) -> None:
        if name == "so":
            self._pointer = rest.strip()
        elif name in ("UR", "MT"):
            self._link = "".join(self._arguments(rest)[:1])
        elif name in ("UE", "ME"):
            self._text(f"<{self._link}>" + "".join(self._arguments(rest)[:1]))
        elif name in ("SY", "OP"):
            words = " ".join(self._arguments(rest))
            self._text(words if name == "SY" else f"[{words}]")
        else:
            line = mdoc_line(name, rest, self._metadata)
            if line is not None:
                self._mdoc(line)

    def _mdoc(self, line: str) -> None:
        for number, part in enumerate(line.split("\n\n")):
            if number:
                self._break()
            if part:
                self._text(unescape(part, self._strings))

    def _item(self, rest: str) -> None:
        self._break()
        tag = "".join(self._arguments(rest)[:1])
        if tag in ("\u2022", "*", "-", "o", "\u00b7"):
            self._text("- ")
        elif tag:
            self._text(tag)
            self._text(BREAK)

    def _title(self, rest: str) -> None:
        arguments = self._arguments(rest)
        for key, value in zip(("title", "section"), arguments, strict=False):
            if value:
                self._metadata[key] = value

    def _condition(self, name: str, rest: str) -> None:
        """Evaluate `n` and `t` as a terminal would; no other condition is taken to hold."""
        if name == "el":
            holds = not self._last_if
        else:
            condition, _, rest = rest.partition(" ")
            holds = condition in ("n", "!t")
            self._last_if = holds if name == "ie" else self._last_if
        body = rest.strip()
        if not holds:
            self._depth = max(body.count("\\{") - body.count("\\}"), 0)
        elif body.removeprefix("\\{") and self._conditions < MAX_CONDITIONS:
            self._conditions += 1
            self.take(body.removeprefix("\\{"))
            self._conditions -= 1

    def _break(self) -> None:
        self._text("", is_blank=True)

    def _end_literal(self) -> None:
        lines, self._literal = self._literal, None
        if lines:
            text = "\n".join(line.rstrip().replace(BREAK, "") for line in lines).strip("\n")
            self._out += ["", self._verbatim.put(text), ""]

    def _tables(self, name: str) -> None:
        if name == "TS":
            self._end_literal()
            self._table = []
        elif self._table is not None:
            lines, self._table = self._table, None
            text = "\n".join(_table_rows(lines, self._strings))
            self._out += ["", self._verbatim.put(text), ""]

    def _arguments(self, rest: str) -> list[str]:
        found = _ARGUMENT.finditer(rest.split('\\"', 1)[0])
        texts = (
            (match[1] or "").replace('""', '"') if match[2] is None else match[2] for match in found
        )
        return [unescape(text, self._strings) for text in texts]


def _table_rows(lines: list[str], strings: dict[str, str]) -> list[str]:
    """Return the rows of a tbl table, cells with bars between."""
    separator = "\t"
    start = 0
    if lines and lines[0].rstrip().endswith(";"):
        option = re.search(r"tab[ \t]{0,9}\((.)\)", lines[0])
        separator = option[1] if option else "\t"
        start = 1
    while start < len(lines) and not lines[start].rstrip().endswith("."):
        start += 1
    rows = _joined_blocks(line for line in lines[start + 1 :] if line[:1] not in (".", "'"))
    cells = ([_CELL.sub("", cell).strip() for cell in row.split(separator)] for row in rows)
    return [" | ".join(unescape(cell, strings) for cell in row if cell) for row in cells]


def _joined_blocks(lines: Iterable[str]) -> Iterator[str]:
    """Yield the rows of a table, those with text blocks (T{ to T}) joined from their lines."""
    block: list[str] = []
    for line in lines:
        opens = line.rstrip().endswith("T{")
        if block or opens:
            block.append(line)
            if line.startswith("T}") and not opens:
                yield " ".join(block)
                block = []
        elif line.strip("_= \t"):
            yield line
    if block:
        yield " ".join(block)
