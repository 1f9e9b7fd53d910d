from __future__ import annotations

from pathlib import Path

import pytest

from assets.errors import IntegrityError
from assets.ordering.published import read_published, read_shard_index, read_takedown_log
from assets.ordering.withdrawals import (
    TakedownPlan,
    append_takedowns,
    check_takedowns,
    plan_takedowns,
)
from olmo_loader.takedowns import read_takedowns, spans_by_shard
from tests.assets.ordering.grown_corpus import GrownCorpus
from tests.assets.ordering.small_data_set import SmallDataSet, document_id
from tests.journey.corpus import story, write_jsonl


def plan(small: SmallDataSet, withdrawn: dict[int, dict[str, list[int]]]) -> TakedownPlan:
    named = {
        generation: {
            source: [document_id(number) for number in numbers]
            for source, numbers in by_source.items()
        }
        for generation, by_source in withdrawn.items()
    }
    return plan_takedowns(small.root, named, read_shard_index(small.root).records)


def test_one_record_for_each_generation_that_withdrew(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    wiki = small.add_shard("wiki", [5, 1, 7])
    books = small.add_shard("books", [3, 4])
    made = plan(small, {2: {"wiki": [2, 0]}, 3: {"books": [4], "wiki": [99]}})
    assert [record["generation"] for record in made.records] == [2, 3]
    assert [record["documents"] for record in made.records] == [
        [
            {"doc_id": document_id(0).hex(), "spans": [[wiki, 0, 5]]},
            {"doc_id": document_id(2).hex(), "spans": [[wiki, 6, 13]]},
        ],
        [{"doc_id": document_id(4).hex(), "spans": [[books, 3, 7]]}],
    ]
    assert {record["op"] for record in made.records} == {"withdraw"}
    assert append_takedowns(small.root, made)
    assert check_takedowns(small.root, made, read_shard_index(small.root).records) == {
        "withdrawn": 4,
        "pending": 1,
        "recorded": 3,
        "new_records": 2,
        "spans": 3,
        "tokens": 16,
    }


def test_a_document_is_recorded_once(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [5, 1, 7])
    first = plan(small, {2: {"wiki": [1]}})
    assert append_takedowns(small.root, first)
    again = plan(small, {2: {"wiki": [1]}})
    assert again.new == ()
    assert again.last == first.last
    later = plan(small, {2: {"wiki": [1]}, 3: {"wiki": [0]}})
    assert [len(record["documents"]) for record in later.records] == [1, 1]
    assert append_takedowns(small.root, later)
    assert later.last is not None
    chained = read_takedowns(small.dataset, later.last)
    assert chained == list(read_takedown_log(small.root).records)


def test_a_pending_document_is_recorded_when_its_shard_is_there(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [5])
    early = plan(small, {2: {"wiki": [0, 1]}})
    assert append_takedowns(small.root, early)
    assert early.withdrawn - early.in_shards == {document_id(1).hex()}
    second = small.add_shard("wiki", [6])
    later = plan(small, {2: {"wiki": [0, 1]}})
    assert later.records[-1]["documents"] == [
        {"doc_id": document_id(1).hex(), "spans": [[second, 0, 6]]}
    ]
    assert later.withdrawn == later.in_shards


def test_the_second_of_two_writers_looks_again(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [5, 4])
    mine = plan(small, {2: {"wiki": [0]}})
    other = plan(small, {2: {"wiki": [0]}, 3: {"wiki": [1]}})
    assert append_takedowns(small.root, other)
    assert not append_takedowns(small.root, mine)
    assert plan(small, {2: {"wiki": [0]}}).new == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b",0,5]", b",0,4]", "body_sha256"),
        (b'"seq":1', b'"seq":2', "body_sha256"),
    ],
)
def test_a_changed_record_is_named(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [5])
    assert append_takedowns(small.root, plan(small, {2: {"wiki": [0]}}))
    path = small.dataset / "takedowns/00000001.json"
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(IntegrityError, match=f"00000001.json: {message}"):
        read_takedown_log(small.root)


def test_a_missing_or_exchanged_record_is_named(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [5, 4, 3])
    for generation in (2, 3, 4):
        withdrawn = {number: {"wiki": [number - 2]} for number in range(2, generation + 1)}
        assert append_takedowns(small.root, plan(small, withdrawn))
    folder = small.dataset / "takedowns"
    (folder / "00000002.json").rename(folder / "aside")
    (folder / "aside").rename(small.dataset / "aside")
    with pytest.raises(IntegrityError, match="takedown record 2 is missing"):
        read_takedown_log(small.root)


def test_spans_that_are_no_document_and_documents_that_are_not_masked_are_found(
    tmp_path: Path,
) -> None:
    small = SmallDataSet(tmp_path)
    shard = small.add_shard("wiki", [5, 4])
    records = read_shard_index(small.root).records
    good = plan(small, {2: {"wiki": [1]}})

    def with_spans(doc_id: bytes, span: list[object]) -> TakedownPlan:
        documents = [{"doc_id": doc_id.hex(), "spans": [span]}]
        return TakedownPlan(
            records=({**good.records[0], "documents": documents},),
            new=good.new,
            last=good.last,
            withdrawn=good.withdrawn,
            in_shards=good.in_shards,
        )

    for span in ([shard, 5, 8], [shard, 4, 9], [shard, 0, 5], [shard, 9, 12]):
        with pytest.raises(IntegrityError, match="the shard does not"):
            check_takedowns(small.root, with_spans(document_id(1), span), records)
    with pytest.raises(IntegrityError, match=r"names other\.npy, the index does not"):
        check_takedowns(small.root, with_spans(document_id(1), ["other.npy", 0, 1]), records)
    with pytest.raises(IntegrityError, match="1 withdrawn documents stand in shards and not"):
        check_takedowns(small.root, with_spans(document_id(0), [shard, 0, 5]), records)


def test_a_document_withdrawn_while_pending_is_masked_with_its_shard(grown: GrownCorpus) -> None:
    first = grown.publish()
    assert first.takedown is None
    # Two new stories are fewer tokens than min_tokens: they stay pending.
    path = grown.corpus / "stories/p.jsonl.gz"
    write_jsonl(path, [story(500, 60), story(501, 60)])
    grown.cut()
    pending = grown.publish()
    assert pending.accounts["stories"].pending.documents == 2
    write_jsonl(path, [story(500, 60)])
    grown.cut()
    withdrawn = grown.publish()
    assert withdrawn.takedown is None
    assert withdrawn.checks[-1].facts["pending"] == 1
    write_jsonl(grown.corpus / "stories/q.jsonl.gz", [story(seed) for seed in range(510, 525)])
    grown.cut()
    report = grown.publish()
    assert report.generation == 4
    assert report.takedown is not None
    assert report.checks[-1].facts["pending"] == 0
    assert report.checks[-1].facts["recorded"] == 1
    (record,) = read_takedowns(grown.dataset, report.takedown)
    assert (record["op"], record["generation"], len(record["documents"])) == ("withdraw", 3, 1)
    assert sum(len(spans) for spans in spans_by_shard([record]).values()) == 1
    again = grown.publish()
    assert not again.is_changed
    published = read_published(grown.root)
    assert published is not None
    assert published.file.takedown == report.takedown
