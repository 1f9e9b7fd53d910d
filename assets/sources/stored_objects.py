"""Objects of sources in S3: pages of listings, and ranges that are all of one version.

`POLICY` is the one layer of attempts. botocore and s3fs have layers of their own, five attempts
each, which multiply with it: a server that failed for good took minutes. Both make one here.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from olmo_loader.errors import IntegrityError
from olmo_loader.retrying import RetryPolicy
from olmo_loader.s3_ranges import S3Ranges

POLICY = RetryPolicy(attempts=8, total_s=60.0)
"""Eight attempts, 26 s of pauses between them, none begun after 60 s."""


class SourceObjects(S3Ranges):
    """Reads what sources name in buckets, attempts and times as in `POLICY`."""

    def __init__(self) -> None:
        super().__init__(POLICY)

    def list_page(self, bucket: str, prefix: str, token: str | None) -> dict[str, Any]:
        """Return a page of a listing, as ListObjectsV2 answers.

        Args:
            bucket: Whose objects.
            prefix: What their keys begin with.
            token: The `NextContinuationToken` of the page before, None for the first page.

        Raises:
            OSError: it cannot be had.
            ConfigurationError: s3fs is not installed.
        """
        place = f"s3://{bucket}/{prefix}"
        request = {"Bucket": bucket, "Prefix": prefix}
        if token is not None:
            request["ContinuationToken"] = token
        return self.policy.call(
            f"{place}: its listing", lambda _: self._ask(place, "list_objects_v2", **request)[0]
        )

    @override
    def _system(self) -> Any:
        system = super()._system()
        # Before the first call, which is when s3fs connects; every thread comes by here first.
        system.retries = 1
        system.config_kwargs = {"retries": {"total_max_attempts": 1}}
        return system


class OneVersion(SourceObjects):
    """Reads one object, over the connections of `connected`.

    The ETag of the first answer holds for all others: another one is an `IntegrityError`, because
    pieces of two versions make a file that nobody stored. A server that tells none is believed.
    """

    def __init__(self, connected: SourceObjects) -> None:
        super().__init__()
        self._connected = connected
        self._etag: str | None = None

    @override
    def _ask(self, name: str, method: str, **request: Any) -> tuple[dict[str, Any], bytes]:
        answer, data = super()._ask(name, method, **request)
        etag = answer.get("ETag")
        if self._etag is None:
            self._etag = etag
        elif etag != self._etag:
            raise IntegrityError(
                f"{name}: its ETag became {etag} while it was read, it was {self._etag}"
            )
        return answer, data

    @override
    def _system(self) -> Any:
        return self._connected._system()  # noqa: SLF001 - a class of this module
