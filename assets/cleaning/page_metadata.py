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
_MAX_TAGS = 256
_MAX_TAG_BYTES = 4096
"""More tags, and longer ones, are not looked at."""
_META, _TITLE, _TIME = range(3)
_LT, _M, _T, _I = 0x3C, 0x6D, 0x74, 0x69
_DATE = re.compile(r"(\d{4})[-/](\d{2})[-/](\d{2})(?!\d)")
_JSON_DATE = b'"datePublished"'


def page_metadata(markup: bytes) -> dict[str, str]:
    """Return {"title", "date"} of a page (UTF-8 markup), without what it does not say."""
    places = np.zeros((_MAX_TAGS, 2), np.int64)
    count = _find_tags(np.frombuffer(markup, np.uint8), places)
    named: dict[str, str] = {}
    title = time = ""
    for kind, start in places[:count].tolist():
        attributes, end = _read_tag(markup, start)
        if kind == _META:
            name = (
                attributes.get("property") or attributes.get("name") or attributes.get("itemprop")
            )
            if name and "content" in attributes:
                named.setdefault(name.lower(), attributes["content"])
        elif kind == _TITLE and not title:
            title = _text_until_tag(markup, end)
        elif kind == _TIME and not time:
            time = attributes.get("datetime", "")
    found = {"title": _one_line(named.get("og:title") or title)}
    dates = [named.get(name, "") for name in DATE_NAMES] + [_json_date(markup), time]
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


def _read_tag(markup: bytes, start: int) -> tuple[dict[str, str], int]:
    """Return the attributes of the tag whose name ends at `start`, and where the tag ends."""
    tag = markup[start : start + _MAX_TAG_BYTES]
    attributes: dict[str, str] = {}
    at = 0
    while at < len(tag) and tag[at : at + 1] != b">":
        if tag[at : at + 1].isspace() or tag[at : at + 1] == b"/":
            at += 1
            continue
        name, value, at = _read_attribute(tag, at)
        attributes.setdefault(name, value)
    return attributes, start + at + 1


_NAME_END = re.compile(rb"[\s=>]")
_VALUE_END = re.compile(rb"[\s>]")


def _read_attribute(tag: bytes, at: int) -> tuple[str, str, int]:
    """Return the attribute at `at`: name, value, where the next one may start."""
    ends = _NAME_END.search(tag, at + 1)
    name_end = len(tag) if ends is None else ends.start()
    name = tag[at:name_end].decode(errors="replace").lower()
    at = name_end
    while tag[at : at + 1].isspace():
        at += 1
    if tag[at : at + 1] != b"=":
        return name, "", at
    at += 1
    while tag[at : at + 1].isspace():
        at += 1
    quote = tag[at : at + 1]
    if quote in (b'"', b"'"):
        end = tag.find(quote, at + 1)
        value, after = (
            tag[at + 1 : end if end >= 0 else len(tag)],
            end + 1 if end >= 0 else len(tag),
        )
    else:
        ends = _VALUE_END.search(tag, at)
        after = len(tag) if ends is None else ends.start()
        value = tag[at:after]
    return name, html.unescape(value.decode(errors="replace")), after


def _text_until_tag(markup: bytes, start: int) -> str:
    end = markup.find(b"<", start, start + _MAX_TAG_BYTES)
    text = markup[start:end] if end >= 0 else b""
    return html.unescape(text.decode(errors="replace"))


def _one_line(text: str) -> str:
    return " ".join(text.replace("\0", "").split())[:MAX_TITLE].strip()


def _json_date(markup: bytes) -> str:
    at = markup.find(_JSON_DATE)
    return "" if at < 0 else markup[at + len(_JSON_DATE) :][:40].decode(errors="replace")


def _calendar_date(text: str) -> str:
    match = _DATE.search(text[:64])
    if match is None:
        return ""
    try:
        return dt.date(*map(int, match.groups())).isoformat()
    except ValueError:
        return ""
