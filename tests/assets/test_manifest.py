"""Commits are all or nothing, survive competition, and do not tell who came first."""

import itertools
import threading

import pytest

from assets import manifest as manifests
from assets.errors import IntegrityError
from assets.manifest import FileSpan, Manifest, PartEntry, commit
from assets.root import Root


def entry(task, fingerprint="f1", part=0, source="wiki", generation=1):
    return PartEntry(
        stage="clean",
        source=source,
        generation=generation,
        task=task,
        part=f"{task}-{part:03d}",
        fingerprint=fingerprint,
        objects={},
        rows=1,
        files=(
            FileSpan(file_id="00" * 8, landed_path=task, first_ordinal=part, records=1, rows=1),
        ),
        statistics={"in": 1},
    )


def parts(root):
    return [(item.part, item.fingerprint) for item in Manifest.load(root, "clean").entries()]


def test_commit_twice_changes_nothing(tmp_path):
    root = Root(str(tmp_path))
    commit(root, "clean", [entry("a")])
    before = root.storage.read("clean/manifest.json")
    commit(root, "clean", [entry("a")])
    assert root.storage.read("clean/manifest.json") == before


def test_a_new_fingerprint_supersedes_every_part_of_its_task(tmp_path):
    root = Root(str(tmp_path))
    commit(root, "clean", [entry("a"), entry("a", part=1), entry("b")])
    commit(root, "clean", [entry("a", "f2")])
    assert parts(root) == [("a-000", "f2"), ("b-000", "f1")]
    manifest = Manifest.load(root, "clean")
    assert manifest.is_committed("wiki", "a", "f2")
    assert not manifest.is_committed("wiki", "a", "f1")


def test_superseding_reaches_into_frozen_segments(tmp_path, monkeypatch):
    monkeypatch.setattr(manifests, "SEGMENT_ENTRIES", 2)
    root = Root(str(tmp_path))
    for name in "abc":
        commit(root, "clean", [entry(name)])
    commit(root, "clean", [entry("a", "f2")])
    assert parts(root) == [("a-000", "f2"), ("b-000", "f1"), ("c-000", "f1")]


def test_bytes_do_not_depend_on_the_order_of_commits(tmp_path):
    seen = set()
    for number, order in enumerate(itertools.permutations("abc")):
        root = Root(str(tmp_path / str(number)))
        for name in order:
            commit(root, "clean", [entry(name)])
        seen.add((root.storage.read("clean/manifest.json"), Manifest.load(root, "clean").digest))
    assert len(seen) == 1


def test_competing_writers_both_commit(tmp_path):
    root = Root(str(tmp_path))

    def work(prefix):
        for number in range(10):
            commit(root, "clean", [entry(f"{prefix}{number}")])

    threads = [threading.Thread(target=work, args=(prefix,)) for prefix in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(parts(root)) == 30


def test_a_damaged_segment_is_named(tmp_path):
    root = Root(str(tmp_path))
    commit(root, "clean", [entry("a")])
    segment = next((tmp_path / "clean" / "segments").iterdir())
    segment.write_bytes(segment.read_bytes().replace(b"wiki", b"wikx"))
    with pytest.raises(IntegrityError, match=segment.name):
        Manifest.load(root, "clean")
