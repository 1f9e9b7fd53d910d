"""LaTeX to plain text, in one pass over the source.

Formulas stay as they are written, between dollars; code stays as it is. Titles stand on lines of
their own, list items begin with a dash, cells of tables have bars between, references show the
label they name in brackets. What goes: the preamble, comments, drawings, index entries, names of
commands; the text in their arguments stays. A macro of the author's inside a line is a formula.
Other unknown commands, and drawings, are counted.

Arguments are found by a table of matching braces made beforehand, so that no argument is read
twice: time grows with the length alone, whatever is nested or never closed.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any

from assets.sources.formats import latex_names as names
from assets.sources.formats.plain_text import (
    BREAK,
    Plain,
    Verbatim,
    join_paragraphs,
    without_marks,
)

_BRACE = re.compile(r"\\.|%[^\n]*|[{}]", re.DOTALL)
_TOKEN = re.compile(
    r"%[^\n]*(?:\n[ \t]*|$)"
    r"|\\(?P<command>[A-Za-z@]+)\*?"
    r"|\\(?P<sign>.)"
    r"|(?P<dollars>\$\$?)"
    r"|(?P<brace>[{}])"
    r"|(?P<tie>~)|(?P<cell>&)|(?P<dash>-{2,3})|(?P<quote>``|'')|(?P<newpara>\n[ \t]*\n)",
    re.DOTALL,
)
_OPTION = re.compile(r"[ \t]*\n?[ \t]*\[((?:[^\[\]\n{}]|\{[^{}\n]{0,200}\}){0,300})\]")
_NEAR_OPTION = re.compile(r"\[[^\[\]\n]{0,200}\]")
_SPACE = re.compile(r"[ \t]*\n?[ \t]*")
_LABEL = re.compile(r"\\(?:label|nonumber|notag)\b[ \t]*(?:\{[^{}\n]{0,200}\})?")
_COMMENT = re.compile(r"(?<!\\)%[^\n]*\n?")
_SPECIAL = frozenset("{}$&#_%")
_DELIMITERS = {"(": r"\)", "[": r"\]"}


def latex_to_text(source: str) -> Plain:
    """Return the plain text of a document or of a part of one."""
    converter = _Converter(without_marks(source))
    converter.convert()
    return converter.finish()


class _Converter:
    def __init__(self, source: str) -> None:
        self._source = source
        self._partner = _match_braces(source)
        self._out: list[str] = []
        self._verbatim = Verbatim()
        self._closers: dict[int, str] = {}
        """What is written at a closing brace that ends an argument."""
        self._absent: set[str] = set()
        self._left_out: Counter[str] = Counter()
        self._metadata: dict[str, Any] = {}

    def convert(self) -> None:
        """Read from the start of the document to its end."""
        source = self._source
        start = source.find("\\begin{document}")
        self._find_title(start)
        position = max(start, 0)
        end = source.find("\\end{document}", position)
        limit = len(source) if end < 0 else end
        while (match := _TOKEN.search(source, position, limit)) is not None:
            self._out.append(source[position : match.start()])
            position = max(self._take(match), match.end())
        self._out.append(source[position:limit])

    def finish(self) -> Plain:
        """Return the text."""
        text = unicodedata.normalize("NFC", "".join(self._out))
        left_out = {kind: count for kind, count in sorted(self._left_out.items()) if count}
        if left_out:
            self._metadata["left_out"] = left_out
        return Plain(join_paragraphs(text, self._verbatim), self._metadata)

    def _find_title(self, start: int) -> None:
        place = self._source.find("\\title")
        if place < 0:
            return
        group = self._group(self._skip_option(place + len("\\title")))
        if group is None or group[1] - group[0] > 1000:
            return
        title = " ".join(self._source[group[0] : group[1]].split())
        self._metadata["title"] = title
        if place < start:
            # It stands before the text, and is printed by \maketitle.
            self._out.append(f"{title}\n\n")

    def _take(self, match: re.Match[str]) -> int:
        """Write what a token means; return where reading goes on."""
        kind, text, end = match.lastgroup, match[0], match.end()
        if kind == "command":
            return self._command(match["command"], end)
        if kind == "sign":
            return self._sign(match["sign"], match.start(), end)
        if kind == "dollars":
            return self._formula(text, text, end, text)
        if kind == "brace":
            if text == "}":
                self._out.append(self._closers.pop(match.start(), ""))
        elif kind == "cell":
            self._out.append(" | ")
        elif kind is not None:
            plain = {"~": " ", "--": "\u2013", "---": "\u2014", "``": "\u201c", "''": "\u201d"}
            self._out.append(plain.get(text, "\n\n"))
        return end

    def _sign(self, sign: str, start: int, end: int) -> int:
        if sign in _SPECIAL:
            self._out.append(sign)
        elif sign in _DELIMITERS:
            closing = _DELIMITERS[sign]
            return self._formula(
                self._source[start:end], closing, end, "$" if sign == "(" else "$$"
            )
        elif sign in names.ACCENTS:
            return self._accent(sign, end)
        elif sign == "\\":
            self._out.append(BREAK)
            return self._skip_option(end)
        elif sign in " \n\t,;:>":
            self._out.append(" ")
        return end

    def _accent(self, sign: str, end: int) -> int:
        position = _skip_space(self._source, end)
        group = self._group(position)
        if group is not None and group[1] - group[0] <= 3:
            letter, after = self._source[group[0] : group[1]], group[1] + 1
        else:
            letter, after = self._source[position : position + 1], position + 1
            if letter == "\\" and self._source[after : after + 1] in ("i", "j"):
                letter, after = self._source[after], after + 1
        letter = letter.strip().lstrip("\\")
        if letter[:1].isalpha():
            self._out.append(letter[0] + names.ACCENTS[sign] + letter[1:])
            return after
        self._out.append("" if sign in "'`^\"=.~" else sign)
        return end

    def _formula(self, opening: str, closing: str, end: int, dollars: str) -> int:
        """Put a formula aside; one that is never closed is a sign like others."""
        stop = -1 if closing in self._absent else self._find_closing(closing, end)
        if stop < 0:
            self._absent.add(closing)
            self._out.append(opening)
            return end
        self._put_formula(self._source[end:stop], dollars)
        return stop + len(closing)

    def _find_closing(self, closing: str, position: int) -> int:
        stop = self._source.find(closing, position)
        while stop > 0 and closing[0] == "$" and self._source[stop - 1] == "\\":
            stop = self._source.find(closing, stop + 1)
        return stop

    def _put_formula(self, source: str, dollars: str) -> None:
        text = _COMMENT.sub("", _LABEL.sub("", source)).strip()
        lines = (" ".join(line.split()) for line in text.split("\n"))
        text = ("\n" if dollars == "$$" else " ").join(line for line in lines if line)
        if text:
            mark = self._verbatim.put(f"{dollars}{text}{dollars}")
            self._out.append(mark if dollars == "$" else f"\n\n{mark}\n\n")

    def _command(self, name: str, end: int) -> int:  # noqa: PLR0911 (one for each kind)
        if name in ("begin", "end"):
            return self._environment(name, end)
        if name in names.SECTIONS:
            return self._open(end, "\n\n", "\n\n")
        if name in names.REFERENCES:
            return self._reference(end)
        if name in names.HIDDEN:
            return self._skip_line_end(self._skip_arguments(end, names.HIDDEN[name]))
        if name in names.ACCENTS and len(name) == 1:
            return self._accent(name, end)
        if name in names.SYMBOLS:
            self._out.append(names.SYMBOLS[name])
            return self._skip_braces(_skip_blank(self._source, end))
        return self._text_command(name, end)

    def _text_command(self, name: str, end: int) -> int:
        own = {"item": self._item, "verb": self._verb, "url": self._url}
        if name in own:
            return own[name](end)
        if name in names.AROUND:
            return self._open(end, *names.AROUND[name])
        if name in names.HIDDEN_FIRST:
            return self._skip_arguments(end, 2 if name in names.HIDDEN_TWO else 1)
        option = _NEAR_OPTION.match(self._source, end)
        after = end if option is None else option.end()
        if self._group(after) is None:
            self._unknown(name, end)
            return self._skip_line_end(_skip_blank(self._source, end))
        return after

    def _unknown(self, name: str, end: int) -> None:
        """Keep a macro without arguments inside a line; alone on a line it is one of layout."""
        if name in names.LAYOUT:
            return
        start = end - len(name) - 1
        if self._source[start - 1 : start] in ("", "\n") and self._source[end : end + 1] == "\n":
            self._left_out["commands"] += 1
        else:
            self._out.append(self._verbatim.put(f"$\\{name}$"))
            if self._source[end : end + 1] == " ":
                self._out.append(" ")

    def _open(self, end: int, before: str, after: str) -> int:
        """Write something around the argument that follows."""
        position = self._skip_option(end)
        group = self._group(position)
        if group is None:
            return end
        self._out.append(before)
        self._closers[group[1]] = after
        return group[0]

    def _reference(self, end: int) -> int:
        option = _OPTION.match(self._source, end)
        position = self._skip_option(end)
        group = self._group(position)
        if group is None or group[1] - group[0] > 1000:
            return end
        label = " ".join(self._source[group[0] : group[1]].split()).strip("{}")
        note = f", {_plain(option)}" if option is not None and option[1] else ""
        self._out.append(f"[{label}{note}]")
        return group[1] + 1

    def _item(self, end: int) -> int:
        option = _OPTION.match(self._source, end)
        self._out.append("\n\n- " if option is None else f"\n\n{_plain(option)} ")
        return end if option is None else option.end()

    def _verb(self, end: int) -> int:
        mark = self._source[end : end + 1]
        stop = self._source.find(mark, end + 1, end + 1000) if mark else -1
        if stop < 0:
            return end
        self._out.append(self._verbatim.put(self._source[end + 1 : stop]))
        return stop + 1

    def _url(self, end: int) -> int:
        group = self._group(end)
        if group is None:
            return end
        self._out.append(self._verbatim.put(self._source[group[0] : group[1]].strip()))
        return group[1] + 1

    def _environment(self, command: str, end: int) -> int:
        group = self._group(end)
        if group is None or group[1] - group[0] > 60:
            return end
        full = self._source[group[0] : group[1]].strip()
        name, after = full.removesuffix("*"), group[1] + 1
        if command == "end":
            self._out.append("\n\n")
            return after
        if name in names.MATH or name in names.VERBATIM or name in names.DROPPED:
            return self._whole_environment(name, full, after)
        self._out.append("\n\n")
        option = _OPTION.match(self._source, after)
        if name in names.THEOREMS:
            note = f" ({_plain(option)})" if option is not None and option[1] else ""
            self._out.append(f"{names.THEOREMS[name]}{note}. ")
        after = after if option is None else option.end()
        count = names.ARGUMENTS.get(full, names.ARGUMENTS.get(name, 0))
        return self._skip_arguments(after, count)

    def _whole_environment(self, name: str, full: str, after: int) -> int:
        closing = f"\\end{{{full}}}"
        stop = -1 if closing in self._absent else self._source.find(closing, after)
        if stop < 0:
            self._absent.add(closing)
            return after
        content = self._source[after:stop]
        if name in names.MATH:
            self._put_formula(content, "$$")
        elif name in names.VERBATIM:
            option = _OPTION.match(content)
            content = content if option is None else content[option.end() :]
            self._out.append(f"\n\n{self._verbatim.put(content.strip(chr(10)))}\n\n")
        else:
            self._left_out["drawings"] += name not in ("comment", "filecontents")
        return stop + len(closing)

    def _group(self, position: int) -> tuple[int, int] | None:
        """Return where the argument at a position starts and ends, None if there is none."""
        place = _skip_space(self._source, position)
        end = self._partner.get(place)
        return None if end is None else (place + 1, end)

    def _skip_option(self, position: int) -> int:
        option = _OPTION.match(self._source, position)
        return position if option is None else option.end()

    def _skip_arguments(self, position: int, count: int) -> int:
        for _ in range(count):
            position = self._skip_option(position)
            group = self._group(position)
            if group is None:
                name = re.compile(r"[ \t]*\\[A-Za-z@]+").match(self._source, position)
                if name is None:
                    break
                position = name.end()
            else:
                position = group[1] + 1
            position = self._skip_option(position)
        return position

    def _skip_line_end(self, position: int) -> int:
        """Skip the end of a line that held nothing else: it must not look like a blank one."""
        if self._out and self._out[-1].endswith("\n") and self._source.startswith("\n", position):
            return position + 1
        return position

    def _skip_braces(self, position: int) -> int:
        return position + 2 if self._source.startswith("{}", position) else position


def _plain(option: re.Match[str]) -> str:
    """Return the text of an optional argument, which is short and holds no other."""
    converter = _Converter(option[1])
    converter.convert()
    return converter.finish().text


def _match_braces(source: str) -> dict[int, int]:
    """Return the place of the closing brace for each opening one that has one."""
    partner: dict[int, int] = {}
    open_places: list[int] = []
    for match in _BRACE.finditer(source):
        if match[0] == "{":
            open_places.append(match.start())
        elif match[0] == "}" and open_places:
            partner[open_places.pop()] = match.start()
    return partner


def _skip_space(source: str, position: int) -> int:
    match = _SPACE.match(source, position)
    return position if match is None else match.end()


def _skip_blank(source: str, position: int) -> int:
    """Skip the blanks that end the name of a command; a paragraph's end is none."""
    while source[position : position + 1] in (" ", "\t"):
        position += 1
    return position
