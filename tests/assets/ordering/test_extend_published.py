"""Extensions of published data sets: checked, made current, kept current, verified, trained on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assets.errors import ConfigurationError, IntegrityError
from assets.ordering.extend_published import extend_published
from assets.ordering.mix_plan import publish_mix
from assets.ordering.olmo_mix import read_mix
from assets.ordering.published import open_plan, read_published
from assets.settings.ordering import MixtureSettings
from assets.sharding.index import ShardIndex
from assets.upkeep.verify import verify
from olmo_loader.plan import Plan
from olmo_loader.verify import verify_dataset
from tests.assets.ordering.grown_corpus import GrownCorpus
from tests.journey.corpus import story, write_jsonl


def current(grown: GrownCorpus) -> Plan:
    published = read_published(grown.root)
    assert published is not None
    return open_plan(grown.root, published.file.plan)


def grow(grown: GrownCorpus) -> None:
    """Land more stories, cut them into shards, and publish a fresh plan of everything."""
    texts = [story(seed) for seed in range(200, 216)]
    write_jsonl(grown.corpus / "stories/later.jsonl.gz", texts)
    grown.cut()
    grown.publish()


def test_a_run_goes_over_to_what_landed_since(grown: GrownCorpus) -> None:
    loader = pytest.importorskip("olmo_loader.loader")
    grown.publish()
    parent = current(grown)
    running = iter(loader.build_train_dataloader(grown.dataset, global_batch_size=2))
    state = [next(running).state for _ in range(3)][-1]
    grow(grown)
    fresh = current(grown)
    assert fresh.plan_id != parent.plan_id
    report = extend_published(
        grown.root, grown.settings, consumed=state["instances"], plan=parent.plan_id
    )
    child = current(grown)
    assert (report.is_new, report.plan.plan_id) == (True, child.plan_id)
    assert (child.record["parent"], child.record["prefix"]) == (parent.plan_id, 6)
    np.testing.assert_array_equal(child.open_order()[:6], parent.open_order()[:6])
    assert sorted(child.open_order().tolist()) == list(range(child.num_instances))
    assert len(child.shards) == len(fresh.shards) > len(parent.shards)
    train = loader.build_train_dataloader(
        grown.dataset, global_batch_size=2, plan=child.plan_id, state=state
    )
    seen = [index for batch in train for index in batch["index"].tolist()]
    assert seen == child.open_order()[6:][: len(seen)].tolist()
    assert len(seen) >= child.num_positions - 7
    # An equal snapshot and equal settings keep the extension; nothing is made again.
    assert not grown.publish().is_changed
    again = extend_published(grown.root, grown.settings, consumed=6, plan=parent.plan_id)
    assert (again.is_new, again.plan.plan_id) == (False, child.plan_id)
    assert not list(verify(grown.root, grown.settings, full=True))
    assert not list(verify_dataset(grown.dataset))


def test_a_shard_retired_since_is_read_no_more(grown: GrownCorpus) -> None:
    grown.publish()
    parent = current(grown)
    retired = parent.shards[0]["shard"]
    ShardIndex(grown.root).set_weight(retired, 0.0, "withdrawn by its owner")
    with pytest.raises(ConfigurationError, match="no plan 'ffff'"):
        extend_published(grown.root, grown.settings, consumed=3, plan="ffff")
    before = extend_published(grown.root, grown.settings, consumed=3)
    assert "retired" not in before.plan.record, "the published snapshot does not know of it yet"
    grown.publish()
    assert retired not in [record["shard"] for record in current(grown).shards]
    for options in (
        {},
        {"sequence_length": 48},
        {"mixture": MixtureSettings(exhausted="renormalise")},
    ):
        child = extend_published(
            grown.root, grown.settings, consumed=3, plan=parent.plan_id, **options
        ).plan
        assert child.record["retired"] == [retired]
        assert not list(verify_dataset(grown.dataset))
    assert not list(verify(grown.root, grown.settings, full=True))


def test_nothing_is_extended_or_mixed_over_a_missing_shard(
    grown: GrownCorpus, tmp_path: Path
) -> None:
    grown.publish()
    parent = current(grown)
    shard = parent.shards[0]["shard"]
    mix = tmp_path / "mix.txt"
    mix.write_text(f"{parent.shards[1]['shard']}\n")
    (grown.dataset / shard).unlink()
    for make in (
        lambda: extend_published(grown.root, grown.settings, consumed=3),
        lambda: publish_mix(grown.root, grown.settings, read_mix(mix)),
    ):
        with pytest.raises(IntegrityError, match=f"{shard}: missing"):
            make()
    published = read_published(grown.root)
    assert published is not None
    assert published.file.plans == (parent.plan_id,)


def test_what_was_not_read_is_refused_with_the_number_that_can_be(grown: GrownCorpus) -> None:
    grown.publish(ordering=grown.settings.ordering.__class__(sequence_length=64, order="mixture"))
    parent = current(grown)
    with pytest.raises(ConfigurationError, match=f"give at most {parent.num_positions}"):
        extend_published(grown.root, grown.settings, consumed=parent.num_positions + 1)
    assert current(grown).plan_id == parent.plan_id
