"""Objects of a bucket that change while they are hashed, and a bucket that fails for good."""

from __future__ import annotations

import hashlib

import pytest

from assets.errors import LandingError
from assets.root import Root
from assets.sources import stored_files, stored_objects
from assets.sources.landing import land
from olmo_loader.errors import ReadError
from olmo_loader.retrying import RetryPolicy
from tests.assets.sources.test_bucket_listings import ENVIRONMENT, listing
from tests.assets.sources.test_hostile_servers import answer, files_at, settings_of, talk

PIECE = 1 << 20
QUICK = RetryPolicy(attempts=3, first_wait_s=0.01, total_s=20.0)


@pytest.fixture(autouse=True)
def _environment(tmp_path, monkeypatch):
    pytest.importorskip("s3fs")
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    stored_files._s3.cache_clear()
    yield
    stored_files._s3.cache_clear()


def object_server(etags):
    """Answers a listing of one object, and the pieces of that object under the given ETags."""
    left = iter(enumerate(etags))
    page = listing("a.txt", None, is_truncated=False)
    page = page.replace(b"<Size>3</Size>", f"<Size>{len(etags) * PIECE}</Size>".encode())

    def script(method, path):
        if "list-type" in path:
            return [answer(page, Content_Type="application/xml")]
        number, etag = next(left)
        said = f"bytes {number * PIECE}-{(number + 1) * PIECE - 1}/{len(etags) * PIECE}"
        headers = {"Content_Range": said} | ({"ETag": f'"{etag}"'} if etag else {})
        return [answer(b"%d" % number * PIECE, "206 Partial Content", **headers)]

    return script


@pytest.mark.parametrize("etags", ["aaa", "aab", "aba", ("", "", "")])
def test_an_object_that_is_overwritten_while_it_is_hashed_waits(
    tmp_path, monkeypatch, caplog, etags
):
    monkeypatch.setattr(stored_files, "PIECE_BYTES", PIECE)
    settings = settings_of(tmp_path, "s3://b/c/*.txt")
    with talk(object_server(etags)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        log = land(Root(settings.root), settings)
    if len(set(etags)) > 1:
        assert log.last_generation == 0
        assert "c/a.txt is still changing" in caplog.text
    else:
        (entry,) = log.generation(1).entries
        whole = b"".join(b"%d" % number * PIECE for number in range(3))
        assert entry.sha256 == hashlib.sha256(whole).hexdigest()


def test_a_named_object_that_is_not_there_is_named(tmp_path, monkeypatch):
    settings = settings_of(tmp_path, "s3://b/c/{a,gone}.txt")
    with talk(object_server("a")) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        with pytest.raises(LandingError, match=r"source 'crawl': there is no file s3://b/c/gone"):
            land(Root(settings.root), settings)


@pytest.mark.parametrize("what", ["listing", "object"])
def test_a_bucket_that_fails_for_good_is_asked_by_one_layer_of_attempts(
    tmp_path, monkeypatch, what
):
    failure = b"<Error><Code>InternalError</Code><Message>no</Message></Error>"
    script = lambda method, path: [answer(failure, "500 Internal Server Error")]  # noqa: E731
    monkeypatch.setattr(stored_objects, "POLICY", QUICK)
    with talk(script) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        if what == "listing":
            with pytest.raises(LandingError, match=r"cannot be listed: .*gave up after attempt 3"):
                files_at(tmp_path, "s3://b/c/*.txt")
        else:
            with pytest.raises(ReadError, match="gave up after attempt 3"):
                stored_files.stored_sha256("s3://b/c/a.txt", 3)
        assert len(server.asked) == QUICK.attempts


def test_all_attempts_end_within_a_minute():
    policy = stored_objects.POLICY
    pauses = [
        min(policy.first_wait_s * 2**number, policy.longest_wait_s)
        for number in range(policy.attempts - 1)
    ]
    assert sum(pauses) < policy.total_s <= 60
