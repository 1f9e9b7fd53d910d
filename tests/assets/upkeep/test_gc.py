from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from assets.errors import ConfigurationError, IntegrityError
from assets.manifest import Manifest, commit
from assets.ordering.published import read_published
from assets.root import Root
from assets.settings.ordering import OrderingSettings
from assets.upkeep import gc as module
from assets.upkeep.gc import gc
from assets.upkeep.references import PART_STAGES
from olmo_loader.verify import verify_dataset
from tests.assets.ordering.grown_corpus import GrownCorpus
from tests.journey.corpus import content_of, story, write_jsonl

OTHER = OrderingSettings(sequence_length=64, seed=8)


def files_of(grown: GrownCorpus) -> dict[str, bytes]:
    folder = grown.folder / "root"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def plant(grown: GrownCorpus, name: str, *, age_s: float = 0.0) -> str:
    path = grown.folder / "root" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"left behind")
    os.utime(path, (time.time() - age_s,) * 2)
    return name


def test_listing_changes_nothing_and_deleting_leaves_what_is_named(grown: GrownCorpus) -> None:
    before, content = files_of(grown), content_of(grown.root)
    listed = gc(grown.root, older_than_s=0)
    assert files_of(grown) == before
    assert {item.name.rpartition(".")[2] for item in listed.garbage} == {"json"}
    assert all(item.name.endswith(".task.json") for item in listed.garbage)
    deleted = gc(grown.root, older_than_s=0, dry_run=False)
    assert deleted.garbage == listed.garbage
    assert deleted.num_bytes == sum(item.size for item in deleted.garbage)
    gone = before.keys() - files_of(grown).keys()
    assert gone == {item.name for item in deleted.garbage}
    kept = {name: value for name, value in content.items() if not name.endswith(".task.json")}
    assert content_of(grown.root) == kept
    assert list(verify_dataset(grown.dataset)) == []
    assert gc(grown.root, older_than_s=0).garbage == ()


ORPHANS = [
    *(f"{stage}/wiki/00000001-aa-000-bb.parquet" for stage in PART_STAGES),
    *(f"ledger/{stage}/wiki/00000001-aa-000-bb.parquet" for stage in PART_STAGES),
    "clean/segments/0123456789abcdef.json",
    "clean/wiki/00000001-aa-bb.task.json",
    "dedup/00000009-aa/run.json",
    "shards/wiki/00000-aa.task.json",
    "dataset/shards/wiki/00000-aa.npy",
    "dataset/shards/wiki/00000-aa.meta.json",
    "dataset/shards/stories/00099-aa.crc",
    "dataset/plans/0123456789abcdef/plan.json",
    "dataset/plans/0123456789abcdef/global_indices.npy",
    "dataset/tokenizer/abab/tokenizer.json",
    ".staging/deadbeef/object",
    ".staging/deadbeef.tmp",
]
NEVER = [
    "landings/00000099.json.bak",
    "models/ngram/abab/model.bin",
    "verdicts/x.json",
    "statistics/clean/x.json",
    "audit/rank0.tsv",
    "notes.txt",
    "shards/wiki/notes.txt",
    "dataset/README",
]


def test_listing_a_root_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    report = gc(Root(str(tmp_path / "missing")))
    assert report.garbage == ()
    assert not (tmp_path / "missing").exists()


def test_orphans_of_every_kind_go_and_nothing_else(grown: GrownCorpus) -> None:
    gc(grown.root, older_than_s=0, dry_run=False)
    before = files_of(grown)
    for name in (*ORPHANS, *NEVER):
        plant(grown, name)
    report = gc(grown.root, older_than_s=0, dry_run=False)
    named = {item.name for item in report.garbage}
    assert named == {*ORPHANS, ".staging/deadbeef"} - {".staging/deadbeef/object"}
    assert all(item.size == len(b"left behind") and item.reason for item in report.garbage)
    assert files_of(grown) == before | dict.fromkeys(NEVER, b"left behind")


def test_what_is_young_is_left_alone_and_listed_apart(grown: GrownCorpus) -> None:
    gc(grown.root, older_than_s=0, dry_run=False)
    old = plant(grown, "clean/wiki/old-000-aa.parquet", age_s=90_000)
    young = plant(grown, "clean/wiki/young-000-aa.parquet", age_s=80_000)
    report = gc(grown.root, dry_run=False)
    assert [item.name for item in report.garbage] == [old]
    assert [item.name for item in report.too_young] == [young]
    assert young in files_of(grown)


def test_superseded_parts_go_and_the_rest_still_grows(grown: GrownCorpus) -> None:
    write_jsonl(grown.corpus / "stories/d.jsonl.gz", [story(seed) for seed in range(200, 230)])
    grown.cut()
    grown.publish()
    report = gc(grown.root, older_than_s=0, dry_run=False)
    assert [item for item in report.garbage if "/segments/" in item.name]
    assert not [item for item in report.garbage if item.name.endswith((".parquet", ".npy"))]
    assert list(verify_dataset(grown.dataset)) == []
    before = content_of(grown.root)
    grown.cut()
    assert not grown.publish().is_changed
    assert content_of(grown.root) == before


def test_a_plan_that_was_never_published_goes(grown: GrownCorpus) -> None:
    published = grown.dataset / "dataset.json"
    kept = published.read_bytes()
    other = grown.publish(ordering=OTHER)
    published.write_bytes(kept)
    report = gc(grown.root, older_than_s=0, dry_run=False)
    plans = [item.name for item in report.garbage if "/plans/" in item.name]
    assert {name.split("/")[2] for name in plans} == {other.plan_id}
    assert len(plans) == 4
    assert grown.publish(ordering=OTHER).is_new_plan


def test_an_old_plan_is_given_up_and_the_current_one_is_not(grown: GrownCorpus) -> None:
    first = read_published(grown.root)
    assert first is not None
    other = grown.publish(ordering=OTHER)
    with pytest.raises(ConfigurationError, match="is the current plan"):
        gc(grown.root, dry_run=False, plan=other.plan_id)
    with pytest.raises(ConfigurationError, match=f"no plan 77.*{first.file.plan}, {other.plan_id}"):
        gc(grown.root, dry_run=False, plan="77")
    listed = gc(grown.root, plan=first.file.plan)
    assert len(listed.garbage) == 4
    assert read_published(grown.root) != first
    gc(grown.root, dry_run=False, plan=first.file.plan)
    left = read_published(grown.root)
    assert left is not None
    assert left.file.plans == (other.plan_id,)
    assert not (grown.dataset / f"plans/{first.file.plan}/plan.json").exists()
    assert list(verify_dataset(grown.dataset)) == []
    again = grown.publish()
    assert (again.plan_id, again.is_new_plan) == (first.file.plan, True)


@pytest.mark.parametrize(
    "name", ["clean/manifest.json", "dataset/dataset.json", "dataset/index/00000001.json"]
)
def test_nothing_is_deleted_while_a_list_is_damaged(grown: GrownCorpus, name: str) -> None:
    path = grown.folder / "root" / name
    path.write_bytes(path.read_bytes()[:-20])
    before = files_of(grown)
    with pytest.raises(IntegrityError, match=Path(name).name.replace(".", r"\.")):
        gc(grown.root, older_than_s=0, dry_run=False)
    assert files_of(grown) == before


def test_what_is_committed_between_listing_and_deleting_stays(
    grown: GrownCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run takes up finished work at the very moment: references are read again."""
    whole = grown.folder.parent / "whole"
    shutil.copytree(grown.folder / "root", whole)
    entries = Manifest.load(grown.root, "clean").entries()
    shutil.rmtree(grown.folder / "root/clean/segments")
    (grown.folder / "root/clean/manifest.json").unlink()
    original = module._remove
    taken_up: list[str] = []

    def remove(root: object, name: str) -> None:
        if not taken_up:
            taken_up.append(name)
            commit(grown.root, "clean", entries)
        original(root, name)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_remove", remove)
    report = gc(grown.root, older_than_s=0, dry_run=False)
    assert [item for item in report.garbage if item.name.endswith(".parquet")]
    for entry in entries:
        assert all(grown.root.is_intact(item) for item in entry.objects.values())
