"""Document lengths in memory: the same as cut out of every instance, alone or for many batches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from olmo_loader import InstanceFilterConfig, build_train_dataloader
from olmo_loader.document_lengths import lengths_from_lists
from olmo_loader.document_table import DocumentTable
from tests.olmo_loader.small_data import SmallDataset

SIZE = 8


def cut(starts: list[int], begin: int) -> list[int]:
    inside = [start for start in starts if begin < start < begin + SIZE]
    bounds = [begin, *inside, begin + SIZE]
    return [end - start for start, end in pairwise(bounds)]


@given(st.data())
def test_equal_to_cutting_each_instance(data):
    shards = data.draw(
        st.lists(
            st.tuples(st.integers(1, 60), st.lists(st.integers(1, 59), unique=True)),
            min_size=1,
            max_size=4,
        )
    )
    table, instances = DocumentTable(len(shards), SIZE, 4096), []
    for file, (tokens, found) in enumerate(shards):
        starts = sorted({0, *(start for start in found if start < tokens)})
        for _ in range(2):  # a second time does nothing
            table.add(file, np.array(starts, np.uint64), tokens)
        instances += [
            (file, begin, cut(starts, begin)) for begin in range(0, tokens - SIZE + 1, SIZE)
        ]
    if not instances:
        return
    batches = data.draw(
        st.lists(
            st.lists(st.sampled_from(instances), min_size=1, max_size=5), min_size=1, max_size=5
        )
    )
    chosen = [instance for batch in batches for instance in batch]
    rows = table.rows(
        np.array([file for file, _, _ in chosen], np.int64),
        np.array([begin for _, begin, _ in chosen], np.int64),
    )
    assert (rows >= 0).all()
    assert [row.tolist() for row in table.lengths(rows).rows] == [one for _, _, one in chosen]
    ends = np.cumsum([len(batch) for batch in batches], dtype=int).tolist()
    for batch, (padded, longest) in zip(batches, table.padded(rows, ends), strict=True):
        expected = lengths_from_lists([one for _, _, one in batch])
        assert padded.dtype == np.int32
        assert padded.tolist() == expected.padded().tolist()
        assert longest.tolist() == expected.longest().tolist()


def test_a_shard_that_is_not_here_is_no_answer():
    table = DocumentTable(2, SIZE, 4096)
    assert table.rows(np.array([0]), np.array([0])).tolist() == [-1]
    table.add(1, np.array([0, 3], np.uint64), 20)
    assert (0 in table, 1 in table) == (False, True)
    assert table.rows(np.array([1, 0]), np.array([8, 8])).tolist() == [1, -1]


@pytest.fixture
def masked(tmp_path) -> SmallDataset:
    made = SmallDataset(tmp_path / "dataset")
    for number in range(3):
        made.add_shard("books", number, 60, mask_every=3 + number)
    made.publish()
    return made


@pytest.mark.parametrize("world_size", [1, 2])
def test_batches_placed_together_are_those_read_alone(masked, world_size: int):
    """Before and after lengths and masks are in memory; the last batch of an epoch is short."""
    loader = build_train_dataloader(
        masked.folder,
        global_batch_size=2 * world_size,
        world_size=world_size,
        rank=world_size - 1,
        generate_doc_lengths=True,
        instance_filter_config=InstanceFilterConfig(),
        num_threads=0,
    )
    for _ in range(6):
        fresh = build_train_dataloader(
            masked.folder,
            global_batch_size=1,
            generate_doc_lengths=True,
            instance_filter_config=InstanceFilterConfig(),
        )
        for batch in loader:
            alone = fresh.dataset.read_batch(batch["index"].numpy())
            assert batch.keys() == alone.keys()
            for key, value in alone.items():
                assert np.array_equal(batch[key], value), key
            for key in ("doc_lens", "label_mask", "instance_mask"):
                batch[key].zero_()  # the trainer's own: no later batch may see it
    reader = loader.dataset.reader
    places = reader.place(np.arange(len(reader)))
    assert places.mask_rows is not None
    assert reader.place_lengths(places, [len(reader)]) is not None
