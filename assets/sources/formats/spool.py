"""Copy a stream to a temporary file, for formats that are read from their end or more than once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from assets.sources.formats.compression import DecodedStream


@contextmanager
def spooled(stream: DecodedStream, scratch: Path | None) -> Iterator[BinaryIO]:
    """Yield a file with the rest of `stream`, at its start; it is gone afterwards.

    Args:
        stream: Read to its end; `stream.problem` then tells whether it was whole.
        scratch: Folder on a local disk; None is the system's for temporary files.

    Raises:
        OSError: the store or the local disk failed.
    """
    with tempfile.TemporaryFile(dir=scratch) as file:
        while chunk := stream.read():
            file.write(chunk)
        file.seek(0)
        yield file
