"""Which parts may be tokenized: complete generations, the same parts in both stages."""

from __future__ import annotations

import dataclasses

import pytest

from assets.errors import IntegrityError
from assets.manifest import Manifest, commit
from assets.tokenizing.kept_parts import kept_tasks
from tests.assets.tokenizing.kept_root import KeptRoot


def test_tasks_come_in_generation_and_source_order(tmp_path):
    kept = KeptRoot(tmp_path)
    kept.land({("t", "x"): ["a"], ("s", "z"): ["a"]})
    kept.land({("s", "a"): ["b"]})
    tasks, waiting = kept_tasks(kept.root, kept.log)
    assert [(task.generation, task.source) for task in tasks] == [(1, "s"), (1, "t"), (2, "s")]
    assert waiting == ()


def test_nothing_landed_gives_nothing(tmp_path):
    kept = KeptRoot(tmp_path)
    assert kept_tasks(kept.root, kept.log) == ([], ())


def test_every_stage_that_is_missing_is_named(tmp_path):
    kept = KeptRoot(tmp_path)
    kept.land({("s", "a"): ["a"], ("t", "b"): ["a"]})
    kept.root.storage.remove("clean/manifest.json")
    kept.root.storage.remove("unique/manifest.json")
    assert kept_tasks(kept.root, kept.log)[1] == (
        "generation 1 waits for 2 of 2 tasks of clean (s, t); 2 of 2 tasks of unique (s, t)",
    )


def test_stages_that_hold_other_parts_are_refused(tmp_path):
    kept = KeptRoot(tmp_path)
    kept.land({("s", "a"): ["a"]})
    (entry,) = Manifest.load(kept.root, "unique").entries()
    other = dataclasses.replace(entry, part=f"{entry.task}-001", fingerprint="e" * 64)
    commit(kept.root, "unique", [other])
    with pytest.raises(IntegrityError, match=r"clean has the parts .*-000.*unique .*-001"):
        kept_tasks(kept.root, kept.log)
