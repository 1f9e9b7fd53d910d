"""A bucket that fails for good is an error within a minute."""

from __future__ import annotations

import pytest

from assets.errors import LandingError
from assets.sources import stored_files, stored_objects
from olmo_loader.errors import ReadError
from olmo_loader.retrying import RetryPolicy
from tests.assets.sources.test_bucket_listings import ENVIRONMENT
from tests.assets.sources.test_hostile_servers import answer, files_at, talk

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
