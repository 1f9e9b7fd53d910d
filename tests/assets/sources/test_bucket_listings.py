"""A listing of a bucket that breaks off is an error: files that nobody lists would be lost."""

from __future__ import annotations

# ruff: noqa: SIM117 (a server, and what is expected of it)
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

from assets.errors import LandingError
from assets.sources.allowed_hosts import ALLOWED_HOSTS_VARIABLE
from tests.assets.sources.test_hostile_servers import answer, files_at, talk

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    ALLOWED_HOSTS_VARIABLE: "s3://b",
}


def listing(name: str, token: str | None, *, is_truncated: bool = True) -> bytes:
    more = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    return (
        f"<ListBucketResult><IsTruncated>{str(is_truncated).lower()}</IsTruncated>{more}"
        f"<Contents><Key>c/{name}</Key><Size>3</Size></Contents></ListBucketResult>"
    ).encode()


@contextmanager
def bucket(monkeypatch: pytest.MonkeyPatch, pages: dict[str, bytes]) -> Iterator[None]:
    """A server that answers a continuation token (empty: the first) with a page."""
    pytest.importorskip("s3fs")

    def script(method, path):
        token = parse_qs(urlsplit(path).query).get("continuation-token", [""])[0]
        return [answer(pages[token], Content_Type="application/xml")]

    with talk(script) as server:
        for name, value in (ENVIRONMENT | {"AWS_ENDPOINT_URL": server.url}).items():
            monkeypatch.setenv(name, value)
        yield


def test_pages_are_followed_to_the_last(tmp_path, monkeypatch):
    pages = {
        "": listing("a.txt", "1"),
        "1": listing("b.txt", "2"),
        "2": listing("c.txt", None, is_truncated=False),
    }
    with bucket(monkeypatch, pages):
        found = files_at(tmp_path, "s3://b/c/*.txt")
    assert [file.landed_path for file in found] == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (b"", "no listing of a bucket"),
        (b"<html>please log in</html>", "no listing of a bucket"),
        (listing("b.txt", None), "no token for the pages"),
        (listing("b.txt", "1"), "the token '1' again"),
    ],
)
def test_a_listing_that_breaks_off_is_an_error(tmp_path, monkeypatch, second, message):
    with bucket(monkeypatch, {"": listing("a.txt", "1"), "1": second}):
        with pytest.raises(LandingError, match=f"source 'crawl': s3://b/c/ .*{message}"):
            files_at(tmp_path, "s3://b/c/*.txt")
