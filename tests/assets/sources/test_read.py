from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from assets.root import Root
from assets.settings.sources import READ_FORMATS, SourceSettings
from assets.sources.formats.charset import decode_text
from assets.sources.formats.compression import Problem
from assets.sources.formats.read import read_records
from assets.sources.formats.record import RULES, Lost
from assets.sources.tasks import CODE_VERSION
from tests.assets.sources.landed import decode, land, rows_of
from tests.assets.sources.reading import outcomes, read_bytes
from tests.assets.sources.warc_building import http, page, record

PIECES = [
    b"WARC/1.0\r\n",
    b"WARC-Type: response\r\n",
    b"Content-Length: 40\r\n",
    b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"5;x\r\nhello\r\n",
    b'{"text": "a"}\n',
    b"<html><meta charset=euc-jp>",
    b"\x1f\x8b\x08",
    b"\xff\xfe",
    b"\x1b$B",
    b"\0",
    gzip.compress(b'{"text": "b"}\n', mtime=0),
    bz2.compress(b"words"),
    lzma.compress(b"words"),
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
]
ANY_BYTES = st.lists(st.one_of(st.binary(max_size=20), st.sampled_from(PIECES)), max_size=12).map(
    b"".join
)


@settings(deadline=None)
@given(ANY_BYTES, st.sampled_from(READ_FORMATS), st.sampled_from(["x", "x.jsonl", "x.html.gz"]))
def test_no_content_raises_and_every_file_gives_a_record(data: bytes, name: str, path: str) -> None:
    assert read_bytes(data, path, format=name)


@given(ANY_BYTES, st.lists(st.sampled_from(["utf-8", "gbk", "latin1", "utf-16", "x", None])))
def test_any_bytes_decode_to_text_that_can_be_stored(
    data: bytes, declared: list[str | None]
) -> None:
    decoded = decode_text(data, declared)
    decoded.text.encode()
    assert decoded.num_replaced == decoded.text.count("\ufffd") or decoded.num_replaced == 0


@pytest.mark.parametrize("name", READ_FORMATS)
def test_an_empty_file_is_one_loss(name: str) -> None:
    assert outcomes(b"", "x", format=name) == ["<empty_file>"]
    assert outcomes(gzip.compress(b""), "x.gz", format=name) == ["<empty_file>"]


def test_the_file_is_opened_once_and_closed() -> None:
    opened: list[io.BytesIO] = []

    def open_stored() -> io.BytesIO:
        opened.append(io.BytesIO(b'{"text": "a"}\n{"text": "b"}\n'))
        return opened[-1]

    source = SourceSettings(name="test", paths=("*",))
    records = read_records(open_stored, source=source, landed_path="a.jsonl")
    next(records)
    assert not opened[0].closed
    records.close()  # type: ignore[attr-defined]
    assert [file.closed for file in opened] == [True]


def test_every_rule_says_what_it_means() -> None:
    for name, rule in RULES.items():
        assert name == name.lower()
        assert rule.decision in ("quarantined", "dropped")
        assert rule.meaning
    assert Problem("truncated", "x").rule in RULES
    assert Lost(rule="truncated", position=None, reason="x").rule in RULES


GOLDEN = {5: "ff9ff9f1c791ecd0"}
"""CODE_VERSION of the documents stage -> digest of what it makes of `golden_files`. A difference
means that the same landed files would give other documents: raise CODE_VERSION and add a line."""


def golden_files() -> list[tuple[str, bytes]]:
    lines = [
        {"id": 7, "text": "one", "url": "http://u:p@a.example/?sig=1", "x": {"b": 1, "a": None}},
        {"text": "dos\r\n\u2028 \U0001f600"},
        {"text": ""},
        {"id": "n"},
    ]
    jsonl = b"".join(json.dumps(line).encode() + b"\n" for line in lines) + b"{]\n\xff\n[]\n"
    warc = (
        page("caf\u00e9")
        + record(http("день".encode("cp1251"), "text/html; charset=windows-1251"))
        + record(http(b"x", "image/png"))
        + record(http(b"no", status="404 Not Found"))
        + b"junk\r\n"
        + record(b"words", kind="conversion", content_type="text/plain")
        + record(http(b"joined", extra="Transfer-Encoding: chunked\r\n"))
        + page("cut")[:-20]
    )
    pages = ("[[A|b]] {{c}} **d</text>", "x</text>", "<b></text>", "y</text>", "#REDIRECT [[B]]")
    wiki = b"<mediawiki>" + b"".join(
        b"<page><title>T</title><ns>%d</ns><id>1</id><revision><text>%s</revision></page>"
        % (number % 2, text.encode())
        for number, text in enumerate(pages)
    )
    return [
        ("a.jsonl", jsonl),
        ("b.warc", warc),
        ("c.html", "<html><meta charset=euc-jp>日本".encode("euc-jp")),
        ("d.txt", "Été\r\nà la forêt".encode("latin-1")),
        ("e.rst", b"Title\n=====\n\n*words* in\na line::\n\n  code\n"),
        ("f.csv", b'id,text,x\n1,"a\nb",y\n2,c\n3,,\n'),
        ("f.tsv", "text\tid\n日本\t1\n".encode("utf-16")),
        ("f.tex", b"% x\n\\section{A} $x$ \\cite{k} \\'e \\unknown{y}"),
        ("f.md", b"# A\n\n- *b* [c](d)\n\n| a | b |\n|--|--|\n| 1 | 2 |\n"),
        ("f.1", b".TH A 1\n.SH NAME\na \\- \\fBb\\fP\n.nf\n x\n"),
        ("f.py", b"#!/usr/bin/python\nprint()\n"),
        ("f.xml", wiki),
        ("f.bin", bytes(256)),
        ("g.txt", b""),
    ]


def test_the_same_files_give_the_same_documents_as_ever(tmp_path: Path) -> None:
    root = Root(str(tmp_path / "root"))
    entries = decode(root, *(land(tmp_path, *file) for file in golden_files()))
    hashed = hashlib.sha256()
    for role in ("data", "ledger"):
        for row in rows_of(root, entries, role):
            # Reasons are words for people, and may be put better without a new version.
            row.pop("detail", None)
            hashed.update(json.dumps(row, default=str, sort_keys=True).encode())
    assert {CODE_VERSION: hashed.hexdigest()[:16]} == GOLDEN
