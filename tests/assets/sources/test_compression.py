from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from assets.errors import ConfigurationError
from assets.settings.schema import LimitSettings
from assets.settings.sources import SourceSettings
from assets.sources.formats import compression
from assets.sources.formats.compression import DecodedStream, find_codec
from assets.sources.formats.read import read_records
from assets.sources.tasks import most_records
from tests.assets.sources.reading import outcome, outcomes, read_bytes

LINES = [f'{{"text": "line {number} {"ab" * (number % 50)}"}}\n'.encode() for number in range(4000)]
DATA = b"".join(LINES)


def arrow(codec: str) -> Callable[[bytes], bytes]:
    def compress(data: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(data)
        return bytes(sink.getvalue())

    return compress


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": arrow("zstd"),
    "lz4": arrow("lz4"),
}


def read_all(stored: bytes) -> tuple[bytes, DecodedStream]:
    stream = DecodedStream(io.BytesIO(stored))
    return b"".join(iter(stream.read, b"")), stream


@pytest.mark.parametrize("codec", COMPRESSORS)
def test_a_file_reads_the_same_whatever_compressed_it(codec: str) -> None:
    stored = COMPRESSORS[codec](DATA)
    decoded, stream = read_all(stored)
    assert decoded == DATA
    assert stream.codec == codec
    assert stream.problem is None
    assert (stream.num_stored, stream.num_decoded) == (len(stored), len(DATA))


@pytest.mark.parametrize("codec", COMPRESSORS)
def test_several_members_are_one_file(codec: str) -> None:
    compress = COMPRESSORS[codec]
    stored = b"".join(compress(part) for part in (DATA[:1000], b"", DATA[1000:]))
    decoded, stream = read_all(stored)
    assert decoded == DATA
    assert stream.problem is None


@pytest.mark.parametrize("codec", COMPRESSORS)
@pytest.mark.parametrize("cut", [1, 3, 8, 100, 0.5, 0.9])
def test_a_cut_file_gives_its_start_and_says_so(codec: str, cut: float) -> None:
    stored = COMPRESSORS[codec](DATA)
    length = len(stored) - cut if isinstance(cut, int) else int(len(stored) * cut)
    decoded, stream = read_all(stored[: int(length)])
    assert DATA.startswith(decoded)
    assert stream.problem is not None
    assert stream.problem.rule == "truncated"


def test_a_file_cut_between_members_ends_where_it_ends() -> None:
    decoded, stream = read_all(gzip.compress(b"a") + gzip.compress(b"b"))
    assert (decoded, stream.problem) == (b"ab", None)


@pytest.mark.parametrize("codec", ["gzip", "bzip2", "xz"])
def test_a_damaged_byte_is_found(codec: str) -> None:
    stored = bytearray(COMPRESSORS[codec](random.Random(7).randbytes(400_000)))
    stored[len(stored) // 2] ^= 0x55
    _, stream = read_all(bytes(stored))
    assert stream.problem is not None
    assert stream.problem.rule == "corrupt_stream"


def test_zero_padding_after_a_member_is_fine_and_other_bytes_are_not() -> None:
    stored = gzip.compress(DATA)
    assert read_all(stored + b"\0" * 5000)[1].problem is None
    decoded, stream = read_all(stored + b"junk")
    assert decoded == DATA
    assert stream.problem is not None
    assert stream.problem.rule == "corrupt_stream"


@pytest.mark.parametrize("codec", COMPRESSORS)
def test_a_bomb_is_stopped(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "BOMB_FREE_BYTES", 1 << 20)
    compressed = io.BytesIO()
    compressed.write(COMPRESSORS[codec](b"\0" * (64 << 20)))
    decoded, stream = read_all(compressed.getvalue())
    assert stream.problem is not None
    assert stream.problem.rule == "decompression_bomb"
    assert len(decoded) < 64 << 20


def test_records_before_a_bomb_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "BOMB_FREE_BYTES", 1 << 20)
    stored = gzip.compress(b'{"text": "a"}\n' + b" " * (32 << 20))
    assert outcomes(stored, "x.jsonl.gz", format="jsonl") == ["a", "<decompression_bomb>"]


@pytest.mark.parametrize("codec", COMPRESSORS)
def test_lines_before_a_cut_are_kept_and_the_cut_is_one_more_record(codec: str) -> None:
    stored = COMPRESSORS[codec](DATA)
    found = outcomes(stored[: len(stored) * 2 // 3], "a.jsonl")
    assert found[-1] == "<truncated>"
    assert "<bad_json>" not in found
    texts = [line.decode()[10:-3] for line in LINES]
    assert found[:-1] == texts[: len(found) - 1]
    if codec == "gzip":
        assert len(found) > 100


@given(st.integers(0, 300))
def test_a_gzip_file_cut_anywhere_loses_only_its_end(cut: int) -> None:
    lines = [f'{{"text": "{zlib.crc32(b"%d" % number)}"}}\n'.encode() for number in range(30)]
    stored = gzip.compress(b"".join(lines), mtime=0)
    found = outcomes(stored[: max(len(stored) - cut, 0)], "a.jsonl.gz", format="jsonl")
    if cut == 0:
        assert len(found) == 30
    elif cut >= len(stored):
        assert found == ["<empty_file>"]
    elif cut <= len(stored) - 3:
        assert found[-1] == "<truncated>"
        assert not [item for item in found[:-1] if item.startswith("<")]


def test_an_error_of_the_store_is_raised_and_not_recorded() -> None:
    class Failing:
        def __init__(self, data: bytes) -> None:
            self.file = io.BytesIO(data)
            self.left = len(data) // 2

        def read(self, size: int, /) -> bytes:
            if self.left <= 0:
                raise ConnectionResetError("the store went away")
            self.left -= 1000
            return self.file.read(min(size, 1000))

        def close(self) -> None:
            pass

    for codec, compress in COMPRESSORS.items():
        stored = compress(random.Random(3).randbytes(600_000))
        stream = DecodedStream(Failing(stored))
        with pytest.raises(ConnectionResetError):
            b"".join(iter(stream.read, b""))
        assert stream.problem is None, codec


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        (b"", "none"),
        (b"plain", "none"),
        (b"BZh is how it starts", "none"),
        (b"\x1f\x8b\x08", "gzip"),
    ],
)
def test_the_codec_is_found_by_magic_bytes(head: bytes, codec: str) -> None:
    assert find_codec(head) == codec


def test_an_empty_file_and_an_empty_member_are_empty_files() -> None:
    for stored in (b"", gzip.compress(b""), bz2.compress(b""), gzip.compress(b"\n\n")):
        (record,) = read_bytes(stored, "a.jsonl.gz", format="jsonl")
        assert getattr(record, "rule", None) == "empty_file"


def test_peeking_consumes_nothing() -> None:
    stream = DecodedStream(io.BytesIO(gzip.compress(DATA)))
    assert stream.peek(10) == DATA[:10]
    assert stream.peek(70_000) == DATA[:70_000]
    assert stream.tell() == 0
    assert stream.read(5) + b"".join(iter(stream.read, b"")) == DATA
    assert stream.tell() == len(DATA)


@pytest.mark.parametrize("codec", ["gzip", "bzip2", "xz"])
def test_very_many_very_small_members_take_linear_time(codec: str) -> None:
    stored = COMPRESSORS[codec](b"") * 20_000 + COMPRESSORS[codec](b"end")
    decoded, stream = read_all(stored)
    assert (decoded, stream.problem) == (b"end", None)


def test_windows_that_take_too_much_memory_are_refused_with_a_remedy() -> None:
    block = bytes([(5 << 3) | 1, 0, 0]) + b"hello"
    zstd = b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([(28 - 10) << 3]) + block
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 512 << 20}]
    xz = lzma.compress(b"hello", filters=filters)
    for stored in (zstd, xz):
        stream = DecodedStream(io.BytesIO(stored))
        assert stream.read() == b""
        assert stream.problem is not None
        assert stream.problem.rule == "corrupt_stream"
        assert "again" in stream.problem.reason
    allowed = zstd.replace(bytes([(28 - 10) << 3]), bytes([(27 - 10) << 3]), 1)
    stream = DecodedStream(io.BytesIO(allowed))
    assert (stream.read(), stream.problem) == (b"hello", None)
    stream = DecodedStream(io.BytesIO(lzma.compress(b"hello", preset=9)))
    assert (stream.read(), stream.read(), stream.problem) == (b"hello", b"", None)


def test_many_tiny_records_cost_one_loss() -> None:
    rows = gzip.compress(b"text\n" + b"a\n" * 50)
    source = SourceSettings(name="test", paths=("*",), format="csv")

    def read(most: int | None) -> list[str]:
        found = read_records(
            lambda: io.BytesIO(rows), source=source, landed_path="a.csv", most_records=most
        )
        return [outcome(record) for record in found]

    assert read(None) == read(50) == ["a"] * 50
    assert read(10) == ["a"] * 10 + ["<too_many_records>"]
    assert (most_records(300_000, 1.0), most_records(3_000_000, 0.5)) == (1_000_000, 1_500_000)
    assert most_records(300_000, None) is None
    with pytest.raises(ConfigurationError, match="records_per_byte: 0 must be above 0"):
        LimitSettings(records_per_byte=0)
