from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader.dolma_table import NO_POSITION
from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.records import canonical_json, read_record, seal
from olmo_loader.shard_files import check_docs
from olmo_loader.shard_format import DOC_RECORD, docs_between, open_docs, read_header
from tests.olmo_loader.small_data import EOS, append_documents, doc_ids, make_documents, writer

IDS = np.arange(2, 12)


def test_literal_bytes_of_every_file(tmp_path: Path):
    ids = np.arange(32, dtype=np.uint8).reshape(2, 16)
    with writer(tmp_path, "00000-ab") as out:
        out.append(
            np.array([5, 6, EOS, 7]), np.array([0, 3]), ids, ["a.txt", "b,c.txt"], [1, NO_POSITION]
        )
        out.append(np.array([8, EOS]), np.array([], int), ids[:0], [], [])
    assert (tmp_path / "00000-ab.npy").read_bytes() == bytes.fromhex("050006000000070008000000")
    docs = (tmp_path / "00000-ab.docs.npy").read_bytes()
    assert docs == bytes(8) + bytes(range(16)) + b"\x03" + bytes(7) + bytes(range(16, 32))
    assert (tmp_path / "00000-ab.crc").stat().st_size == 4
    rows = gzip.decompress((tmp_path / "00000-ab.csv.gz").read_bytes()).decode()
    assert rows == (
        "0,3,000102030405060708090a0b0c0d0e0f,a.txt,1\n"
        '3,6,101112131415161718191a1b1c1d1e1f,"b,c.txt",\n'
    )
    assert (tmp_path / "00000-ab.csv.gz").read_bytes()[4:8] == bytes(4)  # no time in it
    header = read_header(tmp_path / "00000-ab.npy")
    assert (header.n_tokens, header.n_docs, header.size, header.max_id) == (6, 2, 12, 8)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("00000-ab.crc", "00000-ab.csv.gz", "00000-ab.docs.npy", "00000-ab.meta.json"),
        "00000-ab.npy",
    ]


@given(seed=st.integers(0, 1000), cuts=st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_writing_in_pieces_gives_the_same_bytes(seed: int, cuts: list[int]):
    documents = make_documents(seed, sum(cuts))
    with tempfile.TemporaryDirectory() as folder:
        with writer(Path(folder, "a"), "s") as whole:
            append_documents(whole, seed, documents)
        with writer(Path(folder, "b"), "s") as pieces:
            at, ids = 0, doc_ids(seed, sum(cuts))
            for count in cuts:
                part = documents[at : at + count]
                pieces.append(
                    np.concatenate(part),
                    np.cumsum([0, *map(len, part)])[:-1],
                    ids[at : at + count],
                    [f"landed/{seed}/{number}.txt" for number in range(at, at + count)],
                    range(at, at + count),
                )
                at += count
        for path in Path(folder, "a").iterdir():
            assert path.read_bytes() == Path(folder, "b", path.name).read_bytes(), path.name
        read = np.fromfile(Path(folder, "a", "s.npy"), "<u2")
        np.testing.assert_array_equal(read, np.concatenate(documents))


@given(seed=st.integers(0, 100), bounds=st.tuples(st.integers(0, 10_000), st.integers(1, 200)))
def test_documents_of_a_range_equal_a_scan(seed: int, bounds: tuple[int, int]):
    documents = make_documents(seed, 30)
    ends = np.cumsum([len(document) for document in documents])
    total = int(ends[-1])
    start = bounds[0] % total
    end = min(start + bounds[1], total)
    with tempfile.TemporaryDirectory() as folder:
        with writer(Path(folder), "s") as out:
            append_documents(out, seed, documents)
        docs = open_docs(Path(folder, "s.npy"), 30)
        first, found = docs_between(docs, start, end, total)
    assert first == int(np.searchsorted(ends, start, side="right"))
    inside = [int(at) for at in ends if start < at < end]
    assert found.tolist() == [start, *inside, end]


@pytest.mark.parametrize(
    ("ids", "starts", "message"),
    [
        (np.array([2, 300]), [0], "id 300 is outside the vocabulary of 300"),
        (np.array([2, -1]), [0], "id -1 is outside"),
        (IDS, [1], "must begin a document"),
        (IDS, [], "must begin a document"),
        (IDS, [0, 0], "must ascend"),
        (IDS, [0, 10], "must ascend"),
    ],
)
def test_bad_documents_are_refused_and_leave_no_file(tmp_path: Path, ids, starts, message: str):
    count = len(starts)
    with pytest.raises(ConfigurationError, match=message), writer(tmp_path, "s") as out:
        out.append(ids, np.array(starts, int), doc_ids(0, count), ["a"] * count, [0] * count)
    assert list(tmp_path.iterdir()) == []


def test_lists_of_another_length_are_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="1 starts"), writer(tmp_path, "s") as out:
        out.append(IDS, np.array([0]), doc_ids(0, 2), ["a"], [0])


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "uint16", "vocab_size": 65537},
        {"dtype": "int32"},
        {"dtype": "float32"},
        {"eos_token_id": 300},
        {"pad_token_id": -1},
    ],
)
def test_a_writer_that_cannot_work_is_refused(tmp_path: Path, change):
    with pytest.raises(ConfigurationError):
        writer(tmp_path, "s", **change)


def test_a_full_vocabulary_of_the_dtype_is_accepted(tmp_path: Path):
    with writer(tmp_path, "s", vocab_size=65536) as out:
        out.append(np.array([65535]), np.array([0]), doc_ids(0, 1), ["a"], [0])
    assert read_header(tmp_path / "s.npy").max_id == 65535


def test_an_empty_shard_is_a_shard(tmp_path: Path):
    with writer(tmp_path, "s"):
        pass
    header = read_header(tmp_path / "s.npy")
    assert (header.n_tokens, header.max_id, header.n_crcs) == (0, -1, 0)
    assert len(open_docs(tmp_path / "s.npy", 0)) == 0


def test_every_flipped_byte_and_truncation_of_a_header_is_found(tmp_path: Path):
    with writer(tmp_path, "s") as out:
        append_documents(out, 1, make_documents(1, 3))
    path = tmp_path / "s.meta.json"
    good = path.read_bytes()
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(IntegrityError, match=r"s\.meta\.json"):
            read_header(tmp_path / "s.npy")
        path.write_bytes(good[:at])
        with pytest.raises(IntegrityError, match=r"s\.meta\.json"):
            read_header(tmp_path / "s.npy")


def test_a_shard_of_another_size_than_its_header_says_is_refused(tmp_path: Path):
    with writer(tmp_path, "s") as out:
        append_documents(out, 1, make_documents(1, 3))
    with (tmp_path / "s.npy").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(IntegrityError, match="its header says"):
        read_header(tmp_path / "s.npy")
    with pytest.raises(IntegrityError, match="document records"):
        open_docs(tmp_path / "s.npy", 4)


def reseal(path: Path, **changes) -> None:
    path.write_bytes(canonical_json(seal({**read_record(path), **changes})))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "is no shard this version reads"),
        ({"layout": "tok"}, "is no shard this version reads"),
        ({"crc": {}}, "unknown checksums"),
        ({"n_tokens": 1}, "are not"),
        ({"max_id": 300}, "do not fit a vocabulary"),
        ({"vocab_size": 70000}, "do not fit a vocabulary"),
    ],
)
def test_a_sealed_header_that_contradicts_itself(tmp_path: Path, changes, message: str):
    with writer(tmp_path, "s") as out:
        append_documents(out, 1, make_documents(1, 3))
    reseal(tmp_path / "s.meta.json", **changes)
    with pytest.raises(IntegrityError, match=message):
        read_header(tmp_path / "s.npy")


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ([0, 5, 9], "3 documents, the header says 2"),
        ([1, 5], "begins at 1, not at 0"),
        ([0, 0], "are not ascending"),
        ([0, 10], "are not ascending below 10"),
        ([], "0 documents, the header says 2"),
    ],
)
def test_document_records_that_cannot_be(tmp_path: Path, starts: list[int], message: str):
    with writer(tmp_path, "s") as out:
        out.append(IDS, np.array([0, 4]), doc_ids(0, 2), ["a", "b"], [0, 1])
    header = read_header(tmp_path / "s.npy")
    docs = np.zeros(len(starts), DOC_RECORD)
    docs["start"] = starts
    with pytest.raises(IntegrityError, match=message):
        check_docs(docs, header, "s")


def test_names_and_ranges_that_cannot_be(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="ends in"):
        read_header(tmp_path / "s.bin")
    for start, end in ((0, 0), (5, 4), (0, 11), (-1, 3)):
        with pytest.raises(ConfigurationError, match="are not inside a shard of 10"):
            docs_between(np.zeros(1, DOC_RECORD), start, end, 10)
    with writer(tmp_path, "s") as out:
        assert (out.n_tokens, out.n_docs) == (0, 0)
        append_documents(out, 1, make_documents(1, 3))
        assert out.n_docs == 3
