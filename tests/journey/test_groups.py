"""Strata and held-out documents from landed files to the two loaders."""

import dataclasses
import os

import numpy as np
import pytest

from assets.catalog.explain import Explainer
from assets.catalog.query import ask
from assets.manifest import Manifest
from assets.settings.sources import HoldoutSettings
from assets.sharding.index import ShardIndex
from assets.upkeep.gc import gc
from assets.upkeep.verify import verify
from olmo_loader import build_eval_dataloader, build_train_dataloader
from tests.journey.corpus import content_of, make_corpus, make_settings, run_journey
from tests.journey.test_laws import grow


@pytest.fixture(autouse=True)
def _fast_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


def grouped(folder, root):
    settings = make_settings(folder, root)
    stories, books = settings.sources
    stories = dataclasses.replace(
        stories,
        strata="CASE WHEN landed_path LIKE 'a%' THEN 'old' ELSE 'new' END",
        holdout=HoldoutSettings(fraction=0.3, seed=3),
    )
    return dataclasses.replace(settings, sources=(stories, books))


def read_documents(loader):
    """Return the ids of the documents that begin in what a loader reads."""
    reader, found = loader.dataset.reader, set()
    files, starts = reader.locate(np.arange(len(loader.dataset)))
    for file, start in zip(files.tolist(), starts.tolist(), strict=True):
        first, bounds = reader.documents_at(file, start)
        records = reader.document_records(file, first, first + len(bounds) - 1)
        found |= {record["doc_id"].tobytes() for record in records}
    return found


def test_held_out_documents_are_evaluated_on_and_never_trained_on(tmp_path):
    folder = tmp_path / "corpus"
    make_corpus(folder)
    settings = grouped(folder, tmp_path / "root")
    root = run_journey(settings)
    groups = {(item["source"], item["stratum"], item["split"]) for item in ShardIndex(root).records}
    assert groups == {
        ("books", None, "train"),
        *(("stories", name, split) for name in ("old", "new") for split in ("train", "validation")),
    }
    dataset = f"{root.url}/dataset"
    trained = read_documents(build_train_dataloader(dataset, global_batch_size=2, num_threads=0))
    evaluated = read_documents(build_eval_dataloader(dataset, batch_size=2, num_threads=0))
    assert evaluated
    assert trained.isdisjoint(evaluated)
    by_split: dict[str, set[bytes]] = {"train": set(), "validation": set()}
    for entry in Manifest.load(root, "tokens").entries():
        if entry.source == "stories":
            table = root.read_table(entry.objects["data"], ["doc_id", "split"])
            for doc_id, split in zip(*(column.to_pylist() for column in table), strict=True):
                by_split[split].add(doc_id)
    assert evaluated <= by_split["validation"]
    assert by_split["validation"].isdisjoint(trained)
    assert verify(root, settings) == []
    answer = ask(root, settings, "SELECT count(*) FROM shards WHERE split = 'validation'")
    assert answer.rows == [(2,)]
    held = min(by_split["validation"])
    span = Explainer(root, settings).find_span(held)
    assert span is not None
    (record,) = [item for item in ShardIndex(root).records if item["shard"] == span.shard]
    assert record["split"] == "validation"


def test_growing_equals_replaying_the_log_with_groups(tmp_path):
    folder = tmp_path / "corpus"
    make_corpus(folder)
    settings = grouped(folder, tmp_path / "grown")
    run_journey(settings)
    grow(folder)
    grown = run_journey(settings)
    again = content_of(run_journey(settings))
    assert content_of(grown) == again
    assert verify(grown, settings) == []


def test_the_layout_of_shards_changes_no_batch_and_is_proved(tmp_path):
    folder = tmp_path / "corpus"
    make_corpus(folder)
    plans, found = [], []
    for layout in ("raw", "tok"):
        settings = grouped(folder, tmp_path / layout)
        sharding = dataclasses.replace(settings.sharding, layout=layout)
        settings = dataclasses.replace(settings, sharding=sharding)
        root = run_journey(settings)
        assert verify(root, settings) == []
        assert gc(root, older_than_s=0).garbage == () or all(
            ".task.json" in item.name for item in gc(root, older_than_s=0).garbage
        )
        loader = build_train_dataloader(f"{root.url}/dataset", global_batch_size=2, num_threads=0)
        plans.append(loader.state_dict()["plan"])
        found.append([batch["input_ids"].numpy() for batch in loader])
        assert content_of(run_journey(settings)) == content_of(root)
    assert plans[0] == plans[1]
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))
