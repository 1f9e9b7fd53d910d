"""Pages of a MediaWiki XML export, the last revision of each, as plain text.

Redirects (by their element or by their text), pages of other namespaces than `read.namespaces` and
pages that are not wikitext (scripts, style sheets, data) are ledger rows of their own. Templates,
references and what else is left out of a text is counted in its metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from assets.settings.reading import ReadSettings
from assets.sources.formats.compression import DecodedStream
from assets.sources.formats.record import (
    MAX_RECORD_BYTES,
    Found,
    Lost,
    Record,
    UnusableError,
    marks_of,
)
from assets.sources.formats.transcode import Utf8Stream, utf8_stream
from assets.sources.formats.warc import parse_date
from assets.sources.formats.wiki_redirects import redirect_target
from assets.sources.formats.wikitext import WikiNames, wikitext_to_text
from assets.sources.formats.xml_elements import Element, ElementCutter, parse_element

_FILE_KEYS = frozenset({"6", "-2"})
_CATEGORY_KEY = "14"
_REVISION_FIELDS = {"id": "revision", "sha1": "sha1", "model": "model", "format": "format"}


@dataclass(frozen=True, slots=True)
class _Wiki:
    """What the head of an export says of the wiki."""

    base: str | None = None
    """Address of its pages, up to their titles."""
    name: str | None = None
    names: WikiNames = field(default_factory=WikiNames)


def read_wiki_xml(stream: DecodedStream, read: ReadSettings) -> Iterator[Record]:
    """Yield a record per page; `position` is its offset in the text as UTF-8."""
    utf8 = utf8_stream(stream)
    cutter = ElementCutter(utf8, b"<page>", b"</page>")
    wiki = None
    for element in cutter:
        if wiki is None:
            wiki = _read_head(cutter.head)
        if not element.is_whole and stream.problem is not None:
            # The cut of the file, which is told after the records.
            continue
        yield _read_page(element, wiki, read, utf8)
        del element


def _read_head(head: bytes) -> _Wiki:
    """Read the siteinfo; a wiki that does not describe itself has the English names."""
    start, end = head.find(b"<siteinfo>"), head.find(b"</siteinfo>")
    if start < 0 or end < 0:
        return _Wiki()
    data = head[start : end + len(b"</siteinfo>")]
    namespaces = {"file": set[str](), "category": set[str]()}
    # Names of namespaces repeat their path, so each is parsed as an element.
    for piece in data.split(b"<namespace ")[1:]:
        text = b"<namespace " + piece.partition(b"</namespace>")[0] + b"</namespace>"
        try:
            values = parse_element(text).values
        except UnusableError:
            continue
        key = values.get("namespace@key", "")
        kind = "file" if key in _FILE_KEYS else "category" if key == _CATEGORY_KEY else None
        if kind and values.get("namespace"):
            namespaces[kind].add(values["namespace"].lower())
    try:
        values = parse_element(data).values
    except UnusableError:
        values = {}
    base = values.get("siteinfo/base", "").rpartition("/")[0]
    names = WikiNames.with_local(namespaces["file"], namespaces["category"])
    return _Wiki(base or None, values.get("siteinfo/dbname") or None, names)


def _read_page(element: Element, wiki: _Wiki, read: ReadSettings, stream: Utf8Stream) -> Record:
    position = element.position
    if element.data is None:
        reason = f"a page longer than {MAX_RECORD_BYTES:,d} bytes (all revisions together)"
        return Lost(rule="too_large", position=position, reason=reason)
    if not element.is_whole:
        return Lost(rule="bad_xml", position=position, reason="a page without a start or an end")
    try:
        return _make_document(parse_element(element.data).values, position, wiki, read, stream)
    except UnusableError as error:
        return Lost(rule=error.rule, position=position, reason=str(error))


def _make_document(
    values: dict[str, str], position: int, wiki: _Wiki, read: ReadSettings, stream: Utf8Stream
) -> Found:
    """Make a document of the leaves of a page.

    Raises:
        UnusableError: the page is none.
    """
    title = values.get("page/title", "")
    namespace = values.get("page/ns", "0")
    _check_kind(values, title, namespace, read)
    source = values.get("page/revision/text", "")
    metadata: dict[str, Any] = {"title": title, "namespace": int(namespace)}
    for key, name in _REVISION_FIELDS.items():
        value = values.get(f"page/revision/{key}")
        if value:
            metadata[name] = value
    if wiki.name is not None:
        metadata["wiki"] = wiki.name
    if stream.charset != "utf-8":
        metadata["charset"] = stream.charset
    if "\ufffd" in source and stream.num_replaced:
        metadata["num_replaced"] = source.count("\ufffd")
    marks = marks_of(metadata)
    text = source
    if read.markup != "keep":
        plain = wikitext_to_text(source, wiki.names)
        text = plain.text
        metadata |= plain.metadata
    if not text:
        raise UnusableError("empty_body", f"the page {title[:100]!r} has no text")
    path = quote(title.replace(" ", "_"), safe="/:@!$&'()*+,;=~")
    return Found(
        text=text,
        position=position,
        user_id=values.get("page/id") or None,
        url=None if wiki.base is None else f"{wiki.base}/{path}",
        content_type="text/plain" if read.markup != "keep" else "text/x-wiki",
        fetched_at=parse_date(values.get("page/revision/timestamp", "")),
        metadata=metadata,
        marks=marks,
    )


def _check_kind(values: dict[str, str], title: str, namespace: str, read: ReadSettings) -> None:
    """Refuse what is no page to read.

    Raises:
        UnusableError: a redirect, another namespace, or another content model.
    """
    if not namespace.removeprefix("-").isdecimal() or len(namespace) > 9:
        raise UnusableError("bad_xml", f"the namespace is {namespace[:40]!r}")
    model = values.get("page/revision/model", "wikitext")
    target = values.get("page/redirect@title")
    if target is None and model == "wikitext":
        target = redirect_target(values.get("page/revision/text", ""))
    if target is not None:
        raise UnusableError("redirect", f"{title[:100]!r} leads to {target[:100]!r}")
    if int(namespace) not in read.namespaces:
        raise UnusableError("other_namespace", f"{title[:100]!r} is in namespace {namespace}")
    if model != "wikitext":
        raise UnusableError("not_text", f"{title[:100]!r} is {model[:40]}, not wikitext")
