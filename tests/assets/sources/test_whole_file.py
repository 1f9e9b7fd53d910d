from __future__ import annotations

import bz2
import gzip

import pytest

from assets.sources.formats import whole_file
from assets.sources.formats.record import Found
from tests.assets.sources.reading import outcomes, read_bytes, read_file
from tests.shared_data import shared_folder


def test_a_text_file_is_one_document_as_it_is() -> None:
    text = "First\r\n\r\nsecond\rthird\n \t caf\u00e9 \U0001f600"
    (record,) = read_bytes(text.encode(), "a.txt")
    assert record == Found(text=text, position=0, content_type="text/plain")


@pytest.mark.parametrize(
    ("data", "text", "metadata"),
    [
        (b"\xef\xbb\xbfmark", "mark", {}),
        ("mark".encode("utf-16"), "mark", {"charset": "utf-16-le"}),
        (
            "Été à la forêt, garçon".encode("latin-1"),
            "Été à la forêt, garçon",
            {"charset": "cp1252"},
        ),
        ("Żółć Ωμέγα ".encode() * 9 + b"\xff", "Żółć Ωμέγα " * 9 + "\ufffd", {"num_replaced": 1}),
        (b"one zero \0 in a text" + b" " * 99, "one zero \0 in a text" + " " * 99, {}),
    ],
)
def test_marks_and_charsets(data: bytes, text: str, metadata: dict[str, object]) -> None:
    (record,) = read_bytes(data, "a.txt", format="text")
    assert isinstance(record, Found)
    assert (record.text, record.metadata) == (text, metadata)


def test_html_keeps_its_markup_and_follows_its_declaration() -> None:
    data = '<html><meta charset="windows-1251"><p>Привет'.encode("cp1251")
    (record,) = read_bytes(data, "a.html")
    assert isinstance(record, Found)
    assert (record.text, record.content_type) == (data.decode("cp1251"), "text/html")


def test_files_that_are_no_document() -> None:
    assert outcomes(b"", "a.txt") == ["<empty_file>"]
    assert outcomes(b"", "a.html") == ["<empty_file>"]
    assert outcomes(b"\xef\xbb\xbf", "a.txt") == ["<not_text>"]
    assert outcomes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", "a.txt", format="text") == ["<not_text>"]
    assert outcomes(gzip.compress(b"half a page" * 99)[:-9], "a.txt.gz") == ["<truncated>"]
    assert outcomes(bz2.compress(b"half a page" * 99)[:-9], "a.html.bz2") == ["<truncated>"]


def test_a_file_above_the_limit_is_lost_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_file, "MAX_RECORD_BYTES", 1000)
    assert outcomes(b"x" * 1000, "a.txt") == ["x" * 1000]
    (record,) = read_bytes(b"x" * 1001, "a.txt")
    assert getattr(record, "rule", "") == "too_large"
    assert "split it" in getattr(record, "reason", "")


def test_books_with_marks_crlf_and_legacy_charsets() -> None:
    folder = shared_folder("demo", "books")
    texts = {}
    for path in sorted(folder.rglob("*.txt")):
        (record,) = read_file(path)
        assert isinstance(record, Found), path
        texts[path.name] = record
    assert not any(record.text.startswith("\ufeff") for record in texts.values())
    assert any("\r\n" in record.text for record in texts.values())
    assert any(record.metadata.get("charset") for record in texts.values())
    assert not any(record.metadata.get("num_replaced") for record in texts.values())
