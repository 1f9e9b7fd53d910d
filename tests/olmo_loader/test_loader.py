from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from olmo_loader import DataCollator, InstanceFilterConfig, build_train_dataloader
from olmo_loader.data_place import ReadingOptions
from olmo_loader.errors import (
    BatchShapeError,
    ConfigurationError,
    NotInThisVersion,
    ShortReadError,
    StateError,
)
from olmo_loader.global_indices import build_order
from olmo_loader.retrying import RetryPolicy
from tests.olmo_loader.laws import (
    assert_same_after_resume,
    assert_same_stream_for,
    indices,
    stream,
)
from tests.olmo_loader.small_data import PAD, SmallDataset, make_small


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> SmallDataset:
    return make_small(tmp_path_factory.mktemp("small") / "dataset")


def make(small: SmallDataset, **options: Any):
    return build_train_dataloader(
        small.folder, **{"global_batch_size": 8, "num_threads": 2, **options}
    )


@pytest.mark.parametrize("drop_last", [False, True])
def test_resume_from_every_position_gives_the_same_rest(small, drop_last: bool):
    assert_same_after_resume(partial(make, small, drop_last=drop_last))


def test_ranks_and_threads_change_nothing(small):
    assert len(make(small).dataset) % 8
    assert_same_stream_for(partial(make, small, drop_last=True), [1, 2, 4, 8], [0, 1, 3])


def test_nor_without_drop_last_where_no_padding_is_needed(tmp_path: Path):
    """Padding depends on the number of ranks, as OLMo's does."""
    candidates = (make_small(tmp_path / str(docs), docs=docs) for docs in range(20, 60))
    data = next(data for data in candidates if len(make(data).dataset) % 8 == 0)
    assert_same_stream_for(partial(make, data), [1, 2, 4, 8], [0, 2])


def test_the_order_is_the_plan_s_and_reshuffled_in_each_epoch(small):
    loader = make(small, global_batch_size=1)
    n = len(loader.dataset)
    for epoch in range(3):
        assert loader.epoch == epoch
        found = [indices(batch)[0] for batch in loader]
        assert found == build_order(n, 6198, epoch).tolist()


def test_the_tail_is_padded_from_the_head_as_olmo_does(small):
    n = len(make(small).dataset)
    world = next(w for w in range(2, 9) if n % w)
    found = [
        batch
        for rank in range(world)
        for batch in make(small, global_batch_size=world, world_size=world, rank=rank)
    ]
    counts = Counter(index for batch in found for index in indices(batch))
    head = build_order(n, 6198)[: -n % world].tolist()
    assert [index for index, count in sorted(counts.items()) if count == 2] == sorted(head)
    assert len(counts) == n


def test_stopped_in_epoch_1_and_run_through_epoch_2_everything_is_seen(small):
    loader = make(small)
    n = len(loader.dataset)
    assert [batch.state["epoch"] for batch in loader] == [0] * len(loader)
    state = next(itertools.islice(loader, 2, None)).state
    assert (state["epoch"], state["instances"]) == (1, 24)
    resumed = make(small, state=json.loads(json.dumps(state)))
    assert resumed.epoch == 1
    rest = Counter(index for batch in resumed for index in indices(batch))
    seen = Counter(build_order(n, 6198, 1)[:24].tolist())
    assert rest + seen == Counter(range(n))
    assert resumed.epoch == 2
    assert Counter(i for batch in resumed for i in indices(batch)) == Counter(range(n))


def test_another_batch_size_neither_loses_nor_repeats(small):
    loader = make(small, global_batch_size=10)
    n = len(loader.dataset)
    found: list[int] = []
    for batch in loader:
        found += indices(batch)
        if len(found) >= 30:
            break
    resumed = make(small, global_batch_size=7, state=batch.state)
    found += [index for batch in resumed for index in indices(batch)]
    assert found == build_order(n, 6198).tolist()


def test_another_number_of_ranks_goes_on_at_the_same_place(small):
    one = stream(make(small), 1)
    state = one[2][1]
    assert state["instances"] == 24
    halves = [
        [step for step, _ in stream(make(small, world_size=2, rank=rank, state=state), 1)]
        for rank in range(2)
    ]
    for number, (step, _) in enumerate(one[3:-1]):
        assert halves[0][number] == step[::2]
        assert halves[1][number] == step[1::2]
    last = one[-1][0]
    got = halves[0][-1] + halves[1][-1]
    assert len(halves[0][-1]) == len(halves[1][-1])  # no rank is left without a row
    assert set(last) <= set(got)
    assert len(got) - len(last) in (0, 1)


def bytes_read() -> int:
    """Bytes this process has asked for by read calls, of any kind and any file."""
    text = Path("/proc/self/io").read_text()
    return int(text.split("rchar: ")[1].split()[0])


def test_resume_reads_no_byte_before_the_position(tmp_path: Path):
    """Opening and the next batch read the same number of bytes from every position."""
    data = make_small(tmp_path / "dataset", docs=400)
    # Whole blocks are read when they are checked, and the last one of a shard is shorter.
    unchecked = ReadingOptions(checksums="off")
    states = [state for _, state in stream(make(data, num_threads=0), 1)]
    costs = []
    for state in (states[0], *states[::20], states[-2]):
        before = bytes_read()
        next(iter(make(data, num_threads=0, state=state, reading=unchecked)))
        costs.append(bytes_read() - before)
    del costs[0]  # what is read once in a process
    tokens = sum((data.folder / record["shard"]).stat().st_size for record in data.records)
    assert len(states) > 100
    assert max(costs) - min(costs) < 64
    assert max(costs) < tokens


def test_breaking_off_and_iterating_again_goes_on(small):
    loader = make(small)
    whole = [step for step, _ in stream(make(small), 1)]
    found: list[list[int]] = []
    while len(found) < len(whole):
        for batch in loader:
            found.append(indices(batch))
            break
    assert found == whole


def test_state_is_small_json_and_counts_tokens_per_source(small):
    loader = make(small)
    batches = list(loader)
    state = batches[-1].state
    assert len(json.dumps(state)) < 10_000
    assert sum(state["tokens_per_source"].values()) == len(loader.dataset) * 16
    assert set(state["tokens_per_source"]) == {"books", "wiki"}
    assert [batch.state["steps"] for batch in batches] == list(range(1, len(batches) + 1))
    assert loader.state_dict() == state


def test_state_does_not_count_what_was_read_ahead(small):
    loader = make(small, num_threads=3, prefetch_batches=8)
    iterator = iter(loader)
    next(iterator)
    assert loader.state_dict()["instances"] == 8


def test_a_state_reopens_its_own_plan_after_a_newer_one(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    old_plan = data.plans[0]
    whole = stream(make(data), 1)
    data.add_shard("news", 9, 50, generation=2)
    new_plan = data.publish()
    assert new_plan != old_plan
    assert len(make(data).dataset) > len(make(data, plan=old_plan).dataset)
    resumed = make(data, state=whole[1][1])
    assert resumed.state_dict()["plan"] == old_plan
    assert [step for step, _ in stream(resumed, 1)] == [step for step, _ in whole[2:]]
    opened = make(data)
    opened.load_state_dict(whole[1][1])
    assert [step for step, _ in stream(opened, 1)] == [step for step, _ in whole[2:]]
    with pytest.raises(StateError, match=f"the loader was asked for plan {new_plan}"):
        make(data, plan=new_plan, state=whole[1][1])


NO_COUNTS: list[Any] = [None, "x", [], {}, 1.5, True, float("nan"), -1, 10**30]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fingerprint": "0" * 64}, "fingerprint was 000"),
        ({"seed": 1}, "seed was 1, is 6198"),
        ({"sequence_length": 8}, r"plan extend ROOT --consumed \d+ --sequence-length 16$"),
        ({"instances": -1}, "is no position"),
        ({"version": 99}, "version 99"),
        *(
            ({"tokens_per_source": {"books": wrong}}, "tokens_per_source of 'books' is")
            for wrong in NO_COUNTS
        ),
        ({"surprise": 1}, "surprise"),
        ({"epoch": -1}, "epoch is -1"),
        ({"instances": "8"}, "instances is '8'"),
        ({"tokens_per_source": None}, "tokens_per_source is None"),
        ({"world_size": "2"}, "world_size is '2'"),
        ({"world_size": 0}, "world_size is 0"),
        ({"global_batch_size": True}, "global_batch_size is True"),
        ({"balance_attention": 1}, "balance_attention is 1"),
        ({"shuffle": None}, "shuffle is None"),
        ({"plan": 7}, "plan is 7"),
        ({"files": "a.npy"}, "files is 'a.npy'"),
        ({"files": ["a.npy"]}, r"files is \['a.npy'\]"),
        ({"files": {"count": 3, "run": 0, "hashes": []}}, "files is .*'run': 0"),
    ],
)
def test_a_state_of_something_else_is_refused(small, change, message: str):
    state = {**make(small).state_dict(), **change}
    with pytest.raises(StateError, match=message):
        make(small, state=state)


def test_a_state_of_a_plan_that_is_gone_is_refused(small):
    state = {**make(small).state_dict(), "plan": "0" * 16}
    with pytest.raises(StateError, match=f"plan was 0000000000000000, is {small.plans[0]}"):
        make(small, state=state)
    loader = make(small)
    with pytest.raises(StateError, match="plan was 0000000000000000"):
        loader.load_state_dict(state)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"global_batch_size": 3, "world_size": 2, "rank": 0}, BatchShapeError, "does not divide"),
        ({"sequence_length": 32}, ConfigurationError, "fixes sequence_length: it is 16, not 32"),
        ({"seed": 1}, ConfigurationError, "fixes seed"),
        ({"dtype": "uint32"}, ConfigurationError, "fixes dtype"),
        ({"shuffle": False}, ConfigurationError, "fixes shuffle"),
        ({"plan": "nonsense"}, ConfigurationError, "no plan nonsense; there is"),
        ({"drop_last": True, "global_batch_size": 10**6}, ConfigurationError, "are no batch of"),
        ({"world_size": 10**6, "rank": 0, "global_batch_size": 10**6}, ConfigurationError, "feed"),
        ({"doc_boundaries": "guess"}, ConfigurationError, "eos or stored"),
        ({"global_batch_size": 0}, ConfigurationError, "global_batch_size is a whole number"),
        ({"global_batch_size": "8"}, ConfigurationError, "from 1 on, not '8'"),
        ({"global_batch_size": 8.0}, ConfigurationError, "from 1 on, not 8.0"),
        ({"world_size": 2, "rank": 2}, ConfigurationError, "rank counts from 0 to 1, not 2"),
        ({"world_size": 0, "rank": 0}, ConfigurationError, "world_size is a whole number"),
        ({"num_threads": -1}, ConfigurationError, "num_threads is a whole number from 0"),
        ({"num_workers": "many"}, ConfigurationError, "num_workers is a number or auto"),
        ({"prefetch_batches": 0}, ConfigurationError, "prefetch_batches is a whole number"),
        ({"prefetch_bytes": 0}, ConfigurationError, "prefetch_bytes is a whole number"),
        ({"timeout_s": 0}, ConfigurationError, "timeout_s is a time above 0"),
        ({"epoch": -1}, ConfigurationError, "epoch is a whole number from 0"),
        ({"reading": {}}, ConfigurationError, r"data_place\.ReadingOptions, not \{\}"),
        ({"instance_filter_config": {}}, ConfigurationError, r"InstanceFilterConfig, not \{\}"),
        ({"state": "s.json"}, ConfigurationError, r"state is a dict, from batch\.state or"),
    ],
)
def test_arguments_that_cannot_work(small, options, error, message: str):
    with pytest.raises(error, match=message):
        make(small, **options)


def test_no_data_set_there_and_urls(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"give the folder of a published data set"):
        build_train_dataloader(tmp_path, global_batch_size=1)
    with pytest.raises(NotInThisVersion, match="not read in this version"):
        build_train_dataloader("r2://bucket/dataset", global_batch_size=1)
    with pytest.raises(ConfigurationError, match="plain files have no plan"):
        build_train_dataloader(["a.npy"], global_batch_size=1, plan="x", sequence_length=4)
    with pytest.raises(ConfigurationError, match="plain files need sequence_length"):
        build_train_dataloader(["a.npy"], global_batch_size=1)
    wrong_paths: list[Any] = [None, 5, [5], {"label": "a.npy"}, b"x"]
    for wrong in wrong_paths:
        with pytest.raises(ConfigurationError, match="give the folder or url of a data set, a"):
            build_train_dataloader(wrong, global_batch_size=1, sequence_length=4)
    wrong_values: list[dict[str, Any]] = [{"seed": "a"}, {"seed": -5}, {"sequence_length": "8"}]
    for values in wrong_values:
        with pytest.raises(ConfigurationError, match=f"{min(values)} is a whole number"):
            build_train_dataloader(["a.npy"], global_batch_size=1, **values)


def test_files_without_an_instance_are_named(tmp_path: Path):
    path = tmp_path / "short.npy"
    np.arange(5, dtype=np.uint16).tofile(path)
    with pytest.raises(
        ConfigurationError, match=r"short\.npy, holds 5 uint16 ids\) has no instance"
    ):
        build_train_dataloader([path], global_batch_size=1, sequence_length=8)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (ReadingOptions, {"checksums": "maybe"}, "checksums is one of first_touch, eager, off"),
        (ReadingOptions, {"max_open_shards": 0}, "max_open_shards is a whole number from 1"),
        (ReadingOptions, {"cache_bytes": 0}, "cache_bytes is a whole number from 1"),
        (RetryPolicy, {"attempts": 0}, "attempts is a whole number from 1"),
        (RetryPolicy, {"total_s": -1}, "total_s is a time, not -1"),
    ],
)
def test_ways_of_reading_that_cannot_work(kind, options, message: str):
    with pytest.raises(ConfigurationError, match=message):
        kind(**options)


@pytest.mark.parametrize("num_threads", [0, 2])
def test_a_shard_that_shrinks_while_training_is_an_error_with_its_place(tmp_path, num_threads):
    data = make_small(tmp_path / "dataset")
    loader = make(data, num_threads=num_threads, prefetch_batches=1)
    iterator = iter(loader)
    next(iterator)
    for record in data.records:
        path = data.folder / record["shard"]
        os.truncate(path, 10)
    with pytest.raises(ShortReadError, match=r"wanted bytes .*, the file ends at 10"):
        list(iterator)


def test_batches_equal_collated_items(small):
    options: dict[str, Any] = {
        "generate_doc_lengths": True,
        "generate_attention_mask": True,
        "include_instance_metadata": True,
        "instance_filter_config": InstanceFilterConfig(repetition_max_count=3),
    }
    loader = make(small, **options)
    collate = DataCollator("right", PAD)
    for batch in loader:
        items = [{**loader.dataset[i], "index": i} for i in indices(batch)]
        expected = collate(items)
        assert list(batch) == list(expected)
        for key, value in expected.items():
            if isinstance(value, torch.Tensor):
                assert batch[key].dtype == value.dtype, key
                assert torch.equal(batch[key], value), key
            else:
                assert batch[key] == value, key


def test_stored_boundaries_equal_eos_when_every_document_ends_with_it(small):
    stored = make(small, generate_doc_lengths=True)
    by_eos = make(small, generate_doc_lengths=True, doc_boundaries="eos")
    for ours, theirs in zip(stored, by_eos, strict=True):
        assert torch.equal(ours["doc_lens"], theirs["doc_lens"])
        assert ours["doc_lens"].dtype == torch.int32
        assert (ours["doc_lens"].sum(1) == 16).all()


def test_taken_down_tokens_are_pad_without_loss_and_nothing_else_changes(tmp_path: Path):
    data = make_small(tmp_path / "dataset")
    plan = data.plans[0]
    options: dict[str, Any] = {
        "generate_doc_lengths": True,
        "doc_boundaries": "eos",
        "instance_filter_config": InstanceFilterConfig(repetition_max_count=3),
    }
    before = list(make(data, **options))
    state = before[0].state
    assert "label_mask" not in before[0]
    books = [r["shard"] for r in data.records if r["source"] == "books"]
    data.take_down([(books[0], 10, 40), (books[0], 30, 50), (books[1], 0, 5)], op="withdraw")
    data.take_down([(books[1], 160, 161)])
    assert data.publish() == plan  # the same plan: no order changes
    after = list(make(data, **options))
    masked = {0: set(range(10, 50)), 1: {*range(5), 160}}
    reader = make(data).dataset.reader
    hidden = 0
    for old, new in zip(before, after, strict=True):
        for key in ("index", "doc_lens", "instance_mask"):
            assert torch.equal(old[key], new[key])
        files, starts = reader.locate(new["index"].numpy())
        for row, (file, start) in enumerate(zip(files, starts, strict=True)):
            inside = [at for at in range(16) if int(start) + at in masked.get(int(file), ())]
            hidden += len(inside)
            expected = old["input_ids"][row].clone()
            expected[inside] = PAD
            assert torch.equal(new["input_ids"][row], expected)
            mask = torch.ones(16, dtype=torch.bool)
            mask[inside] = False
            assert torch.equal(new["label_mask"][row], mask)
    assert hidden == 46
    resumed = make(data, state=state)
    assert resumed.state_dict()["takedown"] == 2


def test_plain_files_and_labels(tmp_path: Path):
    paths = {}
    for number, name in enumerate(["a", "b", "c"]):
        ids = np.arange(8 * (number + 1), dtype=np.uint32) + 100_000 * number
        paths[name] = tmp_path / f"{name}.npy"
        ids.tofile(paths[name])
    labelled = {"x": [paths["b"], paths["c"]], "Z": [paths["a"]]}
    loader = build_train_dataloader(
        labelled,
        global_batch_size=1,
        sequence_length=4,
        dtype="uint32",
        shuffle=False,
        include_instance_metadata=True,
    )
    batches = list(loader)
    assert [b["metadata"][0]["label"] for b in batches] == ["Z"] * 2 + ["x"] * 10
    assert batches[2]["input_ids"].tolist() == [[100_000, 100_001, 100_002, 100_003]]
    assert batches[-1].state["tokens_per_source"] == {"Z": 8, "x": 40}
    listed = build_train_dataloader(
        [paths["a"]],
        global_batch_size=1,
        sequence_length=4,
        dtype="uint32",
        include_instance_metadata=True,
    )
    assert next(iter(listed))["metadata"] == [{"path": str(paths["a"])}]
    with pytest.raises(StateError, match="fingerprint"):
        listed.load_state_dict({**batches[0].state, "shuffle": True})
