"""An S3 server on loopback (moto), and folders copied into its buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Start a server; yields the environment in which clients find it."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.stop()


@contextmanager
def s3_copies(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], str]]:
    """Start a server, point the environment at it; yields what copies a folder into a bucket."""
    boto3 = pytest.importorskip("boto3")
    with s3_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield _copying(boto3.client("s3"))


def _copying(client: Any) -> Callable[[Path], str]:
    made = 0

    def copy(folder: Path) -> str:
        nonlocal made
        made += 1
        bucket = f"copy-{made}"
        client.create_bucket(Bucket=bucket)
        for path in folder.rglob("*"):
            if path.is_file():
                key = f"root/dataset/{path.relative_to(folder)}"
                client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
        return f"s3://{bucket}/root/dataset"

    return copy
