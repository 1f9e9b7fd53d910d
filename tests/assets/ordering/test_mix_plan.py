"""OLMo's mixes become plans: the same instances at every position as OLMo's own formula gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assets.errors import ConfigurationError
from assets.ordering.mix_plan import publish_mix
from assets.ordering.olmo_mix import read_mix
from assets.ordering.provenance import read_provenance
from assets.ordering.published import open_plan, read_published
from assets.upkeep.verify import verify
from olmo_loader.published import open_published
from olmo_loader.verify import verify_dataset
from tests.assets.ordering.grown_corpus import GrownCorpus

SEED, LENGTH = 42069, 32


@pytest.mark.parametrize("kind", ["yaml", "txt", "list"])
def test_a_mix_becomes_a_plan(grown: GrownCorpus, tmp_path: Path, kind: str) -> None:
    grown.publish()
    published = read_published(grown.root)
    assert published is not None
    shards = [record["shard"] for record in open_plan(grown.root, published.file.plan).shards]
    listed = [shards[1], shards[0], shards[1], shards[-1]]
    if kind == "yaml":
        path = tmp_path / "mix.yaml"
        lines = "\n".join(f"    - http://host/bucket/{name}" for name in listed)
        path.write_text(
            f"model:\n  max_sequence_length: {LENGTH}\ndata:\n  seed: {SEED}\n  paths:\n{lines}\n"
        )
    else:
        path = tmp_path / "mix.txt"
        prefix = "web," if kind == "txt" else ""
        path.write_text("".join(f"{prefix}some/bucket/{name}\n" for name in listed))
    mix = read_mix(path)
    built = publish_mix(grown.root, grown.settings, mix)
    plan = built.plan
    length, seed = (LENGTH, SEED) if kind == "yaml" else (64, 7)
    assert (plan.sequence_length, plan.seed) == (length, seed)
    ids = [np.fromfile(grown.dataset / name, "<u2") for name in listed]
    rows = np.concatenate([one[: len(one) // length * length].reshape(-1, length) for one in ids])
    order = np.arange(len(rows), dtype=np.uint32)
    np.random.Generator(np.random.PCG64(seed)).shuffle(order)
    np.testing.assert_array_equal(plan.open_order(), order)
    reader = open_published(grown.dataset, plan.plan_id).reader
    np.testing.assert_array_equal(reader.read(order.astype(np.int64)).raw, rows[order])
    table = read_provenance((plan.folder / "provenance.csv").read_bytes(), "p")
    used = table[table["instances"] > 0]
    assert used[used["shard"] == shards[1]]["repeat"].tolist() == [1, 2]
    after = read_published(grown.root)
    assert after is not None
    assert (after.file.plan, after.file.plans[-1]) == (published.file.plan, plan.plan_id)
    assert not publish_mix(grown.root, grown.settings, mix).is_new
    assert not list(verify(grown.root, grown.settings))
    assert not list(verify_dataset(grown.dataset))


def test_files_that_are_no_shards_are_refused(grown: GrownCorpus, tmp_path: Path) -> None:
    path = tmp_path / "mix.txt"
    path.write_text("some/bucket/shards/web/00000-ff.npy\n")
    with pytest.raises(ConfigurationError, match="no data set has been published"):
        publish_mix(grown.root, grown.settings, read_mix(path))
    grown.publish()
    with pytest.raises(ConfigurationError, match=r"1 of 1 files are no training shards .* list"):
        publish_mix(grown.root, grown.settings, read_mix(path))
