"""What every kind of place must answer, asked of local files, a web server and an S3 server."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from olmo_loader.byte_range import ByteRanges
from olmo_loader.errors import MissingFileError, ShortReadError
from olmo_loader.locations import join, open_ranges
from olmo_loader.retrying import RetryPolicy
from tests.olmo_loader.s3_server import s3_server
from tests.olmo_loader.web_server import serve

SIZE = 300_000
CONTENT = np.random.default_rng(0).integers(0, 256, SIZE, dtype=np.uint8).tobytes()
POLICY = RetryPolicy(attempts=3, first_wait_s=0.01, total_s=20, request_s=10)
KINDS = ["local", "http", "http with a cache", pytest.param("s3", marks=pytest.mark.s3)]
Place = tuple[ByteRanges, str]


@pytest.fixture(scope="module", params=KINDS)
def place(request, tmp_path_factory) -> Iterator[Place]:
    kind: str = request.param
    folder: Path = tmp_path_factory.mktemp("place")
    (folder / "with a space").mkdir()
    (folder / "with a space" / "data").write_bytes(CONTENT)
    (folder / "empty").touch()
    if kind == "local":
        yield open_ranges(folder), str(folder)
    elif kind == "s3":
        with s3_server() as environment, pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            yield s3_place(folder)
    else:
        cache = folder / "cache" if "cache" in kind else None
        with serve(folder) as server:
            found = open_ranges(server.url, policy=POLICY, cache_dir=cache, cache_bytes=1 << 18)
            yield found, server.url


def s3_place(folder: Path) -> Place:
    boto3 = pytest.importorskip("boto3")
    client = boto3.client("s3")
    client.create_bucket(Bucket="loader")
    for name in ("with a space/data", "empty"):
        client.put_object(Bucket="loader", Key=f"root/{name}", Body=(folder / name).read_bytes())
    return open_ranges("s3://loader/root", policy=POLICY), "s3://loader/root"


def data_of(place: Place) -> str:
    return str(join(place[1], "with a space/data"))


@pytest.mark.parametrize(
    ("offset", "length"),
    [(0, 1), (0, SIZE), (SIZE - 1, 1), (65_535, 2), (65_536, 65_536), (7, 0), (100, 250_000)],
)
def test_a_range_is_a_slice(place: Place, offset: int, length: int):
    found = place[0].read(data_of(place), offset, length)
    assert found == CONTENT[offset : offset + length]


@pytest.mark.parametrize(("offset", "length"), [(0, SIZE + 1), (SIZE - 1, 2), (SIZE, 1)])
def test_beyond_the_end_is_an_error_that_says_where_it_is(place: Place, offset: int, length: int):
    message = f"data: wanted bytes {offset}..{offset + length}, the .* ends at 300000"
    with pytest.raises(ShortReadError, match=message):
        place[0].read(data_of(place), offset, length)
    with pytest.raises(OSError, match="wanted bytes"):
        place[0].read(data_of(place), offset, length)


def test_whole_files_and_sizes(place: Place):
    ranges, folder = place
    names = [data_of(place), str(join(folder, "empty"))]
    assert [ranges.read_file(name) for name in names] == [CONTENT, b""]
    assert ranges.sizes([*names, names[0]]) == [SIZE, 0, SIZE]


def test_what_is_not_there(place: Place):
    ranges, folder = place
    missing = str(join(folder, "nothing"))
    for ask in (
        lambda: ranges.size(missing),
        lambda: ranges.read_file(missing),
        lambda: ranges.read(missing, 0, 3),
    ):
        with pytest.raises(MissingFileError, match="nothing"):
            ask()
        with pytest.raises(FileNotFoundError):
            ask()


def test_many_ranges_at_once_overlapping_and_out_of_order(place: Place):
    random = np.random.default_rng(1)
    offsets = [*random.integers(0, SIZE - 5000, 60).tolist(), 5, 5, 6]
    lengths = [*random.integers(0, 5000, 60).tolist(), 10, 10, 3]
    buffers = [bytearray(length) for length in lengths]
    name = data_of(place)
    place[0].read_many(
        [(name, offset, memoryview(b)) for offset, b in zip(offsets, buffers, strict=True)]
    )
    for offset, buffer in zip(offsets, buffers, strict=True):
        assert buffer == CONTENT[offset : offset + len(buffer)]


def test_threads(place: Place):
    name, wrong = data_of(place), list[int]()

    def read(seed: int) -> None:
        for offset in np.random.default_rng(seed).integers(0, SIZE - 99, 12).tolist():
            if place[0].read(name, offset, 99) != CONTENT[offset : offset + 99]:
                wrong.append(offset)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_copy_by_pickle_reads_too_and_is_small(place: Place):
    place[0].read(data_of(place), 0, 10)
    data = pickle.dumps(place[0])
    assert len(data) < 1000
    assert pickle.loads(data).read(data_of(place), 3, 10) == CONTENT[3:13]
