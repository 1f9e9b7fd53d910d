from __future__ import annotations

import dataclasses
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assets.errors import IntegrityError, PinnedRootError, StageError
from assets.ordering.checks import CHECKS, ChecksFailedError
from assets.ordering.publish import publish_dataset
from assets.ordering.published import open_plan, read_published, read_shard_index
from assets.root import Root
from assets.settings.ordering import OrderingSettings
from assets.settings.tokens import ShardingSettings
from assets.sharding.shards import materialize_shards
from assets.sources.landing_log import LandingLog, read_log
from assets.storage.local import LocalStorage
from olmo_loader.verify import verify_dataset
from tests.assets.ordering.grown_corpus import GrownCorpus
from tests.journey.corpus import make_settings, story, write_jsonl, write_text

OTHER = OrderingSettings(sequence_length=64, seed=8)


def add_stories(grown: GrownCorpus, name: str, seeds: range) -> None:
    write_jsonl(grown.corpus / f"stories/{name}", [story(seed) for seed in seeds])


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_publication_proves_itself_and_the_loader_agrees(grown: GrownCorpus) -> None:
    report = grown.publish()
    assert [check.name for check in report.checks] == list(CHECKS)
    assert all(check.passed for check in report.checks)
    assert (report.generation, report.is_changed, report.is_new_plan) == (1, True, True)
    assert sum(report.tokens.values()) == report.num_instances * 64
    assert list(verify_dataset(grown.dataset)) == []
    published = read_published(grown.root)
    assert published is not None
    assert published.version == report.digest
    assert published.file.plans == (report.plan_id,)
    ledgers = report.checks[0].facts
    assert ledgers["documents"]["in"] == ledgers["clean"]["in"] + 2
    assert ledgers["documents"]["quarantined"] == 2


def test_publishing_again_writes_nothing(grown: GrownCorpus) -> None:
    first = grown.publish()
    before = {path: path.stat().st_mtime_ns for path in grown.dataset.rglob("*") if path.is_file()}
    again = grown.publish()
    assert (again.is_changed, again.is_new_plan) == (False, False)
    assert again.digest == first.digest
    assert again.checks[2].facts["shards_read"] == 0
    assert before == {
        path: path.stat().st_mtime_ns for path in grown.dataset.rglob("*") if path.is_file()
    }


def test_another_ordering_makes_another_plan_and_the_old_one_stays(grown: GrownCorpus) -> None:
    first = grown.publish()
    files = grown.bytes_of(f"dataset/plans/{first.plan_id}/")
    other = grown.publish(ordering=OTHER)
    assert other.plan_id != first.plan_id
    assert grown.bytes_of(f"dataset/plans/{first.plan_id}/") == files
    back = grown.publish()
    published = read_published(grown.root)
    assert published is not None
    assert (back.is_changed, back.is_new_plan) == (True, False)
    assert published.file.plan == first.plan_id
    assert published.file.plans == (first.plan_id, other.plan_id)


def test_a_new_landing_makes_a_new_plan_and_leaves_the_old_bytes(grown: GrownCorpus) -> None:
    first = grown.publish()
    before = grown.bytes_of("dataset/")
    add_stories(grown, "d.jsonl.gz", range(200, 230))
    grown.cut()
    second = grown.publish()
    assert second.generation == 2
    assert second.num_instances > first.num_instances
    after = grown.bytes_of("dataset/")
    changed = [name for name, data in before.items() if after[name] != data]
    assert changed == ["dataset/dataset.json"]
    read = second.checks[2].facts
    assert read["shards_compared"] == first.checks[2].facts["shards_read"]
    assert list(verify_dataset(grown.dataset)) == []


def test_a_landing_without_documents_moves_the_generation_alone(grown: GrownCorpus) -> None:
    first = grown.publish()
    (grown.corpus / "books/two.txt").unlink()
    grown.cut()
    second = grown.publish()
    assert (second.generation, second.plan_id) == (2, first.plan_id)
    assert (second.is_changed, second.is_new_plan) == (True, False)


def test_nothing_landed_is_a_clear_error(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, tmp_path / "root")
    with pytest.raises(StageError, match="no generation can be published yet: nothing has landed"):
        publish_dataset(Root(settings.root), settings, LandingLog())


def test_instances_longer_than_every_shard_are_refused(grown: GrownCorpus) -> None:
    with pytest.raises(StageError, match="set it to at most"):
        grown.publish(ordering=OrderingSettings(sequence_length=100_000))
    assert read_published(grown.root) is None


def test_pinned_settings_are_refused_and_nothing_changes(grown: GrownCorpus) -> None:
    grown.publish()
    before = grown.bytes_of("dataset/")
    with pytest.raises(PinnedRootError, match=r"sharding\.max_tokens"):
        grown.publish(sharding=ShardingSettings(max_tokens=1600, min_tokens=400))
    assert grown.bytes_of("dataset/") == before


@pytest.mark.parametrize(
    ("place", "check"),
    [
        ("{shard}", "shards"),
        ("{plan}/global_indices.npy", "order"),
        ("{plan}/provenance.csv", "provenance"),
    ],
)
def test_a_failed_check_leaves_the_previous_data_set(
    grown: GrownCorpus, place: str, check: str
) -> None:
    grown.publish()
    write_text(grown.corpus / "books/one.txt", story(300, 900))
    add_stories(grown, "d.jsonl.gz", range(200, 230))
    grown.cut()
    before = grown.bytes_of("dataset/")
    # The plan is made, then damaged before the checks read it: a bad disk, a wrong builder.
    probe = grown.copy(grown.folder.parent / "probe").publish()
    shard = read_shard_index(grown.root).records[-1]["shard"]
    target = place.format(shard=shard, plan=f"plans/{probe.plan_id}")

    def damaging(storage: LocalStorage, name: str, path: Path) -> None:
        original(storage, name, path)
        if name == f"dataset/{target}":
            flip(grown.dataset / target, -3)

    original = LocalStorage.put_file
    if check == "shards":
        flip(grown.dataset / target, -3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStorage, "put_file", damaging)
        with pytest.raises(ChecksFailedError, match=rf"\({check}\).*\n  {check}: ") as caught:
            grown.publish()
    assert [item.name for item in caught.value.checks if not item.passed] == [check]
    after = grown.bytes_of("dataset/")
    assert after["dataset/dataset.json"] == before["dataset/dataset.json"]
    assert not [name for name in after if "/takedowns/" in name]


def test_counts_that_do_not_add_up_are_refused(grown: GrownCorpus) -> None:
    segment = next((grown.folder / "root/tokens/segments").iterdir())
    listing = grown.folder / "root/tokens/manifest.json"
    old, data = segment.read_bytes(), segment.read_bytes()
    entries = json.loads(data)
    entries[0]["statistics"]["tokens"] += 5
    data = json.dumps(entries).encode()
    segment.write_bytes(data)
    text = listing.read_text().replace(
        hashlib.sha256(old).hexdigest(), hashlib.sha256(data).hexdigest()
    )
    listing.write_text(text.replace(f'"size":{len(old)}', f'"size":{len(data)}'))
    with pytest.raises(ChecksFailedError, match=r"accounting: \w+: .* tokens were tokenized"):
        grown.publish()


def test_a_flipped_byte_of_dataset_json_is_named(grown: GrownCorpus) -> None:
    grown.publish()
    path = grown.dataset / "dataset.json"
    path.write_bytes(path.read_bytes().replace(b'"generation":1', b'"generation":2'))
    with pytest.raises(IntegrityError, match=r"dataset\.json: body_sha256"):
        grown.publish()


def test_another_publication_in_between_is_taken_in(grown: GrownCorpus) -> None:
    original = LocalStorage.replace
    others: list[Any] = []

    def overtaken(storage: LocalStorage, name: str, data: bytes, *, expected: str | None) -> bool:
        if name == "dataset/dataset.json" and not others:
            others.append(None)
            others[0] = grown.publish(ordering=OTHER)
        return original(storage, name, data, expected=expected)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStorage, "replace", overtaken)
        report = grown.publish()
    published = read_published(grown.root)
    assert published is not None
    assert published.file.plan == report.plan_id
    assert published.file.plans == (others[0].plan_id, report.plan_id)


def test_many_publications_at_once_all_succeed_and_one_changes_something(
    grown: GrownCorpus,
) -> None:
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda _: grown.publish(), range(4)))
    assert len({report.digest for report in reports}) == 1
    assert [report.is_changed for report in reports].count(True) == 1
    assert list(verify_dataset(grown.dataset)) == []


def test_a_generation_that_is_being_cut_is_left_out(grown: GrownCorpus) -> None:
    first = grown.publish()
    add_stories(grown, "d.jsonl.gz", range(200, 230))
    grown.cut()
    records = sorted((grown.dataset / "index").iterdir())
    assert len(records) > first.snapshot.seq + 1
    records[-1].unlink()
    report = grown.publish()
    assert (report.generation, report.snapshot) == (1, first.snapshot)
    assert report.waiting == ("generation 2 waits for token_shards",)
    assert not report.is_changed
    materialize_shards(grown.root, grown.settings, read_log(grown.root))
    assert grown.publish().generation == 2


def test_a_root_that_lost_a_published_generation_is_refused(grown: GrownCorpus) -> None:
    grown.publish()
    add_stories(grown, "d.jsonl.gz", range(200, 230))
    grown.cut()
    grown.publish()
    max((grown.dataset / "index").iterdir()).unlink()
    with pytest.raises(IntegrityError, match="generation 2 is published, but only 1 is complete"):
        grown.publish()


def test_a_new_source_is_pinned_when_it_is_published(grown: GrownCorpus) -> None:
    grown.publish()
    published = read_published(grown.root)
    assert published is not None
    assert published.file.pins["sources[books].profile"] == "none"
    assert published.file.pins["sharding.max_tokens"] == 1500
    stories = dataclasses.replace(grown.settings.sources[0], licence="MIT")
    again = grown.publish(sources=(stories, grown.settings.sources[1]))
    assert not again.is_changed
    assert (
        open_plan(grown.root, again.plan_id).record
        == open_plan(grown.root, published.file.plan).record
    )
