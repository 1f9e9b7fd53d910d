"""A training run does not notice that its data set grows, except for what must be masked."""

import dataclasses

import numpy as np
import pytest
import torch

from assets.settings.ordering import InstanceFilterSettings
from olmo_loader import InstanceFilterConfig, build_train_dataloader
from tests.journey.corpus import (
    make_corpus,
    make_settings,
    run_journey,
    story,
    write_jsonl,
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def settings(tmp_path):
    make_corpus(tmp_path / "corpus")
    return make_settings(tmp_path / "corpus", tmp_path / "root")


def open_loader(settings, **options):
    return build_train_dataloader(
        f"{settings.root}/dataset", global_batch_size=2, generate_doc_lengths=True, **options
    )


def equal(left, right):
    return all(torch.equal(left[key], right[key]) for key in ("index", "input_ids", "doc_lens"))


def test_a_resumed_run_stays_on_its_plan(settings, tmp_path):
    run_journey(settings)
    whole = list(open_loader(settings))
    state = [batch.state for batch in open_loader(settings)][2]
    write_jsonl(tmp_path / "corpus/stories/new.jsonl.gz", [story(seed) for seed in range(60, 70)])
    run_journey(settings)
    fresh = list(open_loader(settings))
    assert len(fresh) > len(whole)
    resumed = open_loader(settings)
    resumed.load_state_dict(state)
    rest = list(resumed)
    assert len(rest) == len(whole) - 3
    assert all(equal(left, right) for left, right in zip(rest, whole[3:], strict=True))


def test_a_withdrawn_document_is_masked_in_the_old_plan_and_the_new(settings, tmp_path):
    run_journey(settings)
    before = {int(i): batch for batch in open_loader(settings) for i in batch["index"]}
    old_plan = open_loader(settings).state_dict()
    kept = [story(seed) for seed in range(12) if seed != 5]
    write_jsonl(tmp_path / "corpus/stories/a.jsonl.gz", kept)
    run_journey(settings)
    resumed = open_loader(settings)
    resumed.load_state_dict(old_plan)
    masked = 0
    for batch in resumed:
        for row, index in enumerate(batch["index"].tolist()):
            old = before[index]
            at = old["index"].tolist().index(index)
            hidden = ~batch["label_mask"][row].numpy()
            masked += int(hidden.sum())
            same = batch["input_ids"][row].numpy() == old["input_ids"][at].numpy()
            assert np.all(same | hidden)
            assert batch["doc_lens"][row].tolist() == old["doc_lens"][at].tolist()
    assert masked > 100


def test_the_configured_filter_reaches_the_batches(settings, tmp_path):
    (tmp_path / "corpus/books/chant.txt").write_text("la " * 900, encoding="utf-8")
    rule = InstanceFilterSettings(repetition_max_count=20)
    ordering = dataclasses.replace(settings.ordering, instance_filter=rule)
    run_journey(dataclasses.replace(settings, ordering=ordering))
    config = InstanceFilterConfig(repetition_max_count=20)
    loader = open_loader(settings, instance_filter_config=config)
    assert not loader.dataset.filters_live
    found: dict[int, bool] = {}
    for batch in loader:
        found |= dict(zip(batch["index"].tolist(), batch["instance_mask"].tolist(), strict=True))
    loader.dataset.reader.filter_bits = None
    computed = {index: loader.dataset[index]["instance_mask"] for index in found}
    assert loader.dataset.filters_live
    assert found == computed
    assert 0 < sum(found.values()) < len(found)
    masked = next(iter(index for index, keep in found.items() if not keep))
    ids = loader.dataset[masked]["input_ids"]
    assert len(np.unique(ids.numpy())) < 10
