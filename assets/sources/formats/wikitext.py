"""Wikitext to plain text, in linear time.

What is kept: prose, link labels, captions, list items, headings of sections with content, cells of
tables, code, formulas as LaTeX between dollars. What is left out is counted by kind: templates
(a few that only format their text are replaced by it), references, and embedded things such as
timelines. Categories and links to the page in other languages are not text; the categories go into
the metadata.

The usual parser library takes time with the square of unclosed tags, links or tables; here every
character is looked at a bounded number of times, and what is nested more than `MAX_DEPTH` deep or
never closed stays as it is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from assets.sources.formats.plain_text import Plain
from assets.sources.formats.record import UnusableError
from assets.sources.formats.wiki_lines import tidy_lines
from assets.sources.formats.wiki_redirects import redirect_target
from assets.sources.formats.wiki_templates import expand_template

MAX_DEPTH = 40
_FILE_NAMES = frozenset({"file", "image", "media"})
_CATEGORY_NAMES = frozenset({"category"})

_MARK = re.compile(r"[{}\[\]|!<]")
"""Where a token may start; a class of characters is found much faster than the tokens are."""
_TOKEN = re.compile(
    r"(?P<open>\{\{)|(?P<close>\}\})|(?P<link>\[\[)|(?P<unlink>\]\])"
    r"|(?P<site>\[(?=(?:https?:|ftp:|mailto:|irc:)?//|mailto:))|(?P<unsite>\])"
    r"|(?P<table>\{\|[^\n]{0,2000})|(?P<untable>\|\})"
    r"|(?P<row>\|-[^\n]{0,2000})|(?P<caption>\|\+)"
    r"|(?P<cell>\|\||!!|[|!])"
    r"|<(?P<slash>/?)(?P<tag>[A-Za-z][A-Za-z0-9]{0,19})(?=[\s/>])[^<>]{0,2000}>",
)
_AT_LINE_START = frozenset({"table", "untable", "row", "caption"})
"""Tokens that mean something at the start of a line only, indentation apart."""
_INDENT = 40
_VERBATIM = frozenset({"nowiki", "pre", "math", "chem", "ce", "syntaxhighlight", "source", "poem"})
_EMBEDDED = frozenset(
    {"timeline", "imagemap", "hiero", "score", "graph", "mapframe", "maplink", "templatedata"}
    | {"templatestyles", "section", "inputbox", "categorytree", "indicator", "mapdata"}
)
_BREAKS = frozenset({"br", "p", "div", "blockquote", "center", "li", "tr", "dd", "dt", "hr", "h2"})
_CELL_ATTRIBUTES = re.compile(r"\s*[\w:-]+\s*=[^|\[\]{}\n]*")
_OPTION = re.compile(
    r"(?:thumb|thumbnail|frame|framed|frameless|border|left|right|center|centre|none|baseline"
    r"|middle|sub|super|text-top|text-bottom|top|bottom|upright|\d{0,9}\s{0,9}x?\s{0,9}\d{1,9}\s{0,9}px"
    r"|(?:alt|link|upright|page|class|lang|thumb|start|end|thumbtime)\s*=.*)",
    re.IGNORECASE | re.DOTALL,
)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,10}){0,3}|simple|commons|species")


@dataclass(frozen=True, slots=True)
class WikiNames:
    """Names of the namespaces whose links are no prose, lower case."""

    files: frozenset[str] = _FILE_NAMES
    categories: frozenset[str] = _CATEGORY_NAMES

    @classmethod
    def with_local(cls, files: Iterable[str], categories: Iterable[str]) -> WikiNames:
        """Return the names of a wiki beside the English ones, which every wiki understands."""
        return cls(_FILE_NAMES | set(files), _CATEGORY_NAMES | set(categories))


def wikitext_to_text(source: str, names: WikiNames | None = None) -> Plain:
    """Return the plain text of a page.

    Raises:
        UnusableError: the page only leads to another.
    """
    target = redirect_target(source)
    if target is not None:
        raise UnusableError("redirect", f"the page leads to {target[:100]!r}")
    converter = _Converter(names or WikiNames())
    converter.feed(_without_comments(source.replace("\0", "")))
    return converter.finish()


@dataclass(slots=True)
class _Frame:
    """Something open: its kind, the text that opened it, and its arguments so far."""

    kind: str
    opener: str
    arguments: list[list[str]] = field(default_factory=lambda: [[]])

    def flat(self) -> list[str]:
        """Return the pieces as they were written, for what is never closed."""
        pieces = [self.opener]
        for number, argument in enumerate(self.arguments):
            if number:
                pieces.append("|")
            pieces += argument
        return pieces

    def texts(self) -> list[str]:
        """Return the arguments, joined."""
        return ["".join(argument) for argument in self.arguments]


class _Converter:
    def __init__(self, names: WikiNames) -> None:
        self._names = names
        self._stack = [_Frame("root", "")]
        self._open: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._categories: list[str] = []
        self._verbatim: list[str] = []

    def feed(self, source: str) -> None:
        absent: set[str] = set()
        position = 0
        while (mark := _MARK.search(source, position)) is not None:
            place = mark.start()
            self._add(source[position:place])
            match = _TOKEN.match(source, place)
            if match is None or not _is_token(match, source):
                # A bar separates wherever it stands; any other sign is a character.
                self._take_separator("bar", mark[0])
                position = place + 1
                continue
            position = match.end()
            name = match["tag"]
            if name is None:
                self._take(match)
                continue
            name = name.lower()
            if name in _VERBATIM | _EMBEDDED | {"gallery"} and name not in absent:
                if not match["slash"] and not match[0].endswith("/>"):
                    end = _end_tag(name).search(source, position)
                    if end is None:
                        absent.add(name)
                        continue
                    self._add_block(name, source[position : end.start()])
                    position = end.end()
                continue
            self._take_tag(name, match)
        self._add(source[position:])

    def finish(self) -> Plain:
        root, *rest = self._stack
        pieces = root.arguments[0]
        for frame in rest:
            if frame.kind == "table":
                pieces += _join_cells(frame)
            else:
                pieces += frame.flat()
        metadata: dict[str, Any] = {}
        if self._categories:
            metadata["categories"] = self._categories
        if self._dropped:
            metadata["left_out"] = dict(sorted(self._dropped.items()))
        return Plain(tidy_lines("".join(pieces), self._verbatim), metadata)

    def _add(self, text: str) -> None:
        if text:
            self._stack[-1].arguments[-1].append(text)

    def _push(self, kind: str, opener: str) -> None:
        if len(self._stack) > MAX_DEPTH:
            self._add(opener)
            return
        self._stack.append(_Frame(kind, opener))
        self._open[kind] += 1

    def _pop(self) -> _Frame:
        frame = self._stack.pop()
        self._open[frame.kind] -= 1
        return frame

    def _close(self, kind: str, *, barriers: tuple[str, ...] = ()) -> _Frame | None:
        """Pop up to the innermost frame of a kind; None if there is none before a barrier."""
        if not self._open[kind]:
            return None
        for frame in reversed(self._stack):
            if frame.kind == kind:
                break
            if frame.kind in barriers:
                return None
        while (frame := self._pop()).kind != kind:
            for piece in frame.flat():
                self._add(piece)
        return frame

    def _take(self, match: re.Match[str]) -> None:
        kind, text = str(match.lastgroup), match[0]
        if kind == "open":
            self._push("template", text)
        elif kind == "link":
            self._push("link", text)
        elif kind == "site":
            self._push("site", text)
        elif kind == "table":
            self._push("table", text)
        elif kind in ("close", "unlink", "unsite", "untable"):
            self._take_close(kind, text)
        else:
            self._take_separator(kind, text)

    def _take_close(self, kind: str, text: str) -> None:
        if kind == "close":
            frame = self._close("template")
            result = None if frame is None else self._template(frame)
        elif kind == "unlink":
            frame = self._close("link", barriers=("template", "table", "ref"))
            result = None if frame is None else self._link(frame)
        elif kind == "unsite":
            frame = self._close("site", barriers=("template", "table", "ref", "link"))
            result = None if frame is None else "".join(frame.texts()).partition(" ")[2]
        else:
            frame = self._close("table", barriers=("template",))
            result = None if frame is None else "".join(_join_cells(frame))
        self._add(text if result is None else result)

    def _take_separator(self, kind: str, text: str) -> None:
        top = self._stack[-1]
        if top.kind in ("template", "link") and text[0] == "|":
            top.arguments += [[] for _ in range(2 if text == "||" else 1)]
            if kind in ("row", "caption"):
                # In a template what looks like a table's row is an argument.
                self._add(text[1:])
        elif top.kind == "table" and kind != "bar":
            top.arguments.append(["\n"] if kind in ("row", "caption") else [])
        else:
            self._add(text)

    def _take_tag(self, name: str, match: re.Match[str]) -> None:
        if name in ("ref", "references"):
            if match["slash"]:
                frame = self._close(name)
                if frame is not None:
                    self._dropped["references"] += name == "ref"
            elif match[0].endswith("/>"):
                self._dropped["references"] += name == "ref"
            else:
                self._push(name, match[0])
        elif name in _BREAKS:
            self._add("\n")

    def _add_block(self, name: str, content: str) -> None:
        if name in _EMBEDDED:
            self._dropped["embedded"] += 1
            return
        if name == "gallery":
            captions = (line.partition("|")[2] for line in content.splitlines())
            content = "".join(f"\n{caption}\n" for caption in captions if caption)
        if name in ("gallery", "poem"):
            # Neither holds its own end tag, so this goes two levels deep at most.
            self.feed(content)
            return
        if name in ("math", "chem", "ce"):
            content = f"${content.strip()}$"
        elif name != "nowiki":
            content = content.strip("\n")
        self._verbatim.append(content)
        mark = f"\0{len(self._verbatim) - 1}\0"
        self._add(mark if name in ("math", "chem", "ce", "nowiki") else f"\n{mark}\n")

    def _template(self, frame: _Frame) -> str:
        expanded = expand_template(frame.texts())
        if expanded is None:
            self._dropped["templates"] += 1
            return ""
        return expanded

    def _link(self, frame: _Frame) -> str:
        target, *labels = frame.texts()
        target = target.strip()
        if target.startswith(":"):
            return labels[-1] if labels else target[1:]
        if not labels and target.startswith(("http://", "https://")):
            return target.partition(" ")[2] or target
        prefix = target.partition(":")[0].strip().lower() if ":" in target else ""
        if prefix in self._names.files:
            captions = [label for label in labels if not _OPTION.fullmatch(label.strip())]
            self._dropped["files"] += 1
            return f"\n{captions[-1].strip()}\n" if captions else ""
        if prefix in self._names.categories:
            self._categories.append(target.partition(":")[2].strip())
            return ""
        if prefix and not labels and _LANGUAGE.fullmatch(prefix):
            return ""
        return labels[-1] if labels else target


def _is_token(match: re.Match[str], source: str) -> bool:
    """Tell whether what looks like a token is one in its place."""
    kind = match.lastgroup
    if kind in _AT_LINE_START or (kind == "cell" and len(match[0]) == 1):
        start = source.rfind("\n", max(match.start() - _INDENT, 0), match.start()) + 1
        before = source[start : match.start()] if start or match.start() <= _INDENT else "x"
        return not before.strip(" \t:*#;")
    return True


def _join_cells(frame: _Frame) -> list[str]:
    """Return a table as lines of cells with bars between; attributes are left out."""
    lines: list[list[str]] = [[]]
    for cell in frame.texts()[1:]:
        if cell.startswith("\n"):
            lines.append([])
            cell = cell[1:]  # noqa: PLW2901
        before, bar, after = cell.partition("|")
        if bar and _CELL_ATTRIBUTES.fullmatch(before):
            cell = after  # noqa: PLW2901
        text = " ".join(cell.split())
        if text:
            lines[-1].append(text)
    return ["\n", *(" | ".join(line) + "\n" for line in lines if line)]


def _without_comments(source: str) -> str:
    """Return a text without HTML comments; one that is never closed reaches to the end."""
    pieces = []
    position = 0
    while (start := source.find("<!--", position)) >= 0:
        pieces.append(source[position:start])
        end = source.find("-->", start + 4)
        if end < 0:
            return "".join(pieces)
        position = end + 3
    return "".join([*pieces, source[position:]])


def _end_tag(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}\s{{0,20}}>", re.IGNORECASE)
