from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from olmo_loader.dataset_file import DatasetFile
from olmo_loader.errors import ConfigurationError, IntegrityError, NotInThisVersion
from olmo_loader.plan import parse_plan, read_plan
from olmo_loader.plan_identity import plan_fingerprint, train_records
from olmo_loader.plan_writing import describe_plan
from olmo_loader.records import (
    canonical_json,
    parse_record,
    seal,
    sha256_hex,
    write_atomically,
)
from olmo_loader.shard_index import (
    IndexSnapshot,
    add_record,
    check_chain,
    in_plan_order,
    index_name,
    parse_index_record,
    read_index,
    read_log,
    weight_record,
)
from olmo_loader.takedowns import read_takedowns, spans_by_shard, takedown_record
from tests.olmo_loader.small_data import SmallDataset, make_small


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> SmallDataset:
    data = make_small(tmp_path_factory.mktemp("small") / "dataset", docs=10)
    data.add_shard("arxiv", 4, 10, generation=2)
    return data


def chain(records: list[bytes]):
    return check_chain([(index_name(at), data) for at, data in enumerate(records, start=1)])


def test_a_whole_chain_is_read(small):
    records, snapshot = chain(small.index)
    assert [record["seq"] for record in records] == [1, 2, 3, 4]
    assert snapshot == small.snapshot
    assert read_index(small.folder, small.snapshot) == records
    assert chain([]) == ([], None)


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_missing_or_exchanged_record_is_named(small, gone: int):
    without = small.index[:gone] + small.index[gone + 1 :]
    with pytest.raises(IntegrityError, match=rf"{gone + 1:08d}\.json: record {gone + 1} is miss"):
        chain(without)
    swapped = [*small.index]
    swapped[gone], swapped[gone + 1] = swapped[gone + 1], swapped[gone]
    with pytest.raises(IntegrityError, match=f"record {gone + 1} is missing"):
        chain(swapped)


def test_an_altered_record_breaks_the_chain_even_when_sealed_again(small):
    record = parse_index_record(small.index[0], "x")
    altered = canonical_json(seal({**record, "n_docs": 11}))
    with pytest.raises(IntegrityError, match="not chained to record 1, which was altered"):
        chain([altered, *small.index[1:]])
    with pytest.raises(IntegrityError, match="the index ends at"):
        read_index(small.folder, IndexSnapshot(2, "0" * 64))
    with pytest.raises(IntegrityError, match="index record 5 is missing"):
        read_index(small.folder, IndexSnapshot(5, "0" * 64))


def test_ranges_of_a_group_follow_one_another(small):
    header = {**small.records[0], "sidecars": {}}
    first = add_record(header, seq=1, shard="shards/a.npy", span=(0, 5), previous=None)
    second = add_record(header, seq=2, shard="shards/b.npy", span=(4, 9), previous=first)
    with pytest.raises(IntegrityError, match="begins at 4, its group ends at 5"):
        chain([first, second])


def test_records_that_cannot_be_are_refused(small):
    header = small.records[0]
    with pytest.raises(ConfigurationError, match="needs the bytes of record 1"):
        add_record(header, seq=2, shard="s.npy", span=(0, 1), previous=None)
    with pytest.raises(ConfigurationError, match="is no range"):
        add_record(header, seq=1, shard="s.npy", span=(2, 1), previous=None)
    later = canonical_json(seal({"op": "rewrite"}))
    with pytest.raises(NotInThisVersion, match="'rewrite' is not in this version"):
        parse_index_record(later, "x")
    with pytest.raises(IntegrityError, match="missing prev, reason"):
        parse_index_record(canonical_json(seal({"op": "retire"})), "x")
    with pytest.raises(IntegrityError, match=r"missing .*bos_policy"):
        parse_index_record(canonical_json(seal({"op": "add"})), "x")


def extended(small, *changes):
    """Return the index with (shard number, weight) changes behind it."""
    raw = list(small.index)
    for number, weight in changes:
        name = small.records[number]["shard"]
        raw.append(weight_record(name, weight, reason="test", seq=len(raw) + 1, previous=raw[-1]))
    return raw


def logged(raw: list[bytes]):
    return read_log([(index_name(at), data) for at, data in enumerate(raw, start=1)])


def test_a_weight_holds_from_its_record_on(small):
    log = logged(extended(small, (1, 2.5), (1, 3.0), (0, 0.0)))
    assert [item["op"] for item in log.records[4:]] == ["weight", "weight", "retire"]

    def weights(seq):
        return [record["weight"] for record in log.shards(seq)]

    assert weights(None) == [0.0, 3.0, 1.0, 1.0]
    assert [weights(seq) for seq in (4, 5, 6)] == [[1] * 4, [1, 2.5, 1, 1], [1, 3, 1, 1]]
    assert log.shards(4) == small.records
    assert log.snapshot(4) == small.snapshot
    assert log.last == log.snapshot(7)


def test_a_record_with_another_weight_is_sealed_again(small):
    changed = logged(extended(small, (2, 0.5))).shards()[2]
    assert parse_record(canonical_json(changed), "x") == changed
    assert {**changed, "weight": 1.0, "body_sha256": small.records[2]["body_sha256"]} == (
        small.records[2]
    )


def test_a_retired_shard_is_in_no_training_plan_and_is_retired_for_good(small):
    raw = extended(small, (1, 0.0))
    shards = logged(raw).shards()
    names = [record["shard"] for record in train_records(shards)]
    assert names == [small.records[number]["shard"] for number in (0, 2, 3)]
    again = weight_record(shards[1]["shard"], 1.0, reason="no", seq=6, previous=raw[-1])
    with pytest.raises(IntegrityError, match=r"00000006\.json: weight of .* which is retired"):
        logged([*raw, again])


def test_changes_of_unknown_shards_and_impossible_weights_are_refused(small):
    unknown = weight_record("shards/x.npy", 2.0, reason="r", seq=5, previous=small.index[-1])
    with pytest.raises(IntegrityError, match=r"shards/x\.npy, which is not in the index"):
        logged([*small.index, unknown])
    for weight in (-1.0, math.inf, math.nan):
        with pytest.raises(ConfigurationError, match="a weight is a number from 0 on"):
            weight_record("s", weight, reason="r", seq=5, previous=b"")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tokenizer_sha256", "0" * 64),
        ("dtype", "uint32"),
        ("eos_token_id", 5),
        ("pad_token_id", 5),
        ("bos_policy", "document:1"),
    ],
)
def test_shards_of_another_kind_do_not_share_an_index(small, field, value):
    header = {**small.records[3], "sidecars": {}, field: value}
    span = (small.records[3]["to"], small.records[3]["to"] + 1)
    other = add_record(header, seq=5, shard="shards/o.npy", span=span, previous=small.index[-1])
    with pytest.raises(IntegrityError, match=f"does not fit the index.*{field} {value}"):
        logged([*small.index, other])


def test_plan_order_is_by_generation_source_and_range_never_by_number(small):
    shuffled = [small.records[at] for at in (3, 2, 0, 1)]
    order = [(r["generation"], r["source"], r["from"]) for r in in_plan_order(shuffled)]
    assert order == [(1, "books", 0), (1, "books", 10), (1, "wiki", 0), (2, "arxiv", 0)]


def describe(small, records, **changes):
    options = {"snapshot": small.snapshot, "generation": 2, "sequence_length": 16, "seed": 1}
    return describe_plan(records, **{**options, **changes})


def test_a_plan_s_id_follows_from_bytes_and_settings_alone(small):
    plan = describe(small, small.records)
    moved = [{**r, "shard": f"elsewhere/{r['seq']}.npy"} for r in small.records]
    assert describe(small, moved)["plan_id"] == plan["plan_id"]
    assert describe(small, small.records, generation=9)["plan_id"] == plan["plan_id"]
    different = [
        describe(small, small.records, seed=2),
        describe(small, small.records, sequence_length=8),
        describe(small, small.records[:3]),
        describe(small, [{**small.records[0], "sha256": "0" * 64}, *small.records[1:]]),
        describe(small, [{**small.records[0], "n_docs": 11}, *small.records[1:]]),
    ]
    assert len({plan["plan_id"], *(other["plan_id"] for other in different)}) == 6
    assert plan["fingerprint"] == plan_fingerprint(in_plan_order(small.records), plan)


def test_held_out_shards_are_in_no_training_plan(small):
    records = [{**small.records[0], "split": "held_out"}, *small.records[1:]]
    assert len(train_records(records)) == 3
    plan = describe(small, records)
    assert plan["segments"][0]["num_shards"] == 3
    assert plan["num_instances"] == sum(r["n_tokens"] // 16 for r in records[1:])


def test_plans_that_cannot_be(small):
    with pytest.raises(ConfigurationError, match=r"no shard of 4 holds one instance of 99999 tok"):
        describe(small, small.records, sequence_length=99999)
    mixed = [{**small.records[0], "dtype": "uint32"}, *small.records[1:]]
    with pytest.raises(ConfigurationError, match="one dtype and one tokenizer"):
        describe(small, mixed)
    with pytest.raises(ConfigurationError, match="no plan 0000"):
        read_plan(small.folder, "0000")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"packing": "padded"}, NotInThisVersion, "packing 'padded' is not in this version"),
        ({"order": "sorted"}, NotInThisVersion, "order 'sorted'"),
        ({"parent": "0" * 16}, IntegrityError, "both parent and prefix, or neither"),
        ({"plan_id": "0" * 16}, IntegrityError, "differ"),
    ],
)
def test_plans_of_later_versions_and_false_ids(small, change, error, message: str):
    plan = read_plan(small.folder, small.plans[0]).record
    with pytest.raises(error, match=message):
        parse_plan(canonical_json(seal({**plan, **change})), "plan.json")


def test_a_plan_whose_fingerprint_does_not_follow_is_refused(tmp_path: Path):
    data = make_small(tmp_path / "dataset", docs=10)
    path = data.folder / "plans" / data.plans[0] / "plan.json"
    record = parse_record(path.read_bytes(), "x")
    write_atomically(path, canonical_json(seal({**record, "seed": 7})))
    with pytest.raises(IntegrityError, match="does not follow"):
        read_plan(data.folder, data.plans[0])


def test_spans_are_merged_per_shard():
    document = {"doc_id": "00" * 16, "spans": [["a", 5, 9], ["a", 0, 2], ["b", 1, 3]]}
    other = {"doc_id": "01" * 16, "spans": [["a", 2, 3], ["a", 8, 12]]}
    spans = spans_by_shard([{"documents": [document]}, {"documents": [other]}])
    assert {shard: found.tolist() for shard, found in spans.items()} == {
        "a": [[0, 3], [5, 12]],
        "b": [[1, 3]],
    }


def test_takedowns_are_a_chain(tmp_path: Path):
    data = make_small(tmp_path / "dataset", docs=10)
    assert read_takedowns(data.folder, None) == []
    data.take_down([("a", 0, 1)])
    data.take_down([("b", 0, 1)], op="withdraw")
    last = IndexSnapshot(2, sha256_hex(data.takedowns[-1]))
    found = read_takedowns(data.folder, last)
    assert [record["op"] for record in found] == ["takedown", "withdraw"]
    with pytest.raises(IntegrityError, match="not the one published"):
        read_takedowns(data.folder, IndexSnapshot(2, "0" * 64))
    (data.folder / "takedowns/00000001.json").write_bytes(data.takedowns[1])
    with pytest.raises(IntegrityError, match="not chained to takedown record 0"):
        read_takedowns(data.folder, last)
    (data.folder / "takedowns/00000001.json").unlink()
    with pytest.raises(IntegrityError, match="takedown record 1 is missing"):
        read_takedowns(data.folder, last)
    with pytest.raises(ConfigurationError, match="withdraw, takedown"):
        takedown_record(seq=1, op="erase", generation=1, reason="", documents=[], previous=None)


def test_dataset_file_is_read_back_and_checked(small):
    content = (small.folder / "dataset.json").read_bytes()
    file = DatasetFile.parse(content, "dataset.json")
    assert file.to_bytes() == content
    body = parse_record(content, "x")
    changes: list[tuple[dict[str, Any], str]] = [
        ({"version": 2}, "version 2, this is a reader of olmo-data version 1"),
        ({"plan": "0" * 16}, "is not listed"),
        ({"tokenizer": {}}, "tokenizer: missing"),
    ]
    for change, message in changes:
        with pytest.raises(IntegrityError, match=message):
            DatasetFile.parse(canonical_json(seal({**body, **change})), "dataset.json")
    with pytest.raises(ConfigurationError, match="is not among"):
        DatasetFile(
            generation=1,
            snapshot=small.snapshot,
            plan="x",
            plans=(),
            takedown=None,
            tokenizer={},
        ).to_bytes()


@pytest.mark.parametrize(
    "data", [b"", b"[]\n", b"{}\n", b"\xff\n", b'{"body_sha256":"0"}\n', b"not json"]
)
def test_what_is_no_record(data: bytes):
    with pytest.raises(IntegrityError, match="some/file"):
        parse_record(data, "some/file")


def test_the_byte_form_is_one():
    assert canonical_json({"b": "é", "a": [1, 1.0]}) == '{"a":[1,1.0],"b":"é"}\n'.encode()
    sealed = canonical_json(seal({"a": 1}))
    assert parse_record(sealed, "x")["a"] == 1
    with pytest.raises(IntegrityError, match="not the canonical form"):
        parse_record(sealed.replace(b",", b", "), "x")
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))
