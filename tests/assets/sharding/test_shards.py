"""The stage `shards`: what is in them, what is pending, and that nothing is added twice."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.errors import ConfigurationError, PinnedRootError, StageError
from assets.manifest import Manifest
from assets.settings.sources import HoldoutSettings
from assets.settings.tokens import ShardingSettings, TokenizerSettings
from assets.sharding import index as index_module, shards as stage
from assets.sharding.groups import complete_groups
from assets.sharding.index import ShardIndex
from assets.sharding.shards import ShardReport, materialize_shards
from assets.sharding.spans import find_spans, pending_documents
from assets.storage.local import LocalStorage
from assets.tokenizing.token_parts import read_doc_ids
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer
from olmo_loader.errors import IntegrityError
from olmo_loader.shard_format import open_docs, read_header
from tests.assets.tokenizing.kept_root import KeptRoot, Landed, part_ids

WORDS = "abcdefg"


def text(num_tokens: int) -> str:
    """Return a text that has `num_tokens` tokens, its EOS among them."""
    return " ".join(WORDS[number % 7] for number in range(num_tokens - 1))


def tokenize(kept, **settings):
    made = kept.settings(**settings)
    materialize_tokenizer(kept.root, made, kept.log)
    materialize_tokens(kept.root, made, kept.log)
    return made


def materialize(kept, **settings):
    return materialize_shards(kept.root, tokenize(kept, **settings), kept.log)


def shard_lengths(kept) -> dict[str, list[list[int]]]:
    """Return, for each source, the document lengths of its shards in survivor order."""
    found: dict[str, list[list[int]]] = {}
    for record in ShardIndex(kept.root).records:
        path = tokens_path(kept, record)
        starts = open_docs(path, record["n_docs"])["start"].astype(int)
        lengths = np.diff([*starts, record["n_tokens"]]).tolist()
        found.setdefault(record["source"], []).append(lengths)
    return found


def tokens_path(kept, record) -> Path:
    return Path(kept.root.url) / "dataset" / str(record["shard"])


def dataset_files(kept) -> dict[str, bytes]:
    """Return the published files but the index, whose numbers depend on the runs."""
    folder = Path(kept.root.url) / "dataset"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent.name != "index"
    }


@pytest.fixture
def kept(tmp_path):
    made = KeptRoot(tmp_path)
    made.land(
        {
            ("s", "a"): [text(6), text(5), None, text(5)],
            ("s", "b"): [text(12), text(2)],
            ("t", "x"): [text(3)],
        }
    )
    return made


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


def test_a_second_run_does_nothing(kept):
    first = materialize(kept)
    second = materialize(kept)
    assert (second.num_done, second.num_skipped, second.num_taken_up) == (0, 5, 0)
    assert (second.digest, second.snapshot) == (first.digest, first.snapshot)


def test_processes_do_not_show(kept, tmp_path):
    materialize(kept, processes=1)
    folder = tmp_path / "again"
    folder.mkdir()
    other = KeptRoot(folder)
    other.land(
        {
            ("s", "a"): [text(6), text(5), None, text(5)],
            ("s", "b"): [text(12), text(2)],
            ("t", "x"): [text(3)],
        }
    )
    report = materialize(other, processes=2)
    assert dataset_files(other) == dataset_files(kept)
    assert report.snapshot == ShardIndex(kept.root).snapshot


def test_a_replay_gives_the_shards_of_the_grown_root(kept, tmp_path):
    history: list[Landed] = [
        {("s", "a"): [text(6), text(5), None, text(5)], ("s", "b"): [text(12), text(2)],
         ("t", "x"): [text(3)]},
        {("s", "c"): [text(3)], ("t", "y"): [text(4)]},
        {("s", "d"): [text(8), text(2)], ("u", "z"): [text(30)]},
    ]  # fmt: skip
    grown = materialize(kept)
    for files in history[1:]:
        kept.land(files)
        grown = materialize(kept)
    folder = tmp_path / "replayed"
    folder.mkdir()
    replayed = KeptRoot(folder)
    for files in history:
        replayed.land(files)
    report = materialize(replayed)
    assert dataset_files(replayed) == dataset_files(kept)
    assert report.digest == grown.digest


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


def check_contents(kept):
    """Every document in a shard has the ids that its token part has."""
    parts: dict[bytes, list[int]] = {}
    for entry in Manifest.load(kept.root, "tokens").entries():
        names = read_doc_ids(kept.root, entry.objects["data"])
        parts |= dict(zip(names, part_ids(kept.root, entry), strict=True))
    records = ShardIndex(kept.root).records
    spans = find_spans(kept.root, records, parts)
    by_shard = {
        record["shard"]: np.fromfile(tokens_path(kept, record), "<u2") for record in records
    }
    for doc_id, ((shard, start, end),) in spans.items():
        assert by_shard[shard][start:end].tolist() == parts[doc_id]
    return parts, spans


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


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("position", range(5))
@pytest.mark.parametrize("method", ["create", "put_file"])
def test_a_kill_anywhere_then_a_run_gives_the_same(kept, tmp_path, monkeypatch, method, position):
    folder = tmp_path / "whole"
    folder.mkdir()
    whole = KeptRoot(folder)
    whole.land(
        {
            ("s", "a"): [text(6), text(5), None, text(5)],
            ("s", "b"): [text(12), text(2)],
            ("t", "x"): [text(3)],
        }
    )
    expected = materialize(whole)
    settings = tokenize(kept)
    calls = {"n": 0}
    original = getattr(LocalStorage, method)

    def killed(self, *args):
        calls["n"] += 1
        if calls["n"] == (position + 1 if method == "create" else 5 * position + 3):
            raise Killed
        return original(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, method, killed)
        with pytest.raises(Killed):
            materialize_shards(kept.root, settings, kept.log)
    report = materialize_shards(kept.root, settings, kept.log)
    assert (report.digest, report.snapshot) == (expected.digest, expected.snapshot)
    assert report.groups == expected.groups
    assert report.num_done + report.num_skipped + report.num_taken_up == 5
    if method == "create":
        assert report.num_taken_up == 1, "the shard whose record was not appended is taken up"
    assert dataset_files(kept) == dataset_files(whole)


def test_a_damaged_finished_shard_is_made_again(kept, monkeypatch):
    settings = tokenize(kept)
    with monkeypatch.context() as patch:
        patch.setattr(ShardIndex, "append", lambda *_: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            materialize_shards(kept.root, settings, kept.log)
    (path,) = (Path(kept.root.url) / "dataset/shards/s").glob("00000-*.docs.npy")
    path.write_bytes(path.read_bytes()[:-1])
    report = materialize_shards(kept.root, settings, kept.log)
    assert report.num_taken_up == 0
    check_contents(kept)


def test_two_runs_at_once_both_succeed_and_add_nothing_twice(kept, monkeypatch):
    settings = tokenize(kept)
    barrier = threading.Barrier(2)
    original = stage._make_all

    def together(*args, **kwargs):
        barrier.wait()
        return original(*args, **kwargs)

    monkeypatch.setattr(stage, "_make_all", together)
    reports: list[ShardReport] = []

    def work():
        reports.append(materialize_shards(kept.root, settings, kept.log))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 2
    assert len({report.digest for report in reports}) == 1
    assert len(ShardIndex(kept.root).records) == 5
    check_contents(kept)


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
