"""The stage `shards`: what is in them, and what is pending."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.errors import PinnedRootError, StageError
from assets.manifest import Manifest
from assets.settings.sources import HoldoutSettings
from assets.settings.tokens import ShardingSettings, TokenizerSettings
from assets.sharding.groups import complete_groups
from assets.sharding.index import ShardIndex
from assets.sharding.shards import materialize_shards
from assets.sharding.spans import find_spans, pending_documents
from olmo_loader.shard_format import read_header
from tests.assets.sharding.cut_root import (
    check_contents,
    dataset_files,
    materialize,
    shard_lengths,
    text,
    tokenize,
    tokens_path,
)
from tests.assets.tokenizing.kept_root import KeptRoot, Landed


def test_shards_are_cut_at_document_boundaries_and_hold_all_of_the_first_generation(kept):
    report = materialize(kept)
    assert shard_lengths(kept) == {"s": [[6], [5, 5], [12], [2]], "t": [[3]]}
    assert (report.shards, report.tokens, report.generation) == (5, 33, 1)
    assert report.pending == {"s": (0, 0), "t": (0, 0)}
    assert (report.num_done, report.num_skipped) == (5, 0)


def test_ids_and_documents_are_those_of_the_token_parts(kept):
    materialize(kept)
    record = ShardIndex(kept.root).of_group(("s", "", "train"))[1]
    assert np.fromfile(tokens_path(kept, record), "<u2").tolist() == [0, 1, 2, 3, 7] * 2
    header = read_header(tokens_path(kept, record))
    assert (header.source, header.generation, header.split) == ("s", 1, "train")
    assert (header.eos_token_id, header.bos_policy, header.vocab_size) == (7, "none", 8)
    assert record["shard"].startswith("shards/s/00001-")
    assert (record["from"], record["to"]) == (1, 3)


def test_a_small_rest_is_pending_until_more_lands(kept):
    materialize(kept)
    kept.land({("s", "c"): [text(3)], ("t", "y"): [text(4)]})
    second = materialize(kept)
    assert second.pending == {"s": (1, 3), "t": (0, 0)}
    assert (second.num_done, second.num_skipped, second.generation) == (1, 5, 2)
    before = dataset_files(kept)
    kept.land({("s", "d"): [text(8), text(1 + 1)]})
    third = materialize(kept)
    assert shard_lengths(kept)["s"][4:] == [[3], [8, 2]]
    assert third.pending == {"s": (0, 0), "t": (0, 0)}
    after = dataset_files(kept)
    assert {name: after[name] for name in before} == before


def test_an_incomplete_generation_is_not_cut(kept):
    materialize(kept)
    kept.land({("s", "c"): [text(9)]}, unique=False)
    report = materialize(kept)
    assert report.generation == 1
    assert report.waiting == ("generation 2 waits for 1 of 1 tasks of tokens (s)",)
    assert report.shards == 5


def test_seeded_order_shuffles_new_documents_and_keeps_pending_ones_first(tmp_path):
    made = KeptRoot(tmp_path)
    lengths = list(range(2, 42))
    made.land(
        {("s", "a"): [text(n) for n in lengths[:25]], ("s", "b"): [text(n) for n in lengths[25:]]}
    )
    sharding = ShardingSettings(max_tokens=50, min_tokens=20, document_order="seeded", seed=3)
    materialize(made, sharding=sharding)
    found = [n for shard in shard_lengths(made)["s"] for n in shard]
    assert sorted(found) == lengths
    assert found != lengths
    check_contents(made)
    made.land({("s", "c"): [text(9)]})
    report = materialize(made, sharding=sharding)
    assert report.pending == {"s": (1, 9)}
    made.land({("s", "d"): [text(n) for n in (2, 3, 4, 5, 6, 7)]})
    materialize(made, sharding=sharding)
    later = [n for shard in shard_lengths(made)["s"] for n in shard][len(lengths) :]
    assert later[0] == 9
    assert sorted(later[1:]) == [2, 3, 4, 5, 6, 7]
    check_contents(made)


def test_spans_and_pending_cover_every_document_once(kept):
    made = tokenize(kept)
    materialize_shards(kept.root, made, kept.log)
    kept.land({("s", "c"): [text(2), text(1 + 1)], ("t", "y"): [text(3)]})
    # 2 + 2 tokens of s are cut, 3 of t are pending
    made = tokenize(kept)
    materialize_shards(kept.root, made, kept.log)
    parts, spans = check_contents(kept)
    records = ShardIndex(kept.root).records
    pending = pending_documents(kept.root, made.sharding, kept.log, records)
    assert {source: len(ids) for source, ids in pending.items()} == {"t": 1}
    assert set(spans) | set(pending["t"]) == set(parts)
    assert not set(spans) & set(pending["t"])


def test_unknown_documents_have_no_spans(kept):
    materialize(kept)
    records = ShardIndex(kept.root).records
    known = next(iter(check_contents(kept)[0]))
    assert find_spans(kept.root, records, [bytes(16), known[:8] + bytes([255] * 8)]) == {}
    assert find_spans(kept.root, records, []) == {}


def test_other_cutting_of_an_existing_root_is_refused(kept):
    materialize(kept)
    for other in (
        ShardingSettings(max_tokens=11, min_tokens=4),
        ShardingSettings(max_tokens=10, min_tokens=4, document_order="seeded"),
    ):
        with pytest.raises(PinnedRootError, match="sharding of a root cannot change"):
            materialize(kept, sharding=other)


def test_other_documents_than_the_shards_hold_are_refused(kept):
    settings = tokenize(kept)
    materialize_shards(kept.root, settings, kept.log)
    smaller = KeptRoot(kept.folder)
    kept.root.storage.remove("tokens/manifest.json")
    kept.root.storage.remove("clean/manifest.json")
    kept.root.storage.remove("unique/manifest.json")
    smaller.land({("s", "a"): [text(6)], ("t", "x"): [text(3)]})
    with pytest.raises(PinnedRootError, match="was cut from other tokens"):
        materialize(smaller)


def test_another_tokenizer_is_refused(kept):
    materialize(kept)
    wanted = TokenizerSettings(path=kept.settings().tokenizer.path, eos_token="<end>")
    with pytest.raises(PinnedRootError, match="eos_token"):
        materialize_shards(kept.root, kept.settings(tokenizer=wanted), kept.log)


def test_without_a_tokenizer_the_asset_to_materialize_is_named(kept):
    with pytest.raises(StageError, match="materialize the asset `tokenizer`"):
        materialize_shards(kept.root, kept.settings(), kept.log)


LENGTHS = st.lists(
    st.dictionaries(
        st.sampled_from([("s", "a"), ("s", "b"), ("t", "x")]),
        st.lists(st.integers(1, 15), max_size=6),
        min_size=1,
    ),
    min_size=1,
    max_size=3,
)


@hypothesis_settings(max_examples=5, deadline=None)
@given(LENGTHS, st.sampled_from(["landing", "seeded"]), st.integers(0, 9))
def test_every_document_once_whatever_lands(tmp_path_factory, history, order, minimum):
    sharding = ShardingSettings(max_tokens=12, min_tokens=minimum, document_order=order)
    grown = KeptRoot(tmp_path_factory.mktemp("grown"))
    replayed = KeptRoot(tmp_path_factory.mktemp("replayed"))
    reports = []
    for number, files in enumerate(history):
        # A path lands once in a log: every generation has paths of its own.
        named: Landed = {
            (source, f"{path}{number}"): [text(n) if n > 1 else "" for n in lengths]
            for (source, path), lengths in files.items()
        }
        grown.land(named)
        replayed.land(named)
        reports.append(materialize(grown, sharding=sharding))
    report = reports[-1]
    again = materialize(replayed, sharding=sharding)
    assert again.digest == report.digest
    assert again.groups == report.groups
    parts, spans = check_contents(grown)
    records = ShardIndex(grown.root).records
    pending = pending_documents(grown.root, sharding, grown.log, records)
    waiting = [doc_id for ids in pending.values() for doc_id in ids]
    assert sorted([*spans, *waiting]) == sorted(parts)
    assert report.tokens + sum(tokens for _, tokens in report.pending.values()) == sum(
        len(ids) for ids in parts.values()
    )


def test_reports_are_plain_values(kept):
    report = materialize(kept)
    assert dataclasses.asdict(report)["groups"][0]["source"] == "s"


def test_strata_and_splits_have_shards_of_their_own(tmp_path):
    columns: dict[str | None, Any] = {
        text(n): {"language": "en" if n % 2 else "de"} for n in range(2, 40)
    }
    source = {"strata": "language", "holdout": HoldoutSettings(fraction=0.3)}
    for order in ("landing", "seeded"):
        folder = tmp_path / order
        folder.mkdir()
        grown = KeptRoot(folder)
        sharding = ShardingSettings(max_tokens=60, min_tokens=20, document_order=order)
        grown.land({("s", "a"): [text(n) for n in range(2, 30)]}, columns=columns)
        materialize(grown, sharding=sharding, source=source)
        grown.land({("s", "b"): [text(n) for n in range(30, 40)]}, columns=columns)
        report = materialize(grown, sharding=sharding, source=source)
        parts, spans = check_contents(grown)
        records = ShardIndex(grown.root).records
        pending = pending_documents(grown.root, sharding, grown.log, records)
        assert set(spans) | set(pending.get("s", [])) == set(parts)
        assert {(group.stratum, group.split) for group in report.groups} == {
            (stratum, split) for stratum in ("de", "en") for split in ("train", "validation")
        }
        groups, _, _ = complete_groups(grown.root, sharding, grown.log)
        for entry in Manifest.load(grown.root, "tokens").entries():
            table = grown.root.read_table(entry.objects["data"])
            for row, doc in enumerate(table.select(["doc_id", "stratum", "split"]).to_pylist()):
                (found,) = [
                    (group, position)
                    for group in groups
                    if (position := group.position(grown.root, entry, row)) is not None
                ]
                assert (found[0].stratum, found[0].split) == (doc["stratum"], doc["split"])
                ids = found[0].doc_ids(grown.root, found[1], found[1] + 1)
                assert ids == [doc["doc_id"]]
                for shard, _, _ in spans.get(doc["doc_id"], ()):
                    (record,) = [item for item in records if item["shard"] == shard]
                    assert (record["stratum"], record["split"]) == (doc["stratum"], doc["split"])
