"""reStructuredText to plain text, in one pass over its lines.

What is kept: paragraphs, titles, lists, field lists, code and other literal blocks as they are,
table cells with bars between, footnotes, captions, and the content of every directive that shows
any. What goes: underlines, comments, link targets, options, images, indices, roles.

The usual parser knows no directive of Sphinx and drops what it does not know; here an unknown
directive shows its argument and its content.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any

from assets.sources.formats.plain_text import (
    BREAK,
    Plain,
    Verbatim,
    join_paragraphs,
    without_marks,
)
from assets.sources.formats.rst_inline import Substitutions, plain_inline

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,200}[ \t]*")
_SHORT_ADORNMENT = re.compile(r"([=\-~^\"'#*+.`_:])\1{1,200}[ \t]*")
_EXPLICIT = re.compile(r"[ ]{0,80}\.\.(?:[ \t]+(.*)|)")
_DIRECTIVE = re.compile(
    r"(?:\|([^|\n]{1,200})\|[ \t]{0,9})?([A-Za-z][\w:.+-]{0,60})::(?:[ \t](.*))?"
)
_TARGET = re.compile(r"_(`[^`\n]{1,200}`|(?:[^:\\\n]|\\.){1,200}):(?:[ \t].*)?")
_NOTE = re.compile(r"\[(\#?[\w.-]{0,60}|\*)\][ \t]*(.*)")
_OPTION = re.compile(r"[ \t]*:[\w -]{1,40}:(?:[ \t].*)?")
_BULLET = re.compile(r"([*+\u2022-])(?:[ \t]+|$)")
_NUMBER = re.compile(r"(?:\(?[0-9]{1,4}[.)]|\(?#[.)]|\(?[a-zA-Z][.)])[ \t]+\S")
_FIELD = re.compile(r":([^:\s](?:[^:\n]|:(?=\S)){0,80}):(?:[ \t]+(.*)|)")
_SIMPLE_BORDER = re.compile(r"[ \t]*=+(?:[ \t]+=+)+[ \t]*")
_GRID_BORDER = re.compile(r"[ \t]*\+(?:[-=]{1,200}\+){1,200}[ \t]*")
_HEADER = re.compile(r"[A-Z][A-Za-z-]{1,30}:(?:[ \t]|$)")
_CODE = frozenset(
    {"code", "code-block", "sourcecode", "parsed-literal", "highlight", "doctest", "testcode"}
    | {"testoutput", "productionlist", "prompt", "ipython", "console", "grammar-snippet", "mermaid"}
)
_HIDDEN = frozenset(
    {"image", "toctree", "contents", "sectnum", "include", "raw", "index", "meta", "highlight"}
    | {"currentmodule", "module", "automodule", "autoclass", "autofunction", "literalinclude"}
    | {"only-html", "testsetup", "testcleanup", "tabularcolumns", "role", "default-role", "class"}
    | {"header", "footer", "target-notes", "restructuredtext-test-directive", "graphviz", "plot"}
)
_CAPTIONED = frozenset({"figure", "video"})


def rst_to_text(source: str) -> Plain:
    """Return the plain text of a document."""
    lines = without_marks(source).expandtabs(8).split("\n")
    reader = _Reader([line.rstrip() for line in lines])
    reader.read()
    return reader.finish()


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self._out: list[str] = []
        self._verbatim = Verbatim()
        self._metadata: dict[str, Any] = {}
        self._substitutions = Substitutions()
        self._targets: set[str] = set()

    def read(self) -> None:
        """Read all lines; each step takes at least one."""
        self._find_targets()
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line:
                self._out.append("")
                self._at += 1
            elif not (self._explicit(line) or self._title(line) or self._table(line)):
                self._paragraph(line)

    def finish(self) -> Plain:
        """Return the text."""
        paragraphs = "\n".join(self._out).split("\n\n")
        targets = frozenset(self._targets)
        self._metadata |= _header_title(self._lines)
        text = "\n\n".join(
            plain_inline(paragraph, self._substitutions, targets) for paragraph in paragraphs
        )
        return Plain(join_paragraphs(text, self._verbatim), self._metadata)

    def _find_targets(self) -> None:
        for line in self._lines:
            found = _EXPLICIT.fullmatch(line)
            target = _TARGET.fullmatch(found[1]) if found is not None and found[1] else None
            if target is not None:
                self._targets.add(target[1].strip("`").replace("\\", "").lower())

    def _indent(self, number: int) -> int:
        line = self._lines[number]
        return len(line) - len(line.lstrip(" "))

    def _block(self, indent: int) -> list[str]:
        """Take the lines that are blank or indented more than `indent`; blank ends are left."""
        start = end = self._at
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line:
                if self._indent(self._at) <= indent:
                    break
                end = self._at + 1
            self._at += 1
        self._at = end
        return self._lines[start:end]

    def _put_verbatim(self, block: list[str]) -> None:
        indents = [len(line) - len(line.lstrip(" ")) for line in block if line]
        margin = min(indents, default=0)
        text = "\n".join(line[margin:] for line in block).strip("\n")
        if text:
            self._out += ["", self._verbatim.put(text), ""]

    def _explicit(self, line: str) -> bool:
        """Take explicit markup: a comment, target, footnote, substitution or directive."""
        found = _EXPLICIT.fullmatch(line)
        if found is None:
            return False
        indent = self._indent(self._at)
        self._at += 1
        body = found[1] or ""
        directive = _DIRECTIVE.fullmatch(body)
        note = _NOTE.fullmatch(body)
        if directive is not None:
            self._directive(directive, indent)
        elif note is not None:
            self._out += ["", f"[{note[1].lstrip('#')}] {note[2]}"]
            self._out += [inner.strip() for inner in self._block(indent)]
            self._out.append("")
        elif body or (self._at < len(self._lines) and self._lines[self._at]):
            # A comment or a target; an empty one does not reach over a blank line.
            self._block(indent)
            self._out.append("")
        return True

    def _directive(self, match: re.Match[str], indent: int) -> None:
        substitution, name, argument = match[1], match[2].lower(), match[3] or ""
        if substitution is not None:
            rest = [line.strip() for line in self._block(indent)]
            if name == "replace":
                text = " ".join([argument.strip(), *rest]).strip()
                self._substitutions.define(substitution, text)
            else:
                self._substitutions.hide(substitution)
            return
        block = self._block(indent)
        content = _without_options(block)
        if name in _CODE and name != "highlight":
            self._put_verbatim(content)
        elif name == "math":
            formula = "\n".join([argument, *content]).strip()
            self._out += ["", self._verbatim.put(f"${formula}$"), ""]
        elif name not in _HIDDEN:
            shown = "" if name in _CAPTIONED else argument.strip()
            self._again(([shown, ""] if shown else []) + _dedented(content))

    def _again(self, lines: list[str]) -> None:
        """Put lines in front of those still to be read: the content of a directive."""
        self._out.append("")
        # In place of the lines just taken: what has been read is not needed any more.
        inserted = ["", *lines, ""]
        start = self._at - len(inserted)
        if start >= 0:
            self._lines[start : self._at] = inserted
            self._at = start
        else:
            self._lines[: self._at] = inserted
            self._at = 0

    def _title(self, line: str) -> bool:
        """Take a title with its underline, or a line of punctuation between paragraphs."""
        following = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""
        if _ADORNMENT.fullmatch(line) and not _SIMPLE_BORDER.fullmatch(line):
            below = self._lines[self._at + 2] if self._at + 2 < len(self._lines) else ""
            if following and below.strip() == line.strip():
                self._add_title(following.strip())
                self._at += 3
            else:
                self._out.append("")
                self._at += 1
            return True
        if self._indent(self._at) or not following or following[0] == " ":
            return False
        if not _SHORT_ADORNMENT.fullmatch(following) and not _ADORNMENT.fullmatch(following):
            return False
        if len(following) < min(len(line), 4) or len(following) < len(line) / 2:
            return False
        self._add_title(line.strip())
        self._at += 2
        return True

    def _add_title(self, title: str) -> None:
        self._metadata.setdefault("title", plain_inline(title, Substitutions(), frozenset()))
        self._out += ["", title, ""]

    def _table(self, line: str) -> bool:
        if _SIMPLE_BORDER.fullmatch(line):
            self._simple_table(line)
            return True
        if _GRID_BORDER.fullmatch(line):
            rows = []
            while self._at < len(self._lines) and self._lines[self._at].lstrip()[:1] in ("+", "|"):
                row = self._lines[self._at].strip()
                if row[0] == "|":
                    cells = (cell.strip() for cell in row.strip("|").split("|"))
                    rows.append(" | ".join(cell for cell in cells if cell))
                self._at += 1
            self._out += ["", BREAK.join(row for row in rows if row), ""]
            return True
        return False

    def _simple_table(self, border: str) -> None:
        starts = [match.start() for match in re.finditer(r"=+", border)]
        rows: list[str] = []
        self._at += 1
        num_borders = 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if _SIMPLE_BORDER.fullmatch(line):
                num_borders += 1
                following = self._lines[self._at] if self._at < len(self._lines) else ""
                if num_borders > 2 or not following:
                    break
            elif line and line.strip(" -"):
                # Columns behind the end of a line are not looked at: there can be many of either.
                inside = starts[: max(bisect_left(starts, len(line)), 1)]
                ends = [*inside[1:], len(line) + 1]
                cells = (line[start:end].strip() for start, end in zip(inside, ends, strict=True))
                rows.append(" | ".join(cell for cell in cells if cell))
            elif not line and num_borders > 2:
                break
        self._out += ["", BREAK.join(rows), ""]

    def _paragraph(self, line: str) -> None:
        """Take lines up to a blank one, to the start of a list item, or to a literal block."""
        indent = self._indent(self._at)
        if line.lstrip().startswith(">>> "):
            self._doctest()
            return
        if line.lstrip().startswith("| ") or line.strip() == "|":
            self._out.append(line.strip()[1:].strip() + BREAK)
            self._at += 1
            return
        self._out.append(self._item(line.strip()))
        self._at += 1
        while self._at < len(self._lines):
            following = self._lines[self._at]
            is_literal = line.endswith("::") and self._indent(self._at) > indent
            if is_literal or _ends_paragraph(following):
                break
            if self._indent(self._at) < indent or _HEADER.match(following.strip()):
                self._out.append(BREAK)
            self._out.append(following.strip())
            line = following
            self._at += 1
        if line.endswith("::"):
            self._literal(indent)
        elif self._at < len(self._lines) and self._lines[self._at]:
            self._out.append(BREAK)

    def _item(self, text: str) -> str:
        bullet = _BULLET.match(text)
        if bullet is not None:
            return f"- {text[bullet.end() :]}"
        field = _FIELD.fullmatch(text)
        return f"{field[1]}: {field[2] or ''}" if field is not None else text

    def _literal(self, indent: int) -> None:
        """Turn the `::` at the end of a paragraph into a colon, and take the block behind it."""
        last = self._out[-1]
        text = last[:-2].rstrip()
        self._out[-1] = text if not text or last[-3:-2] == " " else f"{text}:"
        at = self._at
        while at < len(self._lines) and not self._lines[at]:
            at += 1
        # What is indented less than its first line is no part of it.
        inner = self._indent(at) - 1 if at < len(self._lines) else indent
        self._put_verbatim(self._block(max(indent, inner)))

    def _doctest(self) -> None:
        start = self._at
        while self._at < len(self._lines) and self._lines[self._at]:
            self._at += 1
        self._put_verbatim(self._lines[start : self._at])


def _header_title(lines: list[str]) -> dict[str, str]:
    """Return the title in a head of fields, as PEPs have it."""
    for line in lines[:40]:
        name, colon, value = line.partition(":")
        if colon and name == "Title" and value.strip():
            return {"title": value.strip()}
    return {}


def _ends_paragraph(line: str) -> bool:
    stripped = line.strip()
    return not stripped or _starts_item(stripped) or _EXPLICIT.fullmatch(line) is not None


def _starts_item(stripped: str) -> bool:
    return bool(_BULLET.match(stripped) or _NUMBER.match(stripped) or _FIELD.fullmatch(stripped))


def _without_options(block: list[str]) -> list[str]:
    """Return a directive's content: without the options above the first blank line."""
    start = 0
    while start < len(block) and _OPTION.fullmatch(block[start]):
        start += 1
    return block[start:]


def _dedented(block: list[str]) -> list[str]:
    margin = min((len(line) - len(line.lstrip(" ")) for line in block if line), default=0)
    return [line[margin:] for line in block]
