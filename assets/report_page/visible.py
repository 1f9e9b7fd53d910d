"""What can be seen of a web page, roughly: for a look at pages whose main text was not kept."""

from __future__ import annotations

import html
import re

MAX_CHARACTERS = 200_000
"""Of a page; what is behind them is not looked at."""
_UNSEEN = ("script", "style", "head", "noscript", "template", "svg")
_NAME = re.compile(r"/?([A-Za-z][A-Za-z0-9]*)")
_BLANK = re.compile(r"[ \t\r\f\v]+")


def visible_text(page: str) -> str:
    """Return the text of a page without tags, scripts and styles; one line for a block or more.

    Takes one pass: a page without end tags, or with nothing but them, is no slower.
    """
    page = page[:MAX_CHARACTERS]
    lowered = page.lower()
    if len(lowered) != len(page):  # a letter whose lower case is longer: places would not fit
        lowered = page
    pieces: list[str] = []
    at = 0
    while (start := page.find("<", at)) >= 0:
        pieces.append(page[at:start])
        if page.startswith("<!--", start):
            end = page.find("-->", start)
            at = len(page) if end < 0 else end + 3
            continue
        named = _NAME.match(page, start + 1)
        if named is None and not page.startswith("<!", start):
            pieces.append("<")
            at = start + 1
            continue
        end = page.find(">", start)
        if end < 0:
            at = len(page)
            break
        at = end + 1
        if named is not None and named[0].lower() in _UNSEEN:
            close = lowered.find(f"</{named[0].lower()}", at)
            at = len(page) if close < 0 else close
        pieces.append("\n")
    pieces.append(page[at:])
    lines = _BLANK.sub(" ", html.unescape("".join(pieces))).split("\n")
    return "\n".join(line for line in map(str.strip, lines) if line)
