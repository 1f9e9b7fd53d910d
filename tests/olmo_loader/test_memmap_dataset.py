from __future__ import annotations

import operator
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from olmo_loader import DataCollator, IterableDataset, MemMapDataset, PaddingDirection
from olmo_loader.errors import ConfigurationError, IntegrityError, ShortReadError
from tests.olmo_loader.small_data import append_documents, make_documents, writer


def write(path: Path, ids, dtype="uint16") -> Path:
    np.asarray(ids, dtype).tofile(path)
    return path


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    return [write(tmp_path / "a.npy", range(10)), write(tmp_path / "b.npy", range(100, 109))]


def test_literal_instances(two):
    data = MemMapDataset(*two, chunk_size=4)
    assert len(data) == 4
    assert data.offsets == [(0, 2), (2, 4)]
    assert [data[i]["input_ids"].tolist() for i in range(4)] == [
        *([0, 1, 2, 3], [4, 5, 6, 7]),
        *([100, 101, 102, 103], [104, 105, 106, 107]),
    ]
    assert data[-1]["input_ids"].tolist() == data[3]["input_ids"].tolist()
    assert data.max_seq_len == data.chunk_size == 4
    for wrong in (4, -5):
        with pytest.raises(IndexError, match=f"{wrong} is out of bounds for dataset of size 4"):
            data[wrong]


@pytest.mark.parametrize(
    "dtype", ["uint8", "uint16", "uint32", "uint64", "int16", "int32", "int64"]
)
def test_every_dtype_becomes_int64(tmp_path: Path, dtype: str):
    path = write(tmp_path / "a.npy", [1, 2, 3, 255], dtype)
    item = MemMapDataset(path, chunk_size=4, memmap_dtype=dtype)[0]["input_ids"]
    assert item.dtype == torch.int64
    assert item.tolist() == [1, 2, 3, 255]


def test_ids_beyond_int64_are_refused(tmp_path: Path):
    path = write(tmp_path / "a.npy", [2**63], "uint64")
    with pytest.raises(IntegrityError, match="above 2\\^63"):
        MemMapDataset(path, chunk_size=1, memmap_dtype="uint64")[0]


@pytest.mark.parametrize("dtype", ["float32", "bool", "uint17"])
def test_what_is_no_token_dtype(two, dtype: str):
    with pytest.raises(ConfigurationError):
        MemMapDataset(*two, memmap_dtype=dtype)


def test_departure_a_file_that_became_shorter_is_an_error(two):
    """OLMo returns a short row, and padding fills it without a word."""
    data = MemMapDataset(*two, chunk_size=4)
    assert len(data) == 4
    two[0].write_bytes(two[0].read_bytes()[:6])
    with pytest.raises(ShortReadError, match=r"a\.npy: wanted bytes 0\.\.8, the file ends at 6"):
        data[0]
    two[1].unlink()
    with pytest.raises(FileNotFoundError):
        data[3]


def test_departure_a_real_numpy_file_is_refused(tmp_path: Path):
    """OLMo takes the 128 bytes of its header for tokens."""
    np.save(tmp_path / "a.npy", np.arange(400, dtype=np.uint16))
    with pytest.raises(IntegrityError, match=r"numpy\.save"):
        MemMapDataset(tmp_path / "a.npy", chunk_size=4)[0]


def test_departure_a_shard_is_read_only_as_its_header_says(tmp_path: Path):
    with writer(tmp_path, "s", dtype="uint32") as out:
        append_documents(out, 1, make_documents(1, 5))
    assert len(MemMapDataset(tmp_path / "s.npy", chunk_size=4, memmap_dtype="uint32"))
    with pytest.raises(ConfigurationError, match="holds uint32, it was to be read as uint16"):
        len(MemMapDataset(tmp_path / "s.npy", chunk_size=4))
    (tmp_path / "s.npy").write_bytes(b"1234")
    with pytest.raises(IntegrityError, match="its header says"):
        len(MemMapDataset(tmp_path / "s.npy", chunk_size=4, memmap_dtype="uint32"))


def test_departure_label_masks_are_checked_in_bytes(two, tmp_path: Path):
    """OLMo compares numbers of chunks, so a mask some bytes short passes."""
    masks = [
        write(tmp_path / "a.mask", [1, 0] * 5, bool),
        write(tmp_path / "b.mask", [1] * 9, bool),
    ]
    data = MemMapDataset(*two, chunk_size=4, label_mask_paths=masks)
    assert data[1]["label_mask"].tolist() == [True, False, True, False]
    masks[1].write_bytes(bytes(8))
    with pytest.raises(ValueError, match=r"masking file '.*b\.mask' should be the same size as"):
        len(MemMapDataset(*two, chunk_size=4, label_mask_paths=masks))


def test_departure_adding_keeps_every_option_or_refuses(two):
    """OLMo drops masks, filter, document lengths and special ids, and the other's chunk size."""
    options: dict[str, Any] = {"chunk_size": 4, "generate_doc_lengths": True, "eos_token_id": 2}
    both = MemMapDataset(two[0], metadata={"n": 1}, **options) + MemMapDataset(
        two[1], metadata={"n": 2}, **options
    )
    assert [both[i]["metadata"]["n"] for i in range(4)] == [1, 1, 2, 2]
    assert both[0]["doc_lens"].tolist() == [3, 1]
    with pytest.raises(ConfigurationError, match="differ in chunk_size"):
        MemMapDataset(two[0], chunk_size=4) + MemMapDataset(two[1], chunk_size=3)
    with pytest.raises(ConfigurationError, match="one of the data sets has label masks"):
        MemMapDataset(two[0], label_mask_paths=[two[0]]) + MemMapDataset(two[1])
    with pytest.raises(NotImplementedError):
        operator.add(both, [1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"generate_attention_mask": True}, "'pad_token_id' is required"),
        ({"generate_doc_lengths": True}, "'eos_token_id' is required"),
        ({"label_mask_paths": []}, "same number of 'label_mask_paths'"),
        ({"metadata": [{}]}, "'metadata' should have the same length"),
        ({"doc_boundaries": "guess"}, "eos or stored"),
    ],
)
def test_arguments_that_cannot_work(two, options, message: str):
    with pytest.raises(ValueError, match=message):
        MemMapDataset(*two, **options)


def test_no_path_and_no_stored_boundaries(two):
    with pytest.raises(ValueError, match="At least one path is required"):
        MemMapDataset()
    stored = MemMapDataset(*two, chunk_size=4, generate_doc_lengths=True, doc_boundaries="stored")
    with pytest.raises(ConfigurationError, match="has no stored document boundaries"):
        stored[0]


def test_metadata_is_a_copy(two):
    data = MemMapDataset(*two, chunk_size=4, metadata={"tags": []})
    data[0]["metadata"]["tags"].append("changed")
    assert data[0]["metadata"] == {"tags": []}


def test_pickles_small_and_reads_the_same(two):
    data = MemMapDataset(*two, chunk_size=4)
    before = data[1]["input_ids"]
    copied = pickle.loads(pickle.dumps(data))
    assert torch.equal(copied[1]["input_ids"], before)


@pytest.mark.parametrize("direction", [PaddingDirection.left, "left"], ids=["enum", "name"])
def test_the_collator_pads_each_field_in_its_way(direction):
    items = [
        {
            "input_ids": torch.tensor([5, 6]),
            "attention_mask": torch.tensor([1, 1]),
            "attention_bias": torch.zeros(2, 2),
            "label_mask": torch.tensor([True, True]),
            "doc_lens": torch.tensor([1, 1], dtype=torch.int32),
            "index": 7,
            "metadata": {"a": 1},
        },
        {
            "input_ids": torch.tensor([9]),
            "attention_mask": torch.tensor([1]),
            "attention_bias": torch.zeros(1, 1),
            "label_mask": torch.tensor([True]),
            "doc_lens": torch.tensor([1], dtype=torch.int32),
            "index": 8,
            "metadata": {"a": 2},
        },
    ]
    batch = DataCollator(direction, 1)(items)
    assert batch["input_ids"].tolist() == [[5, 6], [1, 9]]
    assert batch["attention_mask"].tolist() == [[1.0, 1.0], [0.0, 1.0]]
    assert batch["attention_mask"].dtype == torch.float32
    assert batch["attention_bias"].shape == (2, 1, 2, 2)
    assert batch["attention_bias"][1, 0].tolist() == [[-np.inf, -np.inf], [-np.inf, 0.0]]
    assert batch["label_mask"].tolist() == [[True, True], [False, True]]
    assert batch["doc_lens"].tolist() == [[1, 1], [1, 0]]
    assert batch["max_doc_lens"] == [1, 1]
    assert batch["index"].tolist() == [7, 8]
    assert batch["metadata"] == [{"a": 1}, {"a": 2}]
    assert list(batch) == [
        *("input_ids", "attention_mask", "attention_bias", "label_mask", "index", "doc_lens"),
        *("max_doc_lens", "metadata"),
    ]


def test_the_collator_takes_bare_rows_and_refuses_mixed_items():
    assert DataCollator("right", 0)([[1, 2], [3]])["input_ids"].tolist() == [[1, 2], [3, 0]]
    with pytest.raises(KeyError, match="index"):
        DataCollator("right", 0)([{"input_ids": [1], "index": 0}, {"input_ids": [2]}])
    with pytest.raises(ValueError, match="sideways"):
        DataCollator("sideways", 0)([[1, 2], [3]])


@pytest.mark.parametrize("gap", [{}, {"label_mask": None}], ids=["absent", "none"])
def test_an_item_without_a_field_that_others_have_is_named(gap: dict[str, Any]):
    rows = [{"input_ids": [1, 2], "label_mask": [True, False]}, {"input_ids": [3], **gap}]
    with pytest.raises(KeyError, match="item 1 of a batch of 2 has no 'label_mask', others have"):
        DataCollator("right", 0)(rows)


def test_a_negative_seed_is_refused_before_anything_is_read():
    with pytest.raises(ValueError, match="non-negative"):
        IterableDataset([[1], [2]], 2, seed=-1, world_size=1, rank=0)
