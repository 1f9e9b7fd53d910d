"""Records of the shard index: weights, kinds, and that nothing is added twice."""

from __future__ import annotations

import pytest

from assets.errors import ConfigurationError, PinnedRootError
from assets.settings.tokens import ShardingSettings
from assets.sharding import index as index_module
from assets.sharding.groups import complete_groups
from assets.sharding.index import ShardIndex
from assets.sharding.shards import materialize_shards
from olmo_loader.errors import IntegrityError
from tests.assets.sharding.cut_root import (
    materialize,
    text,
    tokenize,
)
from tests.assets.tokenizing.kept_root import KeptRoot


def test_a_weight_is_a_record_of_its_own_and_survives_later_shards(kept):
    first = materialize(kept)
    index = ShardIndex(kept.root)
    shard = index.records[1]["shard"]
    assert index.set_weight(shard, 2.0, "good")
    assert not index.set_weight(shard, 2.0, "again")
    assert index.of_group(("s", "", "train"))[1]["weight"] == 2.0
    kept.land({("s", "c"): [text(7)]})
    second = materialize(kept)
    reread = ShardIndex(kept.root)
    assert [record["seq"] for record in reread.records] == [1, 2, 3, 4, 5, 7]
    assert [record["weight"] for record in reread.records] == [1, 2, 1, 1, 1, 1]
    assert reread.log.shards(5) == reread.log.records[:5]
    assert second.digest != first.digest


def test_a_change_that_cannot_be_says_why(kept):
    materialize(kept)
    index = ShardIndex(kept.root)
    shard = index.records[0]["shard"]
    with pytest.raises(ConfigurationError, match=f"no shard {shard}x in .* nearest is {shard}"):
        index.set_weight(f"{shard}x", 2.0, "r")
    with pytest.raises(ConfigurationError, match="a number from 0 on, not -1"):
        index.set_weight(shard, -1.0, "r")
    index.set_weight(shard, 0.0, "bad pages")
    with pytest.raises(ConfigurationError, match="is retired, for good"):
        index.set_weight(shard, 1.0, "r")


def test_two_changes_at_once_both_count(kept):
    materialize(kept)
    one, other = ShardIndex(kept.root), ShardIndex(kept.root)
    one.set_weight(one.records[0]["shard"], 2.0, "r")
    other.set_weight(other.records[1]["shard"], 3.0, "r")
    assert [record["weight"] for record in ShardIndex(kept.root).records[:2]] == [2.0, 3.0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tokenizer_sha256", "0" * 64),
        ("dtype", "uint32"),
        ("vocab_size", 9),
        ("eos_token_id", 6),
        ("bos_policy", "document:6"),
    ],
)
def test_ids_of_another_kind_are_not_added(kept, field, value):
    materialize(kept)
    index = ShardIndex(kept.root)
    header = {**index.records[0], field: value}
    group = complete_groups(kept.root, ShardingSettings(), kept.log)[0][0]
    held = index.records[0][field]
    expected = rf"{field} {value} \(index: {held}\); make another data set"
    with pytest.raises(IntegrityError, match=expected):
        index.append(group, header, "shards/s/9.npy", (5, 6))


def test_appending_a_shard_reads_no_other_record(kept, monkeypatch):
    materialize(kept)
    index = ShardIndex(kept.root)
    reads = []
    monkeypatch.setattr(index_module, "read_log", lambda _: reads.append(1))
    header = {**index.records[-1]}
    group = complete_groups(kept.root, ShardingSettings(), kept.log)[0][1]
    assert index.append(group, header, "shards/t/9.npy", (1, 1))
    assert reads == []
    assert index.snapshot is not None
    assert index.snapshot.seq == 6


def test_a_run_that_cut_differently_is_refused(kept):
    settings = tokenize(kept)
    first = ShardIndex(kept.root)
    materialize_shards(kept.root, settings, kept.log)
    record = dict(ShardIndex(kept.root).records[0])
    group = complete_groups(kept.root, settings.sharding, kept.log)[0][0]
    header = {**record, "sha256": "0" * 64}
    with pytest.raises(PinnedRootError, match="another run cut the same documents"):
        first.append(group, header, record["shard"], (0, 1))
    with pytest.raises(PinnedRootError, match="no shard"):
        ShardIndex(KeptRoot(kept.folder / "empty").root).append(group, header, "x", (3, 4))
