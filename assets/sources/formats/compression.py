"""Open stored bytes as one decoded stream, whatever compressed them, and say how it ended.

The codec is found by magic bytes, never by name: gzip (any number of members), bzip2, xz, zstandard
and lz4 frames, or none. A stream that is cut, damaged or a bomb ends early instead of raising;
`DecodedStream.problem` then says why, and everything before that point has been handed out.
A checksum that fails at the end of a member does not tell which of its bytes are wrong: what was
handed out of that member may hold the fault; the landed file's own SHA-256 guards against changes
after landing. Errors of the store itself (a failing disk, a lost connection) are raised: they are
not content.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

CHUNK_BYTES = 1 << 18
"""Most bytes read from the store, or handed out, at once."""
ARROW_CHUNK_BYTES = 1 << 14
"""Arrow gives no partial output on an error, so this much at most is lost before a fault."""
BOMB_FREE_BYTES = 64 << 20
"""Decoded bytes up to which any expansion is accepted."""
MAX_EXPANSION = 200
"""Decoded bytes per stored byte above which a stream is a bomb; text compresses 3 to 30 times."""

MAX_WINDOW_BYTES = 128 << 20
"""Largest window of xz and zstandard data: what must be held at once. Arrow's is the same."""
_WINDOW_EXTRA_BYTES = 4 << 20
"""What the decoder of xz takes besides."""
_FEED_BYTES = 1 << 14
_LONGEST_MAGIC = 10

_GZIP = b"\x1f\x8b\x08"
_XZ = b"\xfd7zXZ\x00"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = tuple(bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16))
_LZ4 = b"\x04\x22\x4d\x18"
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a stream ended before its end: a rule of `record.RULES` and a sentence."""

    rule: str
    reason: str


class StoredFile(Protocol):
    """What a reader needs of an open file: the bytes in order, and an end."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


class _Member(Protocol):
    """One member of a compressed file; the interface of bz2's and lzma's decompressors."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _GzipMember:
    """zlib's decompressor behind the interface of the other two."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        tail = self._inner.unconsumed_tail
        return self._inner.decompress(tail + data if tail else data, max(max_length, 0))


class _Broken(Exception):  # noqa: N818 (carries a problem to the end of the stream, not an error)
    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.problem = Problem(rule, reason)


class DecodedStream:
    """Reads the decoded bytes of a stored file once, from start to end.

    `read` may return fewer bytes than asked for; an empty result is the end. After the end,
    `problem` is None if the file was whole.
    """

    def __init__(self, raw: StoredFile) -> None:
        self.problem: Problem | None = None
        self.failure: Exception | None = None
        """An error of the store, raised by `read`; kept for readers that call through C code."""
        self.num_stored = 0
        self.num_decoded = 0
        self._raw = raw
        self._position = 0
        self._buffer = b""
        self._start = 0
        head = self._read_stored(CHUNK_BYTES)
        self.codec = find_codec(head)
        self._chunks = self._decode(head)

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """Return up to `size` bytes; empty at the end."""
        if self._start >= len(self._buffer) and not self._fill():
            return b""
        if size < 0:
            size = CHUNK_BYTES
        if self._start == 0 and len(self._buffer) <= size:
            data, self._buffer = self._buffer, b""
        else:
            data = self._buffer[self._start : self._start + size]
            self._start += len(data)
        self._position += len(data)
        return data

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer only at the end, without consuming them."""
        pieces = [self._buffer[self._start :]]
        length = len(pieces[0])
        while length < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            pieces.append(chunk)
            length += len(chunk)
        self._buffer, self._start = b"".join(pieces), 0
        return self._buffer[:size]

    def tell(self) -> int:
        """Return the number of decoded bytes handed out."""
        return self._position

    def _fill(self) -> bool:
        self._buffer, self._start = next(self._chunks, b""), 0
        return bool(self._buffer)

    def _read_stored(self, size: int = CHUNK_BYTES) -> bytes:
        try:
            data = self._raw.read(size)
        except Exception as error:
            self.failure = error
            raise
        self.num_stored += len(data)
        return data

    def _decode(self, head: bytes) -> Iterator[bytes]:
        """Yield non-empty decoded chunks; set `problem` instead of raising for bad content."""
        try:
            for chunk in self._decoders()(head):
                self.num_decoded += len(chunk)
                if self.num_decoded > max(BOMB_FREE_BYTES, MAX_EXPANSION * self.num_stored):
                    self.problem = Problem(
                        "decompression_bomb",
                        f"{self.num_stored:,d} stored bytes became more than "
                        f"{self.num_decoded:,d}; the limit is {MAX_EXPANSION} times",
                    )
                    return
                if chunk:
                    yield chunk
        except _Broken as broken:
            self.problem = broken.problem
        except (zlib.error, lzma.LZMAError, ValueError, OSError) as error:
            # bz2 reports bad data as OSError and Arrow as OSError or ArrowInvalid (a ValueError).
            if self.failure is not None:
                raise
            self.problem = _classify(self.codec, error)

    def _decoders(self) -> Callable[[bytes], Iterator[bytes]]:
        members: dict[str, Callable[[], _Member]] = {
            "gzip": _GzipMember,
            "bzip2": bz2.BZ2Decompressor,
            "xz": lambda: lzma.LZMADecompressor(memlimit=MAX_WINDOW_BYTES + _WINDOW_EXTRA_BYTES),
        }
        if self.codec in members:
            return lambda head: self._decode_members(head, members[self.codec])
        if self.codec in ("zstd", "lz4"):
            return self._decode_frames
        return self._copy

    def _copy(self, head: bytes) -> Iterator[bytes]:
        while head:
            yield head
            head = self._read_stored()

    def _decode_members(self, head: bytes, new_member: Callable[[], _Member]) -> Iterator[bytes]:
        feed = _Feed(head, self._read_stored)
        while feed.peek():
            member = new_member()
            while not member.eof:
                data = feed.take() if member.needs_input else b""
                if member.needs_input and not data:
                    raise _Broken(
                        "truncated", f"the {self.codec} data ends in the middle of a member"
                    )
                yield member.decompress(data, CHUNK_BYTES)
            feed.give_back(len(member.unused_data))
            # Zero padding after a member is legal and common (tapes, block stores).
            feed.skip_zeros()
            following = feed.peek(_LONGEST_MAGIC)
            if following and find_codec(following) != self.codec:
                raise _Broken(
                    "corrupt_stream", f"bytes that are not {self.codec} data follow a whole member"
                )

    def _decode_frames(self, head: bytes) -> Iterator[bytes]:
        source = pa.PythonFile(_Prefixed(head, self._read_stored), mode="r")
        frames = pa.CompressedInputStream(source, self.codec)
        while chunk := frames.read(ARROW_CHUNK_BYTES):
            yield chunk


class _Feed:
    """Stored bytes in small pieces, of which what a member did not use is given back.

    Decompressors copy what they do not use; with small pieces a file of very many very small
    members costs no more than its size.
    """

    def __init__(self, head: bytes, read_more: Callable[[], bytes]) -> None:
        self._data = head
        self._start = 0
        self._read_more = read_more

    def peek(self, size: int = 1) -> bytes:
        """Return the next `size` bytes, fewer at the end of the file."""
        while len(self._data) - self._start < size and (more := self._read_more()):
            self._data = self._data[self._start :] + more
            self._start = 0
        return self._data[self._start : self._start + size]

    def take(self) -> bytes:
        """Return the next piece, empty at the end of the file."""
        piece = self.peek() and self._data[self._start : self._start + _FEED_BYTES]
        self._start += len(piece)
        return piece

    def give_back(self, size: int) -> None:
        """Put back the last `size` bytes of the last piece."""
        self._start -= size

    def skip_zeros(self) -> None:
        """Skip zero bytes."""
        while self.peek() == b"\0":
            piece = self.take()
            self.give_back(len(piece.lstrip(b"\0")))


class _Prefixed:
    """The bytes already read, then the rest, as the file object Arrow asks for."""

    closed = False

    def __init__(self, head: bytes, read_more: Callable[[int], bytes]) -> None:
        self._head = head
        self._read_more = read_more

    def read(self, size: int) -> bytes:
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
            return data
        return self._read_more(size)

    def close(self) -> None:
        pass


def find_codec(head: bytes) -> str:
    """Return gzip, bzip2, xz, zstd, lz4 or none, by the first bytes of a file."""
    if head.startswith(_GZIP):
        return "gzip"
    if head[:3] == b"BZh" and head[3:4].isdigit() and head[4:10] in _BZIP2_BLOCKS:
        return "bzip2"
    if head.startswith(_XZ):
        return "xz"
    if head.startswith(_ZSTD) or head.startswith(_ZSTD_SKIPPABLE):
        return "zstd"
    if head.startswith(_LZ4):
        return "lz4"
    return "none"


def _classify(codec: str, error: Exception) -> Problem:
    if "too much memory" in str(error) or "Memory usage limit" in str(error):
        reason = f"its {codec} window is above {MAX_WINDOW_BYTES >> 20} MiB"
        remedy = "compress it again, with zstd --long=27 or xz -9 at most"
        return Problem("corrupt_stream", f"{reason}; {remedy}")
    if "runcated" in str(error):
        return Problem("truncated", f"the {codec} data ends in the middle of a frame")
    return Problem("corrupt_stream", f"damaged {codec} data: {error}")
