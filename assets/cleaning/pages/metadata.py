"""Title and date of a page, from its markup: what the page says of itself, whatever extracts it.

`title`: `og:title`, else the `<title>`. `date` (YYYY-MM-DD): the first found of the meta names in
`DATE_NAMES`, in their order, else `datePublished` of embedded JSON-LD, else the first `<time>`.
A date that the calendar does not have is passed over.
"""

from __future__ import annotations

import datetime as dt
import html
import json
import re
from typing import Any

import numpy as np

from assets.kernel import kernel

DATE_NAMES = (
    "article:published_time", "datepublished", "og:published_time", "date", "dc.date",
    "dc.date.issued", "dcterms.created", "dcterms.date", "pubdate", "publishdate", "publish-date",
    "sailthru.date", "parsely-pub-date",
)  # fmt: skip
MAX_TITLE = 500
"""Characters of a title that are kept."""
_NAMES = (b"property", b"name", b"itemprop")
"""Attributes of a meta element that say what it is about, the first that has a value counts."""
_MAX_TAGS = 256
_MAX_TAG_BYTES = 4096
"""More tags, and longer ones, are not looked at."""
_META, _TITLE, _TIME = range(3)
_LT, _GT, _M, _T, _I = 0x3C, 0x3E, 0x6D, 0x74, 0x69
_DATE = re.compile(r"(\d{4})[-/](\d{2})[-/](\d{2})(?!\d)")
_JSON_DATE = b'"datePublished"'


def page_metadata(markup: bytes) -> dict[str, str]:
    """Return {"title", "date"} of a page (UTF-8 markup), without what it does not say."""
    places = np.zeros((_MAX_TAGS, 2), np.int64)
    count = _find_tags(np.frombuffer(markup, np.uint8), places)
    named: dict[str, bytes] = {}
    title = time = ""
    for kind, start in places[:count].tolist():
        if (kind == _TITLE and title) or (kind == _TIME and time):
            continue
        attributes, end = _read_tag(markup, start)
        if kind == _META:
            names = (_text(attributes[key]) for key in _NAMES if key in attributes)
            name = next(filter(None, names), "")
            if name and b"content" in attributes:
                named.setdefault(name.lower(), attributes[b"content"])
        elif kind == _TITLE:
            title = _text_until_tag(markup, end)
        else:
            time = _text(attributes.get(b"datetime", b""))
    found = {"title": _one_line(_text(named.get("og:title", b"")) or title)}
    dates = [_text(named[name]) for name in DATE_NAMES if name in named] + [
        _json_date(markup),
        time,
    ]
    found["date"] = next(filter(None, map(_calendar_date, dates)), "")
    return {name: value for name, value in found.items() if value}


def add_page_metadata(metadata: str | None, markup: bytes) -> str | None:
    """Return a document's metadata (JSON object or None) with what its page says added.

    A key that the source filled stays as it is.
    """
    found = page_metadata(markup)
    if not found:
        return metadata
    held: dict[str, Any] = {} if metadata is None else json.loads(metadata)
    return json.dumps(found | held, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@kernel
def _find_tags(data: Any, places: Any) -> int:
    """Write (kind, position behind the name) of meta, title and time tags; return how many."""
    count = 0
    for at in range(len(data) - 6):
        if data[at] != _LT:
            continue
        first, second = data[at + 1] | 0x20, data[at + 2] | 0x20
        kind = -1
        length = 5
        if first == _M and second == 0x65:
            kind = _META if _has(data, at + 3, _T, 0x61) else -1
        elif first == _T and second == _I:
            if _has(data, at + 3, _M, 0x65):
                kind = _TIME
            elif _has(data, at + 3, _T, 0x6C) and data[at + 5] | 0x20 == 0x65:
                kind = _TITLE
                length = 6
        if kind >= 0 and data[at + length] | 0x2F < 0x40 and count < len(places):
            places[count, 0] = kind
            places[count, 1] = at + length
            count += 1
    return count


@kernel
def _has(data: Any, at: int, first: int, second: int) -> Any:
    return data[at] | 0x20 == first and data[at + 1] | 0x20 == second


_ATTRIBUTE = re.compile(
    rb"[\s/]*([^\s/>][^\s=>]*)\s*(?:=\s*(?:\"([^\"]*)\"?|'([^']*)'?|([^\s>]*)))?"
)
"""Spaces, a name (which may begin with "="), and a value in quotes or without; all linear."""


def _read_tag(markup: bytes, start: int) -> tuple[dict[bytes, bytes], int]:
    """Return the attributes of the tag whose name ends at `start`, and where the tag ends.

    Names are lower case, values as they are written.
    """
    tag = markup[start : start + _MAX_TAG_BYTES]
    attributes: dict[bytes, bytes] = {}
    at = 0
    while found := _ATTRIBUTE.match(tag, at):
        name, double, single, bare = found.groups()
        attributes.setdefault(name.lower(), double or single or bare or b"")
        at = found.end()
    while at < len(tag) and tag[at] != _GT:
        at += 1
    return attributes, start + at + 1


def _text(value: bytes) -> str:
    return html.unescape(value.decode(errors="replace"))


def _text_until_tag(markup: bytes, start: int) -> str:
    end = markup.find(b"<", start, start + _MAX_TAG_BYTES)
    return _text(markup[start:end]) if end >= 0 else ""


def _one_line(text: str) -> str:
    return " ".join(text.replace("\0", "").split())[:MAX_TITLE].strip()


def _json_date(markup: bytes) -> str:
    at = markup.find(_JSON_DATE)
    return "" if at < 0 else markup[at + len(_JSON_DATE) :][:40].decode(errors="replace")


def _calendar_date(text: str) -> str:
    if not text:
        return ""
    match = _DATE.search(text[:64])
    if match is None:
        return ""
    try:
        return dt.date(*map(int, match.groups())).isoformat()
    except ValueError:
        return ""
