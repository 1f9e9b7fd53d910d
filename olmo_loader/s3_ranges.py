"""Ranges of objects in S3, through s3fs, which is imported when the first one is read.

s3fs keeps connections and repeats what S3 asks to repeat; here range, length and size of the answer
are checked, and the total time is bounded.
"""

from __future__ import annotations

import errno
import os
import threading
from typing import Any

from olmo_loader.errors import ConfigurationError, MissingFileError, ReadError, ShortReadError
from olmo_loader.overriding import override
from olmo_loader.retrying import RetryPolicy, TransientError

_MISSING = "NoSuchKey", "NoSuchBucket", "404"
_OURS = {"NoCredentialsError", "PartialCredentialsError", "ParamValidationError", "NoRegionError"}
"""Errors of this side, by name: their module is not imported for them."""


class S3Ranges:
    """Reads single ranges of ``s3://bucket/key``.

    Credentials, region and endpoint come from the environment, as every AWS tool reads them
    (``AWS_ENDPOINT_URL`` for other servers).

    Args:
        policy: of attempts and times.
    """

    def __init__(self, policy: RetryPolicy | None = None) -> None:
        self.policy = RetryPolicy() if policy is None else policy
        self._systems: dict[int, Any] = {}
        self._lock = threading.Lock()

    def size(self, name: str) -> int:
        """Return the object's size; errors as in `olmo_loader.http_ranges`."""
        bucket, key = _split(name)

        def attempt(_: float) -> int:
            answer = self._ask(name, "head_object", Bucket=bucket, Key=key)[0]
            return int(answer["ContentLength"])

        return self.policy.call(f"{name}: its size", attempt)

    def read_file(self, name: str) -> bytes:
        """Return a whole object."""
        bucket, key = _split(name)

        def attempt(_: float) -> bytes:
            answer, data = self._ask(name, "get_object", Bucket=bucket, Key=key)
            if len(data) != answer["ContentLength"]:
                raise TransientError(f"{len(data)} of {answer['ContentLength']} bytes")
            return data

        return self.policy.call(name, attempt)

    def read_range(self, name: str, offset: int, buffer: memoryview) -> int | None:
        """Fill ``buffer`` from ``offset``; see `olmo_loader.http_ranges.HttpRanges.read_range`."""
        bucket, key = _split(name)
        end = offset + len(buffer)

        def attempt(_: float) -> int:
            asked = f"bytes={offset}-{end - 1}"
            answer, data = self._ask(name, "get_object", Bucket=bucket, Key=key, Range=asked)
            said = str(answer.get("ContentRange", ""))
            size = said.rpartition("/")[2]
            if size.isdecimal() and int(size) < end:
                raise ShortReadError(name)
            if said != f"bytes {offset}-{end - 1}/{size}" or len(data) != len(buffer):
                raise TransientError(
                    f"asked for bytes {offset}..{end}, Content-Range is {said!r} "
                    f"and {len(data)} bytes came"
                )
            buffer[:] = data
            return int(size)

        try:
            return self.policy.call(f"{name}: bytes {offset}..{end}", attempt)
        except ShortReadError as error:
            raise ShortReadError(
                f"{name}: wanted bytes {offset}..{end}, the object ends at {self.size(name)}"
            ) from error

    def _ask(self, name: str, method: str, **request: Any) -> tuple[dict[str, Any], bytes]:
        system = self._system()
        from fsspec.asyn import sync  # noqa: PLC0415 - comes with s3fs

        async def ask() -> tuple[dict[str, Any], bytes]:
            answer = await system._call_s3(method, **request)  # noqa: SLF001 - checks need headers
            if "Body" not in answer:
                return answer, b""
            async with answer["Body"] as body:
                return answer, await body.read()

        try:
            answer: tuple[dict[str, Any], bytes] = sync(
                system.loop, ask, timeout=self.policy.request_s
            )
        except FileNotFoundError as error:
            raise MissingFileError(f"{name}: there is no such object") from error
        except PermissionError as error:
            raise ReadError(f"{name}: not allowed: {error}") from error
        except Exception as error:
            raise _translated(name, error) from error
        return answer

    def _system(self) -> Any:
        """Return this process's file system: its loop and connections do not survive a fork."""
        system = self._systems.get(os.getpid())
        if system is None:
            with self._lock:
                try:
                    import s3fs  # noqa: PLC0415 - only those who read from S3 need it
                except ImportError as error:
                    raise ConfigurationError(
                        "s3:// needs the package s3fs: pip install 'olmo-loader[s3]'"
                    ) from error
                system = s3fs.S3FileSystem(skip_instance_cache=True)
                self._systems = {os.getpid(): system}
        return system

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return S3Ranges, (self.policy,)


def _split(name: str) -> tuple[str, str]:
    bucket, _, key = name.removeprefix("s3://").partition("/")
    if not bucket or not key:
        raise ConfigurationError(f"{name}: an object is s3://bucket/key")
    return bucket, key


def _translated(name: str, error: Exception) -> Exception:
    text = f"{type(error).__name__}: {error}"
    code = str(getattr(error, "response", {}).get("Error", {}).get("Code", ""))
    if code in _MISSING:
        return MissingFileError(f"{name}: there is no such object")
    if code == "InvalidRange" or (isinstance(error, OSError) and error.errno == errno.EINVAL):
        return ShortReadError(name)
    if type(error).__name__ in _OURS:
        return ReadError(f"{name}: {text}")
    return TransientError(text)
