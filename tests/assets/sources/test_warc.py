from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO

import pytest
from fastwarc.stream_io import BrotliWriter
from fastwarc.warc import ArchiveIterator

from assets.sources.formats import http_message
from assets.sources.formats.record import Found
from assets.sources.formats.warc import is_prose, parse_date
from tests.assets.sources.reading import only_found, only_lost, outcomes, read_bytes, read_file
from tests.assets.sources.warc_building import http, page, record
from tests.shared_data import shared_folder

DESCRIPTIONS = b"".join(
    record(b"about it\r\n", kind=kind, content_type="text/plain")
    for kind in ("warcinfo", "request", "metadata")
)


def warc(data: bytes) -> list[str]:
    return outcomes(data, "a.warc", format="warc")


def test_a_capture_becomes_a_document_with_its_context() -> None:
    data = DESCRIPTIONS + page("caf\u00e9", url="<http://user:secret@a.example/x?sig=1&b=2>")
    (found,) = read_bytes(data)
    assert found == Found(
        text="<html>caf\u00e9</html>",
        position=len(DESCRIPTIONS),
        user_id="urn:uuid:response",
        url="http://a.example/x?b=2",
        content_type="text/html",
        fetched_at=datetime(2024, 2, 29, 12, tzinfo=UTC),
    )


def test_what_is_a_record_and_what_describes_one() -> None:
    data = (
        DESCRIPTIONS
        + page("a")
        + record(b"plain text", kind="resource", content_type="text/plain")
        + record(b"extracted", kind="conversion", content_type="text/plain")
        + record(http(b""), kind="revisit")
        + record(b"more", kind="continuation")
        + record(b"?", kind="invention")
        + record(b"log", kind="resource", content_type="text/plain", url="metadata://gnu.org/log")
    )
    assert warc(data) == [
        "<html>a</html>",
        "plain text",
        "extracted",
        "<revisit>",
        "<continuation>",
        "<unknown_record_type>",
        "<crawl_metadata>",
    ]
    assert [found.metadata for found in only_found(read_bytes(data))] == [
        {},
        {"warc_type": "resource"},
        {"warc_type": "conversion"},
    ]
    assert warc(DESCRIPTIONS) == ["<no_records>"]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (http(b"", "text/html"), "<empty_body>"),
        (http(b"moved", status="302 Found"), "<http_status>"),
        (http(b"gone", status="404 Not Found"), "<http_status>"),
        (http(b"\x89PNG", "image/png"), "<not_text>"),
        (http(b"a {}", "text/css"), "<not_text>"),
        (http(b"f()", "application/x-javascript"), "<not_text>"),
        (http(b"{}", "application/json"), "<not_text>"),
        (http(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200), "text/html"), "<not_text>"),
        (http(bytes(range(256)) * 4, None), "<not_text>"),
        (http(b"just words", None), "just words"),
        (http(b" <!DOCTYPE HTML>x", None), " <!DOCTYPE HTML>x"),
        (http(b"words", "nonsense"), "words"),
        (http(b"words", "TEXT/PLAIN ; x=y"), "words"),
        (http(b"x", status="200"), "x"),
        (b"HTTP/1.1 200 OK\nContent-Type: text/html\n\nbare line ends", "bare line ends"),
        (b"no header at all", "no header at all"),
        (b"HTTP/1.1 200 OK", "<empty_body>"),
        (http(b"pdf", "application/pdf"), "<not_text>"),
    ],
)
def test_bodies_that_are_and_are_not_documents(block: bytes, expected: str) -> None:
    assert warc(record(block)) == [expected]


def chunked(body: bytes, size: int = 7) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x;ext=1\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def brotli(data: bytes) -> bytes:
    sink = BytesIO()
    writer = BrotliWriter(sink)
    writer.write(data)
    writer.close()
    return sink.getvalue()


BODY = b"<html>" + b"many words " * 40 + b"</html>"
CODED = {
    "": BODY,
    "gzip": gzip.compress(BODY, mtime=0),
    "x-gzip": gzip.compress(BODY[:100]) + gzip.compress(BODY[100:]),
    "deflate": zlib.compress(BODY),
    "identity": BODY,
    "br": brotli(BODY),
}


@pytest.mark.parametrize("coding", CODED)
@pytest.mark.parametrize("in_chunks", [False, True])
def test_codings_are_undone(coding: str, in_chunks: bool) -> None:
    body = chunked(CODED[coding]) if in_chunks else CODED[coding]
    extra = f"Content-Encoding: {coding}\r\n" * bool(coding)
    extra += "Transfer-Encoding: chunked\r\n" * in_chunks
    assert warc(record(http(body, extra=extra))) == [BODY.decode()]


def test_bare_deflate_and_codings_already_undone() -> None:
    bare = zlib.compress(BODY)[2:-4]
    for coding, body in (("deflate", bare), ("gzip", BODY), ("deflate", BODY), ("br", BODY)):
        extra = f"Content-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n"
        assert warc(record(http(body, extra=extra))) == [BODY.decode()], coding


@pytest.mark.parametrize(
    ("body", "extra", "told"),
    [
        (chunked(BODY)[:-30], "Transfer-Encoding: chunked\r\n", "chunked"),
        (CODED["gzip"][:-9], "Content-Encoding: gzip\r\n", "content-encoding"),
        (BODY[:200], f"Content-Length: {len(BODY)}\r\n", "content-length"),
    ],
)
def test_a_body_cut_by_the_server_is_kept_and_marked(body: bytes, extra: str, told: str) -> None:
    (found,) = only_found(read_bytes(record(http(body, extra=extra))))
    assert BODY.decode().startswith(found.text)
    assert len(found.text) > 50
    assert found.metadata == {"truncated": told}
    assert found.marks == ("body_cut",)


def test_a_cut_that_the_crawler_made_is_marked() -> None:
    (found,) = only_found(read_bytes(page("a", extra="WARC-Truncated: length\r\n")))
    assert found.metadata == {"truncated": "length"}
    assert found.marks == ("body_cut",)


@pytest.mark.parametrize(
    ("codings", "absent"),
    [
        (("Transfer-Encoding: chunked",), ["chunked"]),
        (("Content-Encoding: gzip",), ["gzip"]),
        (("Transfer-Encoding: chunked", "Content-Encoding: br"), ["chunked", "br"]),
        (("Content-Encoding: identity",), None),
    ],
)
def test_a_coding_that_is_announced_and_not_there_is_marked(
    codings: tuple[str, ...], absent: list[str] | None
) -> None:
    extra = "".join(f"{line}\r\n" for line in codings)
    (found,) = only_found(read_bytes(record(http(BODY, extra=extra))))
    assert found.text == BODY.decode()
    assert found.metadata == ({"coding_absent": absent} if absent else {})
    assert found.marks == (("coding_absent",) if absent else ())


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (b"\x1f\x8b\x08damaged", "gzip"),
        (b"\xff\x00junk", "deflate"),
        (b"\x00\xff" * 9, "br"),
        (b"\xff\x00", "zstd"),
        (BODY, "compress"),
    ],
)
def test_a_body_that_cannot_be_decoded_is_lost(body: bytes, coding: str) -> None:
    assert warc(record(http(body, extra=f"Content-Encoding: {coding}\r\n"))) == ["<bad_body>"]


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_a_compression_bomb_in_a_body_is_stopped(
    coding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_message, "MAX_RECORD_BYTES", 1 << 20)
    zeros = b" " * (40 << 20)
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "br": brotli,
    }
    packed = packers[coding](zeros)
    data = record(http(packed, extra=f"Content-Encoding: {coding}\r\n")) + page("next")
    assert warc(data) == ["<too_large>", "<html>next</html>"]


@pytest.mark.parametrize(
    ("body", "header", "text"),
    [
        ("день".encode("cp1251"), "text/html; charset=windows-1251", "день"),
        ("中文网页".encode("gb2312"), "text/html;charset=GB2312", "中文网页"),
        (
            '<meta charset="euc-jp">日本'.encode("euc-jp"),
            "text/html",
            '<meta charset="euc-jp">日本',
        ),
        ("naïve".encode("latin-1"), "text/html; charset=utf-8", "naïve"),
        ("naïve".encode(), "text/html; charset=iso-8859-1", "naïve"),
        ("naïve".encode(), 'text/html; charset="no-such"', "naïve"),
        ("naïve".encode("utf-16"), "text/html", "naïve"),
        (b"\xef\xbb\xbfnai", "text/html; charset=latin1", "nai"),
    ],
)
def test_charsets_by_header_meta_and_content(body: bytes, header: str, text: str) -> None:
    assert warc(record(http(body, header))) == [text]


def test_a_record_with_wrong_lengths_or_bytes_between_records_costs_only_itself() -> None:
    good = page("good")
    text = "<html>good</html>"
    assert warc(good + b"junk\r\nmore junk\r\n" + good) == [text, "<bad_warc>", text]
    assert warc(b"junk" + b"\r\n" + good) == ["<bad_warc>", text]
    assert warc(good + b"junk") == [text, "<bad_warc>"]
    for length in ("-1", "x", "", "9" * 40):
        assert warc(page("a", length=length) + good) == ["<bad_warc>", text]
    assert warc(good + good[:50].rpartition(b"\r\n")[0] + b"\r\n" + good) == [
        text,
        "<bad_warc>",
        text,
    ]
    short = record(http(b"0123456789"), length=len(http(b"01234")))
    assert warc(short + good) == ["01234", "<bad_warc>", text]
    assert warc(b"\r\n" * 5000 + good + b"\r\n" * 5000 + good) == [text, text]


@pytest.mark.parametrize("cut", [1, 5, 20, 40])
@pytest.mark.parametrize("last", [page("cut off"), DESCRIPTIONS])
def test_a_cut_file_says_so_whatever_record_the_cut_is_in(last: bytes, cut: int) -> None:
    whole = page("good")
    if cut > 4:
        assert warc(whole + last[:-cut]) == ["<html>good</html>", "<truncated>"]
    members = gzip.compress(whole) + gzip.compress(last)
    found = outcomes(members[:-cut], "a.warc.gz")
    assert found[0] == "<html>good</html>"
    assert found[-1] == "<truncated>"
    assert len(found) <= 3


def test_a_cut_in_a_header_is_found() -> None:
    assert warc(page("good") + page("next")[:60]) == ["<html>good</html>", "<truncated>"]


def test_a_stretch_of_bytes_without_records_is_one_loss_in_linear_time() -> None:
    good, text = page("good"), "<html>good</html>"
    for start in (b"WARC/1.0\r\n", b"WARC/1.0\r\n\r\n", b"WARC/1.0\r\nX: y\r\n", b"\nWARC/\n"):
        assert warc(start * 50_000 + good) == ["<bad_warc>", text]
        assert warc(good + start * 50_000)[:2] in ([text, "<bad_warc>"], [text, "<truncated>"])


def test_large_records_are_skipped_without_being_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assets.sources.formats.warc_records.MAX_RECORD_BYTES", 1 << 20)
    large = page("x" * (3 << 20))
    assert warc(large + page("next")) == ["<too_large>", "<html>next</html>"]
    assert warc(page("next") + large[:-9]) == ["<html>next</html>", "<truncated>"]
    endless = b"WARC/1.0\r\n" + b"X: y\r\n" * 200_000
    assert warc(endless + b"\r\n" + page("next")) == ["<bad_warc>", "<html>next</html>"]


def test_headers_without_digest_or_uri_and_with_odd_bytes() -> None:
    block = http(b"x")
    bare = b"WARC/1.1\nWARC-Type: response\nContent-Length: %d\n\n%s\n\n" % (len(block), block)
    odd = (
        b"WARC/1.0\r\nwarc-type:RESPONSE\r\nX-Odd: \xff\xfe\r\nX-Folded: a\r\n\tb\r\nno colon\r\n"
        b"WARC-Date: tomorrow\r\nCONTENT-LENGTH:%d\r\n\r\n%s\r\n\r\n" % (len(block), block)
    )
    for data in (bare, odd):
        (found,) = only_found(read_bytes(data))
        assert (found.text, found.url, found.user_id, found.fetched_at) == ("x", None, None, None)


def test_dates_are_in_utc_or_none() -> None:
    assert parse_date("2024-01-01T01:00:00+01:00") == datetime(2024, 1, 1, tzinfo=UTC)
    assert parse_date("2024-01-01T00:00:00.123456789Z") is not None
    for bad in ("", "2008-10-294T05:21:46-0700", "0001-01-01T00:00:00+23:00"):
        assert parse_date(bad) is None, bad


def test_prose_by_type() -> None:
    assert [
        kind for kind in ("text/html", "text/plain", "text/markdown") if not is_prose(kind)
    ] == []
    assert not any(map(is_prose, ("text/css", "text/xml", "text/csv", "image/png", "")))


# Real files of several writers; counts by hand from the records' types, statuses and MIME types.


@pytest.mark.parametrize(
    ("name", "found", "lost"),
    [
        ("IAH-urls-wget.warc", 3, {"http_status": 9, "not_text": 4, "crawl_metadata": 3}),
        ("IAH-urls-wget.warc.gz", 3, {"http_status": 9, "not_text": 4, "crawl_metadata": 3}),
        ("block-sized-records.warc", 0, {"unknown_record_type": 3}),
        ("cc-one-record.warc.gz", 1, {}),
        ("clueweb-quirk.warc.gz", 29, {}),
        ("dupes.warc.gz", 1, {"http_status": 1, "revisit": 9, "not_text": 1}),
        ("example-digest.warc", 0, {"no_records": 1}),
        ("example-iana.org-chunked.warc", 1, {}),
        ("example-resource.warc.gz", 1, {}),
        ("example.warc", 1, {"revisit": 1}),
        ("example.warc.gz", 1, {"revisit": 1}),
        ("iana.warc.gz", 16, {"http_status": 4, "revisit": 123, "not_text": 28}),
        ("post-test.warc.gz", 0, {"not_text": 3}),
        ("sample-0000.warc.gz", 22, {"crawl_metadata": 2}),
        ("sample-0001.warc.gz", 15, {"crawl_metadata": 2}),
        ("warcfile.warc.gz", 16, {}),
        ("whirlwind.warc.gz", 1, {}),
    ],
)
def test_real_files(name: str, found: int, lost: dict[str, int]) -> None:
    records = read_file(shared_folder("warc", "sane", name))
    assert len(only_found(records)) == found
    rules = [item.rule for item in only_lost(records)]
    assert {rule: rules.count(rule) for rule in rules} == lost


def test_one_archive_in_three_containers_is_the_same_documents() -> None:
    folder = shared_folder("warc", "sane")
    plain, *others = [
        read_file(folder / f"warcfile.warc{suffix}") for suffix in ("", ".gz", ".lz4")
    ]
    assert len(plain) == 16
    assert others == [plain, plain]
    charsets = {found.metadata.get("charset") for found in only_found(plain)}
    assert {"gb18030", "cp1251"} <= charsets


def test_wet_is_read_and_wat_holds_no_record() -> None:
    folder = shared_folder("warc", "wat_wet")
    (wet,) = read_file(folder / "whirlwind.warc.wet.gz")
    assert isinstance(wet, Found)
    assert (wet.metadata["warc_type"], wet.metadata["identified_languages"]) == (
        "conversion",
        "spa",
    )
    assert outcomes((folder / "whirlwind.warc.wat.gz").read_bytes()) == ["<no_records>"]


def test_urls_lose_the_angle_brackets_of_wget() -> None:
    records = read_file(shared_folder("warc", "sane", "sample-0000.warc.gz"))
    urls = [found.url for found in only_found(records)]
    assert "https://soldaini.net/" in urls
    assert not [url for url in urls if url is None or not url.startswith("http")]


def test_an_independent_reader_finds_the_same_records() -> None:
    kinds = {"response", "resource", "conversion", "revisit", "continuation", "unknown"}
    for path in sorted(shared_folder("warc", "sane").glob("*.warc*")):
        captured = []
        for item in ArchiveIterator(str(path), parse_http=False, fsspec_args=False):
            headers = dict(item.headers.items())
            if headers["WARC-Type"] in kinds:
                captured.append(headers["WARC-Record-ID"])
        records = [item for item in read_file(path) if getattr(item, "rule", "") != "no_records"]
        assert len(records) == len(captured), path.name
        named = [item.user_id for item in only_found(records)]
        assert set(named) <= {identity.strip("<>") for identity in captured}, path.name


@pytest.mark.parametrize("share", [0.15, 0.4, 0.65, 0.9, 0.999])
def test_a_real_archive_cut_anywhere_keeps_what_came_before(share: float) -> None:
    stored = shared_folder("warc", "sane", "sample-0001.warc.gz").read_bytes()
    whole = read_bytes(stored, "a.warc.gz")
    cut = read_bytes(stored[: int(len(stored) * share)], "a.warc.gz")
    assert cut[:-1] == whole[: len(cut) - 1]
    assert only_lost(cut)[-1].rule == "truncated"


def test_wet_files_are_read_and_their_languages_kept() -> None:
    data = record(
        b"words",
        kind="conversion",
        content_type="text/plain",
        extra="WARC-Identified-Content-Language: eng,fra\r\nWARC-Refers-To: <urn:uuid:1>\r\n",
    )
    (found,) = only_found(read_bytes(data, "a.warc.wet", format="wet"))
    assert found.metadata == {
        "warc_type": "conversion",
        "identified_languages": "eng,fra",
        "refers_to": "urn:uuid:1",
    }
