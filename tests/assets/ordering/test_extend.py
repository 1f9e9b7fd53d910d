from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.errors import ConfigurationError, IntegrityError
from assets.ordering.plan_checks import check_mixed_order, check_plan_provenance
from assets.ordering.plan_prefix import prefix_order
from assets.ordering.recut import cut_stream
from assets.ordering.shares import SourceWeights
from assets.settings.ordering import MixtureSettings
from olmo_loader.errors import PlanExhausted, StateError
from olmo_loader.instance_tables import SPAN
from olmo_loader.plan import Plan
from tests.assets.ordering.mixed_plans import (
    extend,
    instance_spans,
    make_plan,
    publish,
    tokens_of,
)
from tests.assets.ordering.small_data_set import SmallDataSet

torch = pytest.importorskip("torch")
loader = pytest.importorskip("olmo_loader.loader")

SOURCES = ("books", "web", "wiki")


def lengths(seed: int, count: int = 9) -> list[int]:
    found: list[int] = np.random.default_rng(seed).integers(1, 20, count).tolist()
    return found


def make_small(folder: Path) -> SmallDataSet:
    small = SmallDataSet(folder)
    for number, source in enumerate((*SOURCES, "web")):
        small.add_shard(source, lengths(number))
    return small


@pytest.fixture
def small(tmp_path: Path) -> SmallDataSet:
    return make_small(tmp_path)


def read_tokens(plan: Plan, order: list[int]) -> list[tuple[str, list[tuple[int, int]]]]:
    """Return (source, tokens as (shard, number)) of each position."""
    found = []
    for index in order:
        spans = instance_spans(plan, index)
        tokens = [(shard, token) for shard, start, end in spans for token in range(start, end)]
        found.append((plan.shards[spans[0][0]]["source"], tokens))
    return found


def check_laws(plan: Plan, consumed: int, *, is_pass: bool) -> None:
    """Nothing read is read again before its source is exhausted; the rest can be reached."""
    read: set[tuple[int, int]] = set()
    sources = {record["source"] for record in plan.shards}
    unread = {source: reachable(plan, source) for source in sources}
    for position, (source, tokens) in enumerate(read_tokens(plan, plan.open_order().tolist())):
        if position >= consumed and not read.isdisjoint(tokens):
            # Some of it was read before: then nothing that can be drawn is still unread.
            assert not unread[source], f"position {position} repeats {source} too early"
        read.update(tokens)
        unread[source].difference_update(tokens)
    if is_pass:
        assert not any(unread.values())


def reachable(plan: Plan, source: str) -> set[tuple[int, int]]:
    """Return the tokens of a source that stand in instances of the last segment's first pass."""
    last = plan.record["segments"][-1]
    numbers = {number for level in last.get("levels", [[0]]) for number in level}
    found = set()
    for number in numbers:
        table = plan.tables[number]
        for index in range(table.first_index, table.first_index + table.num_instances):
            for shard, start, end in instance_spans(plan, index):
                if plan.shards[shard]["source"] == source:
                    found |= {(shard, token) for token in range(start, end)}
    return found


def check_prefix(parent: Plan, child: Plan, consumed: int) -> None:
    expected = prefix_order(parent, 0, consumed)
    np.testing.assert_array_equal(child.open_order()[:consumed], expected)
    for index in set(expected.tolist()):
        assert instance_spans(child, index) == instance_spans(parent, index)


MIXED = MixtureSettings(exhausted="renormalise")
STEPS = st.fixed_dictionaries(
    {
        "share": st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
        "mixture": st.sampled_from([None, MIXED]),
        "sequence_length": st.sampled_from([None, 8, 12, 20]),
        "grows": st.sampled_from([None, "web", "new"]),
    }
)


@hypothesis_settings(max_examples=max(hypothesis_settings().max_examples // 3, 10))
@given(
    packing=st.sampled_from(["chunked", "best_fit"]),
    order=st.sampled_from(["shuffle", "mixture"]),
    steps=st.lists(STEPS, min_size=1, max_size=3),
)
def test_any_history_of_extensions(
    tmp_path_factory: pytest.TempPathFactory,
    packing: str,
    order: str,
    steps: list[dict[str, Any]],
) -> None:
    small = make_small(tmp_path_factory.mktemp("root"))
    plan = make_plan(small, packing=packing, order=order)
    position = 0
    for number, step in enumerate(steps):
        if step["grows"] is not None:
            small.add_shard(step["grows"], lengths(100 + number), generation=2 + number)
        consumed = position + int(step["share"] * (plan.num_positions - position))
        options = {name: step[name] for name in ("mixture", "sequence_length")}
        try:
            child = extend(small, plan, consumed, **options)
        except ConfigurationError as error:
            assert "nothing is left" in str(error)  # noqa: PT017 (only sometimes raised)
            return
        check_prefix(plan, child, consumed)
        check_mixed_order(child, rebuild=True)
        check_plan_provenance(child)
        check_laws(child, consumed, is_pass=True)
        assert child.record["lost_tokens"] < child.sequence_length * 4
        plan, position = child, consumed


def test_a_second_epoch_is_part_of_the_prefix(small: SmallDataSet) -> None:
    parent = make_plan(small)
    size = parent.num_positions
    child = extend(small, parent, size + 7)
    order = child.open_order()
    np.testing.assert_array_equal(order[:size], parent.build_order(0))
    np.testing.assert_array_equal(order[size : size + 7], parent.build_order(1)[:7])
    assert Counter(order.tolist()) == Counter(dict.fromkeys(range(size), 2))
    assert child.record["parent"] == parent.plan_id
    assert child.record["prefix"] == size + 7


def test_an_extension_may_read_sources_again(small: SmallDataSet) -> None:
    parent = make_plan(small)
    weights = SourceWeights(
        weights=dict.fromkeys(SOURCES), max_repetition=dict.fromkeys(SOURCES, 3.0)
    )
    for length in (None, 12):
        child = extend(small, parent, 10, mixture=MIXED, sequence_length=length, weights=weights)
        check_prefix(parent, child, 10)
        check_laws(child, 10, is_pass=False)
        read = Counter(
            token
            for _, tokens in read_tokens(child, child.open_order().tolist())
            for token in tokens
        )
        assert max(read.values()) == 3


def test_weights_apply_from_the_extension_on(small: SmallDataSet) -> None:
    parent = make_plan(small)
    weights = {"books": 0.0, "web": 1.0, "wiki": 0.0}
    child = extend(small, parent, 5, mixture=MixtureSettings(weights=weights))
    sources = [source for source, _ in read_tokens(child, child.open_order().tolist())]
    assert set(sources[5:]) == {"web"}
    rows = {row["group"]: row for row in child.record["sources"]}
    assert rows["web"]["planned"] == 1


def test_re_cutting_loses_less_than_an_instance_of_each_source(small: SmallDataSet) -> None:
    parent = make_plan(small)
    child = extend(small, parent, 11, sequence_length=16)
    total = sum(record["n_tokens"] for record in child.shards)
    read = Counter(
        (shard, token)
        for _, tokens in read_tokens(child, child.open_order().tolist())
        for shard, token in tokens
    )
    assert max(read.values()) == 1
    assert total - len(read) == child.record["lost_tokens"]
    assert child.record["lost_tokens"] < 16 * len(SOURCES)
    assert child.length_changes == (11,)


def test_the_loader_crosses_the_change_at_one_position(small: SmallDataSet) -> None:
    parent = make_plan(small)
    whole = parent.num_positions
    consumed = 8
    child = extend(small, parent, consumed, sequence_length=12)
    folder = publish(small, child, [parent])
    running = loader.build_train_dataloader(folder, global_batch_size=4, plan=parent.plan_id)
    batches = iter(running)
    state = [next(batches).state for _ in range(2)][-1]
    assert state["instances"] == consumed < whole
    crossed = loader.build_train_dataloader(
        folder, global_batch_size=4, plan=child.plan_id, state=state, generate_doc_lengths=True
    )
    position = consumed
    order = child.open_order().tolist()
    for batch in crossed:
        assert batch["input_ids"].shape[1] == 12
        for row, index in enumerate(batch["index"].tolist()):
            assert index == order[position]
            real = tokens_of(small, child, index)
            assert batch["input_ids"][row].tolist() == real
            position += 1
    assert position == len(order)
    with pytest.raises(PlanExhausted, match="olmo-data plan extend"):
        next(iter(crossed))


@pytest.mark.parametrize("length", [4, 12])
def test_a_model_is_told_the_longest_instance_it_will_meet(small: SmallDataSet, length: int):
    """`dataset.chunk_size` is the length of the last segment: too few positions for the first."""
    parent = make_plan(small)
    folder = publish(small, extend(small, parent, 6, sequence_length=length), [parent])
    reader = loader.build_train_dataloader(folder, global_batch_size=4)
    assert reader.dataset.chunk_size == length
    assert reader.longest_sequence == max(batch["input_ids"].shape[1] for batch in reader)
    assert reader.longest_sequence == max(parent.sequence_length, length)


def test_one_loader_reads_over_the_change_of_length(small: SmallDataSet) -> None:
    parent = make_plan(small)
    child = extend(small, parent, 6, sequence_length=12)
    train = loader.build_train_dataloader(publish(small, child), global_batch_size=4)
    shapes = [tuple(batch["input_ids"].shape) for batch in train]
    assert shapes[:3] == [(4, 8), (2, 8), (4, 12)]
    assert sum(shape[0] for shape in shapes) == child.num_positions


def test_a_position_behind_the_shared_prefix_is_refused(small: SmallDataSet) -> None:
    parent = make_plan(small)
    child = extend(small, parent, 4)
    folder = publish(small, child, [parent])
    running = iter(loader.build_train_dataloader(folder, global_batch_size=4, plan=parent.plan_id))
    states = [next(running).state for _ in range(2)]
    with pytest.raises(StateError, match="8"):
        loader.build_train_dataloader(
            folder, global_batch_size=4, plan=child.plan_id, state=states[1]
        )


def test_what_cannot_be_is_refused(small: SmallDataSet, tmp_path: Path) -> None:
    parent = make_plan(small, order="mixture")
    with pytest.raises(ConfigurationError, match=r"one pass of \d+ positions, 9,999 cannot"):
        extend(small, parent, 9999)
    with pytest.raises(ConfigurationError, match="-1 positions"):
        extend(small, parent, -1)
    shuffled = make_plan(small)
    with pytest.raises(ConfigurationError, match=r"nothing is left to draw .* land more text"):
        extend(small, shuffled, shuffled.num_positions)
    other = SmallDataSet(tmp_path / "other")
    other.add_shard("web", lengths(50))
    with pytest.raises(IntegrityError, match="plan of another data set"):
        extend(other, shuffled, 3)


def test_an_extension_is_found_made(small: SmallDataSet) -> None:
    parent = make_plan(small)
    first = extend(small, parent, 5, sequence_length=12)
    names = list(small.names())
    again = extend(small, parent, 5, sequence_length=12)
    assert again.record == first.record
    assert list(small.names()) == names


@given(
    sizes=st.lists(st.integers(1, 30), max_size=8),
    slots=st.integers(1, 25),
)
def test_a_stream_is_cut_without_a_gap(sizes: list[int], slots: int) -> None:
    spans = np.empty(len(sizes), SPAN)
    spans["shard"] = np.arange(len(sizes)) // 2
    spans["start"] = np.arange(len(sizes)) * 100
    spans["length"] = sizes
    expected = [
        (int(span["shard"]), int(span["start"]) + offset)
        for span in spans
        for offset in range(int(span["length"]))
    ]
    pieces, counts, rest = cut_stream(spans, slots)
    found = [
        (int(span["shard"]), int(span["start"]) + offset)
        for span in np.concatenate((pieces, rest))
        for offset in range(int(span["length"]))
    ]
    assert found == expected
    assert len(counts) == sum(sizes) // slots
    ends = np.cumsum(counts)
    for first, last in zip(ends - counts, ends, strict=True):
        assert int(pieces["length"][first:last].sum()) == slots
    assert int(rest["length"].sum()) < slots
