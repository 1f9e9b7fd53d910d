from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assets.errors import ConfigurationError, IntegrityError
from assets.ordering.coverage import Coverage
from assets.ordering.plan_checks import check_mixed_order, check_plan_provenance
from assets.ordering.plan_sources import drawn_slots, plan_source_rows
from assets.ordering.provenance import read_provenance
from assets.ordering.published import read_shard_index
from assets.settings.ordering import MixtureSettings, PackingSettings, StageSettings
from olmo_loader.errors import PlanExhausted
from olmo_loader.plan import Plan
from olmo_loader.segment_units import open_sampler
from olmo_loader.shard_index import IndexSnapshot
from tests.assets.ordering.mixed_plans import (
    document_bounds,
    instance_spans,
    make_plan,
    publish,
    tokens_of,
    weigh,
)
from tests.assets.ordering.small_data_set import PAD, SmallDataSet

torch = pytest.importorskip("torch")
loader = pytest.importorskip("olmo_loader.loader")

SPLIT = {"web": 0.5, "wiki": 0.3, "books": 0.2}
KINDS: dict[str, dict[str, Any]] = {
    "repeats": {"weights": weigh(web=2.0, wiki=1.0)},
    "mixture": {"order": "mixture", "weights": weigh(**SPLIT)},
    "stochastic": {"order": "mixture", "mixture": MixtureSettings(sampler="stochastic")},
    "packed": {"packing": "best_fit"},
    "packed mixture": {"packing": "best_fit", "order": "mixture", "weights": weigh(**SPLIT)},
    "stages": {
        "order": "mixture",
        "mixture": MixtureSettings(
            stages=(
                StageSettings(name="main", tokens=400),
                StageSettings(name="anneal", tokens=200, weights={"books": 1, "web": 0, "wiki": 0}),
            )
        ),
    },
}


@pytest.fixture
def small(tmp_path: Path) -> SmallDataSet:
    made = SmallDataSet(tmp_path)
    rng = np.random.default_rng(0)
    for source in ("web", "wiki", "books", "web", "books"):
        made.add_shard(source, rng.integers(1, 20, 40).tolist())
    return made


@pytest.fixture(params=KINDS)
def plan(request: pytest.FixtureRequest, small: SmallDataSet) -> Plan:
    return make_plan(small, **KINDS[request.param])


def test_order_spans_shares_and_provenance_agree(plan: Plan) -> None:
    facts = check_mixed_order(plan, rebuild=True)
    assert facts["positions"] == plan.num_positions
    covered = check_plan_provenance(plan)
    drawn = set(plan.open_order().tolist())
    tokens = {
        (shard, token)
        for index in drawn
        for shard, start, end in instance_spans(plan, index)
        for token in range(start, end)
    }
    assert covered["instances"] == len(drawn) or plan.record.get("uses")
    assert covered["tokens"] == len(tokens)


def test_slots_are_those_of_what_is_drawn(plan: Plan) -> None:
    slots, tokens = drawn_slots(plan), sum(row["tokens"] for row in plan_source_rows(plan))
    assert slots == plan.num_positions * plan.sequence_length
    assert tokens == slots if plan.record["packing"] == "chunked" else 0.5 < tokens / slots <= 1


def test_an_equal_plan_is_found_made(small: SmallDataSet, plan: Plan) -> None:
    before = {name: small.root.storage.read(name) for name in small.names()}
    changes = next(
        kind for kind in KINDS.values() if make_plan(small, **kind).plan_id == plan.plan_id
    )
    again = make_plan(small, **changes)
    assert again.record == plan.record
    assert set(before) <= set(small.names())


def test_the_loader_reads_what_the_plan_says(small: SmallDataSet, plan: Plan) -> None:
    folder = publish(small, plan)
    train = loader.build_train_dataloader(
        folder, global_batch_size=4, generate_doc_lengths=True, num_threads=0
    )
    order = plan.open_order().tolist()
    consumed = 0
    for batch in train:
        for row, index in enumerate(batch["index"].tolist()):
            assert index == order[consumed]
            consumed += 1
            real = tokens_of(small, plan, index)
            ids = batch["input_ids"][row].tolist()
            assert ids == real + [PAD] * (plan.sequence_length - len(real))
            if "label_mask" in batch:
                mask = batch["label_mask"][row].tolist()
                assert mask == [True] * len(real) + [False] * (len(ids) - len(real))
            assert sum(batch["doc_lens"][row].tolist()) == plan.sequence_length
    assert consumed == len(order)
    totals = batch.state["tokens_per_source"]
    expected = sum(len(tokens_of(small, plan, index)) for index in order)
    assert sum(totals.values()) == expected
    if plan.is_one_pass:
        with pytest.raises(PlanExhausted, match="plan extend"):
            iter(train).__next__()


def test_packed_instances_hold_whole_documents_and_mask_between_them(small: SmallDataSet) -> None:
    plan = make_plan(small, length=32, packing="best_fit")
    seen = []
    for index in range(plan.num_instances):
        for shard, start, end in instance_spans(plan, index):
            assert (start, end) in document_bounds(small, plan, shard)
            seen.append((shard, start, end))
    every = [
        (shard, *bounds)
        for shard in range(len(plan.shards))
        for bounds in document_bounds(small, plan, shard)
    ]
    assert sorted(seen) == sorted(every)
    train = loader.build_train_dataloader(
        publish(small, plan), global_batch_size=4, generate_doc_lengths=True
    )
    for batch in train:
        for row, index in enumerate(batch["index"].tolist()):
            sizes = [end - start for _, start, end in instance_spans(plan, index)]
            free = 32 - sum(sizes)
            expected = [*sizes, free] if free else sizes
            assert [n for n in batch["doc_lens"][row].tolist() if n] == expected


def test_long_documents_are_cut_truncated_or_dropped(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("web", [20, 3, 5, 8])
    reports = {}
    for policy in ("fragment", "truncate", "drop"):
        options = PackingSettings(long=policy, soft_cut=0)
        plan = make_plan(small, packing="best_fit", packing_options=options)
        reports[policy] = plan.record["packing_report"]["web"]
        assert reports[policy]["cut_that_fitted"] == 0
    assert (reports["fragment"]["cut"], reports["fragment"]["tokens"]) == (1, 36)
    assert (reports["truncate"]["truncated"], reports["truncate"]["discarded_tokens"]) == (1, 12)
    assert (reports["drop"]["dropped"], reports["drop"]["discarded_tokens"]) == (1, 20)
    assert reports["drop"]["tokens"] == 16
    assert reports["fragment"]["utilization"] == 36 / 40


def test_a_separator_stands_between_documents_and_is_no_target(small: SmallDataSet) -> None:
    plain = make_plan(small, length=32, packing="best_fit")
    options = PackingSettings(soft_cut=0, separator_id=7)
    plan = make_plan(small, length=32, packing="best_fit", packing_options=options)
    assert plan.plan_id != plain.plan_id
    assert "separator_id" not in plain.record["packing_options"]
    check_mixed_order(plan, rebuild=True)
    train = loader.build_train_dataloader(
        publish(small, plan), global_batch_size=4, generate_doc_lengths=True
    )
    separators = 0
    for batch in train:
        for row, index in enumerate(batch["index"].tolist()):
            ids: list[int] = []
            mask: list[bool] = []
            lengths: list[int] = []
            for shard, start, end in instance_spans(plan, index):
                if ids:
                    ids, mask = [*ids, 7], [*mask, False]
                    lengths[-1] += 1
                    separators += 1
                tokens = np.fromfile(small.dataset / plan.shards[shard]["shard"], "<u2")[start:end]
                ids += tokens.tolist()
                mask += [True] * (end - start)
                lengths.append(end - start)
            free = 32 - len(ids)
            assert batch["input_ids"][row].tolist() == [*ids, *[PAD] * free]
            assert batch["label_mask"][row].tolist() == [*mask, *[False] * free]
            expected = [*lengths, free] if free else lengths
            assert [n for n in batch["doc_lens"][row].tolist() if n] == expected
    reports = plan.record["packing_report"].values()
    assert separators == sum(report["separators"] for report in reports) > 0
    wrong = PackingSettings(soft_cut=0, separator_id=50)
    with pytest.raises(ConfigurationError, match="separator_id: 50 is not in the vocabulary of 50"):
        make_plan(small, length=32, packing="best_fit", packing_options=wrong)


def test_low_utilization_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("web", [5, 5, 5])
    make_plan(small, packing="best_fit")
    assert "web: packing uses 62.5% of 24 positions" in caplog.text


def test_a_source_that_packing_drops_whole_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("web", [9, 20])
    small.add_shard("wiki", [8])
    make_plan(small, packing="best_fit", packing_options=PackingSettings(long="drop"))
    assert "web: packing drops all of its 2 documents (29 tokens), which are longer" in caplog.text


def test_a_packed_plan_leaves_out_what_is_taken_down(small: SmallDataSet) -> None:
    first = make_plan(small, packing="best_fit")
    shard = first.shards[0]["shard"]
    start, end = sorted(document_bounds(small, first, 0))[3]
    record = {"documents": [{"doc_id": "00" * 16, "spans": [[shard, start, end]]}]}
    plan = make_plan(
        small, packing="best_fit", takedown=IndexSnapshot(1, "ab" * 32), takedowns=[record]
    )
    assert plan.plan_id != first.plan_id
    assert not [
        span
        for index in range(plan.num_instances)
        for span in instance_spans(plan, index)
        if span[0] == 0 and span[1] < end and start < span[2]
    ]
    assert sum(item["left_out"] for item in plan.record["packing_report"].values()) == 1


def test_the_table_of_shares_is_stored(small: SmallDataSet) -> None:
    plan = make_plan(small, order="mixture", weights=weigh(**SPLIT))
    rows = {row["group"]: row for row in plan.record["sources"]}
    assert {name: round(row["weight"], 6) for name, row in rows.items()} == SPLIT
    for name, share in SPLIT.items():
        assert rows[name]["target"] == pytest.approx(share)
        assert rows[name]["planned"] == pytest.approx(share, abs=2 / plan.num_positions)
        assert rows[name]["epochs"] <= 1
    assert max(row["epochs"] for row in rows.values()) == 1


def test_a_state_of_the_online_sampler_names_its_plan(small: SmallDataSet) -> None:
    plan = make_plan(small, order="mixture")
    sampler = open_sampler(plan)
    draws = [sampler.next_draw().index for _ in range(10)]
    state = json.loads(json.dumps(sampler.state_dict()))
    assert state["plan_id"] == plan.plan_id
    again = open_sampler(plan)
    again.load_state_dict(state)
    tail = [draw.index for draw in again]
    assert [*draws, *tail] == plan.open_order().tolist()


def test_repeats_are_rows_of_provenance(small: SmallDataSet) -> None:
    plan = make_plan(small, weights=weigh(web=3.0, wiki=1.0))
    table = read_provenance((plan.folder / "provenance.csv").read_bytes(), "p")
    assert table[table["Dataset"] == "web"]["repeat"].tolist() == [1, 2, 3, 1, 2, 3]
    assert table[table["Dataset"] == "wiki"]["repeat"].tolist() == [1]
    assert table["share"].sum() == pytest.approx(1)
    counts = np.bincount(plan.open_order())
    assert counts.tolist() == [1] * plan.num_instances
    web = next(n for n, record in enumerate(plan.shards) if record["source"] == "web")
    assert Coverage(plan).pieces(web).starts.tolist()[:4] == [0, 0, 0, 8]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": weigh(web=0.0, wiki=0.0, books=0.0)}, "sum to 0"),
        ({"weights": weigh(web=1.0, wiki=None, books=None)}, "books, wiki have none"),
        (
            {"weights": weigh(web=1.0, wiki=1.0, books=1.0, code=0.3)},
            r"code \(weight 0.3\) have 0 tokens .* land text",
        ),
        (
            {"mixture": MixtureSettings(weights={"wed": 1.0})},
            "no source or stratum 'wed'; did you mean 'web'",
        ),
        (
            {"mixture": MixtureSettings(tokens=10**6)},
            r"asks for 1,000,000 tokens, the best possible size is [\d,]+: .* is short",
        ),
        (
            {"mixture": MixtureSettings(exhausted="error", tokens=10**6)},
            "best possible size is",
        ),
    ],
)
def test_mixtures_that_cannot_be_are_refused(
    small: SmallDataSet, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make_plan(small, order="mixture", **changes)


@pytest.mark.parametrize("name", ["spans.npy", "instance_offsets.npy", "source_ids.npy"])
def test_a_damaged_file_is_named(small: SmallDataSet, name: str) -> None:
    plan = make_plan(small, packing="best_fit", order="mixture")
    path = plan.folder / name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(IntegrityError, match=name):
        check_mixed_order(plan)


def test_a_changed_row_of_provenance_is_named(small: SmallDataSet) -> None:
    plan = make_plan(small, order="mixture")
    path = plan.folder / "provenance.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    with pytest.raises(IntegrityError, match="the first that differs is shards/wiki"):
        check_plan_provenance(plan)


def test_strata_are_groups_where_weights_name_them(small: SmallDataSet) -> None:
    assert read_shard_index(small.root).records[0]["stratum"] is None
    weights = {"web/": 1.0, "wiki": 1.0, "books": 0.0}
    plan = make_plan(small, order="mixture", mixture=MixtureSettings(weights=weights))
    assert [row["group"] for row in plan.record["sources"]] == ["books", "web/", "wiki"]
    assert plan.record["sources"][0]["tokens"] == 0
