"""The lines of a page whose links, templates and tables are plain already: headings and lists."""

from __future__ import annotations

import re

from assets.sources.formats.plain_text import join_lines, unescape_entities

MAX_LEVEL = 6
_LIST = re.compile(r"([*#:;]{1,20})[ \t]*")
_QUOTES = re.compile(r"'{2,}")
_SWITCH = re.compile(r"__[A-Z]{3,20}__")
_RULE = re.compile(r"-{4,}[ \t]*")
_VERBATIM = re.compile(r"\0(\d{1,9})\0")
_EMPTY_BRACKETS = re.compile(r"\([ ,;:\u00a0]*\)")


def tidy_lines(text: str, verbatim: list[str]) -> str:
    """Return a page's text with line markup resolved and marked verbatim pieces back in place."""
    lines: list[str] = []
    headings: list[tuple[int, int]] = []
    """Level and place of the headings after which nothing has come yet."""
    for raw in text.split("\n"):
        line = _SWITCH.sub("", raw)
        heading = _split_heading(line)
        if heading is None:
            plain = _plain_line(line)
            if plain.strip():
                headings.clear()
            lines.append(plain)
            continue
        level, title = heading
        while headings and headings[-1][0] >= level:
            # A section without content: its heading goes.
            del lines[headings.pop()[1] :]
        headings.append((level, len(lines)))
        lines += ["", _plain_line(title).strip(), ""]
    for _, place in reversed(headings):
        del lines[place:]
    joined = unescape_entities(join_lines(lines)).replace("\u00a0", " ")
    return _VERBATIM.sub(lambda match: _verbatim(match, verbatim), joined).strip()


def _split_heading(line: str) -> tuple[int, str] | None:
    """Return the level and title of a heading, None if a line is none."""
    marked = line.rstrip(" \t")
    body = marked.rstrip("=")
    if not body.startswith("=") or len(body) == len(marked):
        return None
    level = min(len(body) - len(body.lstrip("=")), MAX_LEVEL)
    return level, body[level:].strip(" \t")


def _plain_line(line: str) -> str:
    if _RULE.fullmatch(line):
        return ""
    marker = _LIST.match(line)
    if marker is not None:
        body = line[marker.end() :]
        if not body.strip():
            return ""
        line = f"- {body}" if marker[1][-1] in "*#" else body
    line = _QUOTES.sub(lambda match: "'" if len(match[0]) == 4 else "", line)
    return _EMPTY_BRACKETS.sub("", line)


def _verbatim(match: re.Match[str], verbatim: list[str]) -> str:
    number = int(match[1])
    return unescape_entities(verbatim[number]) if number < len(verbatim) else ""
