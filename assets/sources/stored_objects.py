"""Objects of sources in S3: pages of listings, and ranges.

`POLICY` is the one layer of attempts. botocore and s3fs have layers of their own, five attempts
each, which multiply with it: a server that failed for good took minutes. Both make one here.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import override

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
