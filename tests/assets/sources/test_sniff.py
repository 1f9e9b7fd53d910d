from __future__ import annotations

import time

import pytest

from assets.sources.formats.compression import DecodedStream
from assets.sources.formats.sniff import SNIFF_BYTES, extension_of, find_format
from tests.assets.sources.reading import outcomes, read_bytes, read_file
from tests.shared_data import shared_folder


@pytest.mark.parametrize(
    ("head", "path", "name"),
    [
        (b"WARC/1.0\r\n", "x.txt", "warc"),
        (b"PAR1\x15\x04", "x.jsonl", "parquet"),
        (b"%PDF-1.7", "x", "pdf"),
        (b"PK\x03\x04", "x.html", "zip"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "x", "binary data"),
        (b"x" * 257 + b"ustar", "x", "tar"),
        (b'{"text": "a"}\n', "x", "jsonl"),
        (b"\xef\xbb\xbf\n" + b'{"text": "a"}\n', "x.data", "jsonl"),
        (b'not json\n{"text": "a"}\n', "x.jsonl", "jsonl"),
        (b"\x1f no gzip", "x.txt", "text"),
        (b'{broken\n{"text": "a"}\n', "x", "jsonl"),
        (b'{\n  "text": "a"\n}\n', "x.json", "json"),
        (b'[\n{"text": "a"},\n', "x.json", "json"),
        (b'{"text": "' + b"a" * 70_000, "x", "jsonl"),
        (b"{curly} words", "x", "text"),
        (b"[1] a footnote", "x", "json"),
        (b"[Illustration] a book", "x", "text"),
        (b"<!DOCTYPE html><p>", "x", "html"),
        (b"<!-- c -->\n<HTML lang=de>", "x", "html"),
        (b"<!---->" * 3000 + b"<html>", "x", "html"),
        (b"<!---->" * 3000 + b"words", "x", "text"),
        (b"<!-- never closed <html>", "x", "text"),
        (b'<?xml version="1.0"?>\n<html xmlns="x">', "x", "html"),
        (b'<?xml version="1.0"?>\n<feed>', "x", "xml"),
        (b'<mediawiki xmlns="x">', "dump-p1p2", "wiki_xml"),
        ("\ufeff<mediawiki>".encode("utf-16-le"), "dump", "wiki_xml"),
        (b"<fragment> of markup", "page.htm", "html"),
        (b"<b>bold</b> words", "x", "text"),
        (b"% a paper\n\\documentclass{article}\n", "x", "latex"),
        (b"\\section{One}\nwords\n\\label{one}\n", "x", "latex"),
        (b"words\n", "x.tex", "latex"),
        (b'.\\" a manual\n.TH LS 1\n', "x", "man"),
        (b"words", "man/ls.1.gz", "man"),
        (b"Title\n=====\n", "pep.rst", "rst"),
        (b"a\tb\n", "x.tsv", "tsv"),
        (b"import os\n", "x.py", "code"),
        (b"words", "notes.TXT", "text"),
        (b"\\documentclass{article}", "notes.txt", "latex"),
        (b".TH LS 1\n", "ls.txt", "man"),
        (b".\n.\n.TH LS 1\n", "x", "man"),
        (b"<!DOCTYPE html><p>", "x.txt", "html"),
        (b"<!DOCTYPE html><p>", "x.jsonl", "html"),
        (b"<!DOCTYPE html><?php", "x.php", "code"),
        (b"<p>a", "x", "html"),
        (b"<p>a", "x.md", "markdown"),
        (b"<pre words", "x", "text"),
        (b'{"text": "a"}\n{"text": "b"}\n', "x.csv", "jsonl"),
        (b'{"text": "a"}\n{"text": "b"}\n', "x.py", "code"),
        (b'{"text": "a"}\nwords\n', "x.txt", "text"),
        (b'{"text": "' + b"a" * 70_000, "x.txt", "jsonl"),
        (b"<mediawiki>", "x.txt", "wiki_xml"),
        (b"<?xml version='1.0'?>\n<posts>\n", "Posts.txt", "stackexchange"),
        (b"id,text\n1,a\n2,b\n3,", "x.tsv", "csv"),
        (b"id,text\n1,a\n2,b\n3,", "x.txt", "text"),
        (b"Title\n=====\n\n.. note:: words\n", "README", "rst"),
        (b"One\n===\n\nTwo\n---\nsee :ref:`there`\n", "x", "rst"),
        (b"One\n===\n\nTwo\n---\nplain words\n", "x", "text"),
        (b"# One\n\nSee [there](https://x.org).\n", "README", "markdown"),
        (b"# One\n```\ncode\n```\n", "x", "markdown"),
        (b"# a setting\n# another\nx = 1\n", "conf", "text"),
        (b"words", "LICENSE", "text"),
        (b"id,text,url\n1,a,b\n2,c,d\n3,", "x", "csv"),
        (b'id\ttext\n1\t"a\nb"\n2\tc\nx', "x", "tsv"),
        (b"Hello, world\nand, you\nbye, all\nx", "x", "text"),
        (b"id,text\n1,a\n2\n3,b\n", "x", "text"),
        (b"<?xml version='1.0'?>\n<posts>\n", "x", "stackexchange"),
        (b"all:\n", "src/Makefile", "code"),
        ("\ufeffwords".encode("utf-16-le"), "x", "text"),
        ("words".encode("utf-16-be"), "x", "text"),
    ],
)
def test_formats_by_content_and_extension(head: bytes, path: str, name: str) -> None:
    assert find_format(head, path) == name


def test_extensions_look_through_compression() -> None:
    assert extension_of("a/b.JSONL.gz") == "jsonl"
    assert extension_of("a/b.tar.bz2.xz") == "tar"
    assert extension_of("a.b/c") == ""


def test_a_format_that_is_not_read_is_one_loss_per_file_and_readable_as_text() -> None:
    data = b'<?xml version="1.0"?>\n<feed>words</feed>\n'
    (record,) = read_bytes(data, "feed")
    assert getattr(record, "rule", None) == "format_not_in_this_version"
    assert "xml" in getattr(record, "reason", "")
    assert outcomes(data, "feed", format="text") == [data.decode()]


def test_a_wrong_format_setting_is_a_loss_and_not_a_crash() -> None:
    assert outcomes(b"just words\n", format="jsonl") == ["<bad_json>"]
    assert outcomes(b"just words\n", format="warc") == ["<bad_warc>"]
    assert outcomes(bytes(range(256)) * 10, format="html") == ["<not_text>"]


def test_every_file_of_the_demo_corpus_is_read_or_named() -> None:
    folder = shared_folder("demo")
    for source in ("books", "docs", "papers", "qa", "wiki"):
        for path in sorted(item for item in (folder / source).rglob("*") if item.is_file()):
            text = "body" if path.suffix == ".tsv" else "text"
            rules = {getattr(record, "rule", "") for record in read_file(path, text_field=text)}
            rules -= {"redirect", "other_namespace"}
            assert rules == {""}, path


@pytest.mark.parametrize("extension", ["", ".txt", ".dat", ".csv", ".jsonl"])
def test_real_files_are_told_under_wrong_names(extension: str) -> None:
    """Every format that shows itself in the content, from real files."""
    folder = shared_folder("demo")
    wanted = {"jsonl": "*.jsonl*", "wiki_xml": "*.xml.bz2", "html": "*.html", "warc": "*.warc*"}
    for name, pattern in wanted.items():
        for path in sorted(folder.rglob(pattern))[:12]:
            with path.open("rb") as file:
                head = DecodedStream(file).peek(SNIFF_BYTES)
            assert find_format(head, f"renamed{extension}") == name, path


def test_hostile_starts_take_linear_time() -> None:
    started = time.process_time()
    for unit in (
        b"a\n===\n",
        b"[a](",
        b"# a\n",
        b"[",
        b"x" * 199 + b"\n",
        b"=",
        b":a:`",
        b"``",
        b"<!--",
    ):
        find_format(unit * (SNIFF_BYTES // len(unit)), "x")
    assert time.process_time() - started < 3
