"""Posts.xml of a Stack Exchange dump: a document is a question with its answers, as plain text.

Answers stand anywhere behind their question, so the rows are sorted on the local disk (SQLite also
uses the system's folder for temporary files, or `SQLITE_TMPDIR`); memory holds one question with
its answers. The accepted answer comes first, then by score.
"""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any

from assets.sources.formats.compression import DecodedStream
from assets.sources.formats.html_fragment import html_to_text
from assets.sources.formats.record import (
    MAX_RECORD_BYTES,
    Found,
    Lost,
    Record,
    UnusableError,
)
from assets.sources.formats.transcode import utf8_stream
from assets.sources.formats.xml_elements import Element, ElementCutter, parse_element

_QUESTION, _ANSWER = "1", "2"
_HOST = re.compile(r"(?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,20}")
_NUMBERS = frozenset(
    {"Score", "ViewCount", "AnswerCount", "CommentCount", "FavoriteCount", "AcceptedAnswerId"}
)
_TABLE = """
    CREATE TABLE posts (question INTEGER, is_answer INTEGER, score INTEGER, id INTEGER,
                        position INTEGER, fields TEXT)
"""
_SORTED = """
    SELECT question, is_answer, id, position, fields FROM posts
    ORDER BY question, is_answer, score DESC, id, position
"""


def read_posts(stream: DecodedStream, landed_path: str, scratch: Path | None) -> Iterator[Record]:
    """Yield a record per question, after a loss for each row that is neither question nor answer.

    The position of a record is the offset of its question in the text as UTF-8.
    """
    with (
        tempfile.TemporaryDirectory(dir=scratch) as folder,
        closing(sqlite3.connect(Path(folder) / "posts.sqlite", isolation_level=None)) as posts,
    ):
        posts.execute("PRAGMA journal_mode = OFF")
        posts.execute("PRAGMA synchronous = OFF")
        posts.execute(_TABLE)
        posts.execute("BEGIN")
        for element in ElementCutter(utf8_stream(stream), b"<row ", b""):
            lost = _store(element, posts)
            if lost is not None and not (stream.problem is not None and not element.is_whole):
                yield lost
        posts.execute("COMMIT")
        yield from _threads(posts, _site(landed_path))


def _site(landed_path: str) -> str | None:
    """Return the address of the site whose host a folder of the path is named after."""
    for part in PurePosixPath(landed_path).parts[::-1]:
        host = part.lower().removesuffix(".7z")
        if _HOST.fullmatch(host) and not host.endswith((".xml", ".gz", ".bz2", ".xz", ".zst")):
            return f"https://{host}"
    return None


def _store(element: Element, posts: sqlite3.Connection) -> Lost | None:
    """Put a post into the table; return the loss of a row that is none."""
    position = element.position
    if element.data is None:
        reason = f"a row longer than {MAX_RECORD_BYTES:,d} bytes"
        return Lost(rule="too_large", position=position, reason=reason)
    try:
        values = parse_element(element.data.strip()).values
        fields = {key.partition("@")[2]: value for key, value in values.items() if "@" in key}
        kind = fields.get("PostTypeId", "")
        if kind not in (_QUESTION, _ANSWER):
            return Lost(rule="not_a_post", position=position, reason=f"PostTypeId {kind[:40]!r}")
        own = _number(fields, "Id")
        question = own if kind == _QUESTION else _number(fields, "ParentId")
        score = _number(fields, "Score") if fields.get("Score") else 0
    except UnusableError as error:
        return Lost(rule=error.rule, position=position, reason=str(error))
    row = (question, int(kind == _ANSWER), score, own, position, json.dumps(fields))
    posts.execute("INSERT INTO posts VALUES (?, ?, ?, ?, ?, ?)", row)
    return None


def _number(fields: dict[str, str], name: str) -> int:
    text = fields.get(name, "")
    if not re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII):
        raise UnusableError("bad_xml", f"{name} is {text[:40]!r}, not a number")
    return int(text)


def _threads(posts: sqlite3.Connection, site: str | None) -> Iterator[Record]:
    """Yield the documents, and a loss for each answer whose question is not in the file."""
    thread: _Thread | None = None
    for question, is_answer, number, position, text in posts.execute(_SORTED):
        fields = json.loads(text)
        if not is_answer:
            if thread is not None:
                yield thread.record(site)
            thread = _Thread(question, position, fields)
        elif thread is not None and thread.number == question:
            thread.add(fields)
        else:
            reason = f"answer {number} belongs to question {question}, which is not in the file"
            yield Lost(rule="no_question", position=position, reason=reason)
        del fields, text
    if thread is not None:
        yield thread.record(site)


class _Thread:
    """A question and its answers on their way to a document."""

    def __init__(self, number: int, position: int, fields: dict[str, str]) -> None:
        self.number = number
        self._position = position
        self._fields = fields
        self._answers: list[dict[str, str]] = []
        self._bytes = len(fields.get("Body", ""))

    def add(self, fields: dict[str, str]) -> None:
        """Add an answer; beyond what a document may hold only its size is kept."""
        self._bytes += len(fields.get("Body", ""))
        if self._bytes <= MAX_RECORD_BYTES:
            self._answers.append(fields)

    def record(self, site: str | None) -> Record:
        """Return the document."""
        if self._bytes > MAX_RECORD_BYTES:
            reason = f"question {self.number} with its answers is above {MAX_RECORD_BYTES:,d} bytes"
            return Lost(rule="too_large", position=self._position, reason=reason)
        try:
            texts = [self._fields.get("Title", ""), _text(self._fields)]
        except UnusableError as error:
            return Lost(rule=error.rule, position=self._position, reason=str(error))
        accepted = self._fields.get("AcceptedAnswerId")
        self._answers.sort(key=lambda fields: fields["Id"] != accepted)
        answers: list[dict[str, Any]] = []
        lost = 0
        for fields in self._answers:
            try:
                texts.append(_text(fields))
            except UnusableError:
                lost += 1
                continue
            answers.append(_metadata(fields) | {"accepted": fields["Id"] == accepted})
        text = "\n\n".join(part for part in texts if part)
        if not text:
            reason = f"question {self.number} has no text"
            return Lost(rule="empty_body", position=self._position, reason=reason)
        metadata = _metadata(self._fields) | {"answers": answers}
        if lost:
            metadata["left_out"] = {"answers": lost}
        return Found(
            text=text,
            position=self._position,
            user_id=str(self.number),
            url=None if site is None else f"{site}/q/{self.number}",
            content_type="text/plain",
            metadata=metadata,
        )


def _text(fields: dict[str, str]) -> str:
    return html_to_text(fields.get("Body", "")).text.strip()


def _metadata(fields: dict[str, str]) -> dict[str, Any]:
    """Return what a row says beside its text; tags as a list, counts as numbers."""
    metadata: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "Tags":
            metadata[name] = [tag for tag in re.split(r"[<>|]", value) if tag]
        elif name in _NUMBERS and re.fullmatch(r"-?[0-9]{1,18}", value, re.ASCII):
            metadata[name] = int(value)
        elif name != "Body":
            metadata[name] = value
    return metadata
