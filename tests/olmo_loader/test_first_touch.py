from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.byte_range import FilePool
from olmo_loader.checksum import CRC_BLOCK_BYTES, crc32c_blocks
from olmo_loader.errors import IntegrityError, MissingFileError, ShortReadError
from olmo_loader.first_touch import FirstTouch, Read
from olmo_loader.instance_reader import InstanceFiles, InstanceReader

SIZES = (3 * CRC_BLOCK_BYTES + 777, 10, CRC_BLOCK_BYTES, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("blocks")
    for number, size in enumerate(SIZES):
        content = np.random.default_rng(number).integers(0, 256, size, dtype=np.uint8)
        content.tofile(path / f"{number}.npy")
        crc32c_blocks(content).astype("<u4").tofile(path / f"{number}.crc")
    return path


def make(folder: Path) -> FirstTouch:
    names = [str(folder / f"{number}.npy") for number in range(len(SIZES))]
    return FirstTouch(FilePool(), names, np.array(SIZES))


def copy_to(folder: Path, target: Path) -> Path:
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)


@given(st.data())
def test_the_same_bytes_and_each_block_once(folder: Path, data):
    touch, seen = make(folder), set[tuple[int, int]]()
    for _ in range(4):
        reads: list[Read] = []
        for _ in range(data.draw(st.integers(1, 4))):
            file = data.draw(st.integers(0, 2))
            offset = data.draw(st.integers(0, SIZES[file] - 1))
            length = data.draw(st.integers(1, SIZES[file] - offset))
            reads.append((file, offset, memoryview(bytearray(length))))
        known, new = touch.split(reads)
        blocks = {id(read): set(blocks_of(read)) for read in reads}
        assert all(blocks[id(read)] <= seen for read in known)
        assert not any(blocks[id(read)] <= seen for read in new)
        touch.read(new)
        for read in new:
            seen |= blocks[id(read)]
            content = (folder / f"{read[0]}.npy").read_bytes()
            assert read[2] == content[read[1] : read[1] + len(read[2])]


def blocks_of(read: Read) -> list[tuple[int, int]]:
    file, offset, buffer = read
    last = (offset + len(buffer) - 1) // CRC_BLOCK_BYTES
    return [(file, block) for block in range(offset // CRC_BLOCK_BYTES, last + 1)]


@pytest.mark.parametrize(
    ("file", "place", "block"), [(0, 0, 0), (0, 65536, 1), (0, 3 * 65536 + 776, 3), (1, 9, 0)]
)
def test_a_flipped_byte_is_found_by_the_first_read_of_its_block(
    folder: Path, tmp_path: Path, file: int, place: int, block: int
):
    copy_to(folder, tmp_path)
    flip(tmp_path / f"{file}.npy", place)
    touch = make(tmp_path)
    # Another byte of that block than the damaged one.
    other = place - 1 if place % CRC_BLOCK_BYTES else place + 1
    end = min((block + 1) * CRC_BLOCK_BYTES, SIZES[file])
    message = rf"{file}\.npy: damaged in block {block}, bytes {block * 65536}\.\.{end}: the CRC32C"
    for _ in range(2):
        with pytest.raises(IntegrityError, match=message):
            touch.read([(file, other, memoryview(bytearray(1)))])
    if file == 0 and block != 2:
        touch.read([(0, 2 * CRC_BLOCK_BYTES, memoryview(bytearray(9)))])
    with pytest.raises(IntegrityError, match=message):
        make(tmp_path).check_all()


def test_checking_everything_leaves_nothing_to_check(folder: Path):
    touch, names = make(folder), list[str]()
    touch.check_all(names.append)
    assert [Path(name).name for name in names] == ["0.npy", "1.npy", "2.npy", "3.npy"]
    reads = [(0, 0, memoryview(bytearray(SIZES[0]))), (2, 5, memoryview(bytearray(1)))]
    assert touch.split(reads) == (reads, [])


def test_damaged_or_missing_checksums(folder: Path, tmp_path: Path):
    copy_to(folder, tmp_path)
    flip(tmp_path / "0.crc", 5)
    (tmp_path / "1.crc").write_bytes(b"12345")
    (tmp_path / "2.crc").unlink()
    read = [(file, 1, memoryview(bytearray(1))) for file in range(3)]
    touch = make(tmp_path)
    touch.read(read[:1])
    with pytest.raises(IntegrityError, match=r"0\.npy: damaged in block 1"):
        touch.read([(0, CRC_BLOCK_BYTES, memoryview(bytearray(1)))])
    with pytest.raises(IntegrityError, match=r"1\.crc: 5 bytes are not 1 CRCs"):
        touch.read(read[1:2])
    with pytest.raises(MissingFileError, match=r"2\.crc"):
        touch.read(read[2:])


def test_a_file_that_shrank(folder: Path, tmp_path: Path):
    copy_to(folder, tmp_path)
    with (tmp_path / "0.npy").open("r+b") as file:
        file.truncate(2 * CRC_BLOCK_BYTES)
    with pytest.raises(ShortReadError, match="the file ends at 131072"):
        make(tmp_path).read([(0, 3 * CRC_BLOCK_BYTES, memoryview(bytearray(3)))])


def test_instances_are_checked_when_they_are_read(tmp_path: Path):
    ids = np.random.default_rng(0).integers(0, 50_000, 200_000, dtype=np.uint32)
    ids.tofile(tmp_path / "a.npy")
    crc32c_blocks(ids).astype("<u4").tofile(tmp_path / "a.crc")
    files = InstanceFiles(
        paths=(tmp_path / "a.npy",),
        num_tokens=np.array([200_000]),
        dtype=np.dtype("<u4"),
        sequence_length=1000,
        described=True,
        checksums=True,
    )
    reader = InstanceReader(files)
    order = np.random.default_rng(1).permutation(200)
    for first in range(0, 200, 8):
        index = order[first : first + 8]
        expected = ids.reshape(200, 1000)[index]
        assert np.array_equal(reader.read(index).ids, expected)
        assert np.array_equal(reader.read(index, reuse=True).raw, expected)
    flip(tmp_path / "a.npy", 4 * 90_123)
    reader.read(np.array([90]))  # checked before the damage: the page cache is trusted
    for changed in (InstanceReader(files), InstanceReader(dataclasses.replace(files))):
        with pytest.raises(IntegrityError, match=r"a\.npy: damaged in block 5"):
            changed.read(np.array([85]))
        changed.read(np.array([0, 199]))
