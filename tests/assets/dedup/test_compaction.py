"""Compaction: fewer runs, the same decisions; damage and kills fall back to what it came from."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from assets.dedup import merging
from assets.dedup.compaction import compact
from assets.dedup.earlier import COMPACTED, find_stretches
from assets.errors import IntegrityError, StageError
from assets.manifest import Manifest
from assets.settings.dedup import RepeatedParagraphsSettings, RepeatedSpansSettings
from assets.upkeep.references import find_garbage
from tests.assets.dedup.small_corpus import SmallCorpus, article
from tests.assets.dedup.test_unique import Killed, kill_after

EVERYTHING = {
    "paragraphs": RepeatedParagraphsSettings(),
    "spans": RepeatedSpansSettings(min_words=20, remove=True),
}


def landings(count: int = 9) -> list[dict[str, list[str | None]]]:
    """Return landings with copies of, and paragraphs from, any earlier one; some replace others."""
    found: list[dict[str, list[str | None]]] = []
    for number in range(count):
        rng = np.random.default_rng(number)
        seeds = rng.integers(0, 12, 6).tolist()
        texts: list[str | None] = [
            f"{article(seed, edits=edits)}\n{article(seed + 20, 30)}\n{article(100 + number, 40)}"
            for edits, seed in enumerate(seeds)
        ]
        found.append({f"wiki/{number % 4}": texts, f"books/{number}": [article(seeds[0]), None]})
    return found


def run_all(corpus: SmallCorpus, *, compacting: bool) -> SmallCorpus:
    for files in landings():
        corpus.land(files)
        corpus.run()
        if compacting:
            compact(corpus.root)
    return corpus


def stretches(corpus: SmallCorpus) -> list[tuple[int, ...]]:
    entries = [
        entry for entry in Manifest.load(corpus.root, "unique").entries() if not entry.source
    ]
    return [stretch.generations for stretch in find_stretches(corpus.root, entries)]


@pytest.mark.parametrize("slice_", [7, 1 << 21])
def test_a_compacted_root_decides_as_one_that_never_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slice_: int
):
    monkeypatch.setattr(merging, "SLICE", slice_)
    plain = run_all(SmallCorpus(str(tmp_path / "plain"), dedup=EVERYTHING), compacting=False)
    merged = run_all(SmallCorpus(str(tmp_path / "merged"), dedup=EVERYTHING), compacting=True)
    for stage in ("signatures", "unique"):
        assert Manifest.load(plain.root, stage).digest == Manifest.load(merged.root, stage).digest
    rules = {row["rule"] for row in plain.ledger().to_pylist()}
    assert {"exact_duplicate", "repeated_paragraphs", "unchanged"} & rules
    assert len(stretches(merged)) <= 3
    assert [number for stretch in stretches(merged) for number in stretch] == list(range(1, 10))
    before = stretches(merged)
    compact(merged.root)
    assert stretches(merged) == before
    # A compaction that another took the place of stands for nothing any more.
    live = [entry for entry in Manifest.load(merged.root, COMPACTED).entries() if entry.objects]
    assert len(live) == sum(len(stretch) > 1 for stretch in before)
    garbage = {item.name for item in find_garbage(merged.root)}
    named = {item.name for entry in live for item in entry.objects.values()}
    assert garbage
    assert not garbage & named
    for item in find_garbage(merged.root):
        merged.root.storage.remove(item.name)
    assert stretches(merged) == before


def test_a_damaged_compaction_is_passed_over_and_made_again(tmp_path: Path, caplog):
    corpus = SmallCorpus(str(tmp_path))
    for number in range(3):
        corpus.land({f"wiki/{number}": [article(number)]})
    corpus.run()
    assert compact(corpus.root) == (3, 1)
    (path,) = (tmp_path / "dedup").glob("compacted-*/band_keys.npy")
    path.chmod(0o600)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert stretches(corpus) == [(1,), (2,), (3,)]
    assert "is not whole" in caplog.text
    corpus.land({"wiki/3": [article(0), article(9)]})
    corpus.run()
    assert corpus.kept() == [article(number) for number in (0, 1, 2, 9)]
    assert compact(corpus.root) == (4, 1)
    flipped = next((tmp_path / "dedup").glob("compacted-*-00000004-*/hashes.npy"))
    flipped.chmod(0o600)
    data = bytearray(flipped.read_bytes())
    data[-40] ^= 1
    flipped.write_bytes(data)
    corpus.land({"wiki/4": [article(number) for number in (0, 1, 2, 9)]})
    with pytest.raises(IntegrityError, match="damaged at byte"):
        corpus.run()
    flipped.unlink()
    corpus.run()
    assert len(corpus.kept()) == 4


def test_a_changed_setting_or_a_damaged_generation_leaves_it_out(tmp_path: Path):
    corpus = SmallCorpus(str(tmp_path))
    for number in range(3):
        corpus.land({f"wiki/{number}": [article(number), article(0, edits=number)]})
    corpus.run()
    compact(corpus.root)
    kept = corpus.kept()
    (path,) = (tmp_path / "dedup").glob("00000002-*/band_keys.npy")
    path.unlink()
    corpus.run()
    assert corpus.kept() == kept
    assert stretches(corpus) == [(1, 2, 3)]
    assert corpus.minhash is not None
    corpus.minhash = dataclasses.replace(corpus.minhash, threshold=0.99)
    corpus.run()
    assert stretches(corpus) == [(1,), (2,), (3,)]
    assert compact(corpus.root) == (3, 1)


def test_a_kill_while_compacting_leaves_the_runs(tmp_path: Path):
    corpus = SmallCorpus(str(tmp_path), dedup=EVERYTHING)
    for files in landings(3):
        corpus.land(files)
    corpus.run()
    with pytest.MonkeyPatch.context() as patch:
        left = kill_after(patch, 10**9)
        probe = SmallCorpus(str(tmp_path / "probe"), dedup=EVERYTHING)
        for files in landings(3):
            probe.land(files)
        probe.run()
        left[0] = 10**9
        compact(probe.root)
        changes = 10**9 - left[0]
    for count in range(changes):
        with pytest.MonkeyPatch.context() as patch:
            kill_after(patch, count)
            with pytest.raises(Killed):
                compact(corpus.root)
        assert [len(stretch) for stretch in stretches(corpus)] == [1, 1, 1]
    compact(corpus.root)
    assert Manifest.load(corpus.root, COMPACTED).digest == (
        Manifest.load(probe.root, COMPACTED).digest
    )


def test_nothing_to_compact(tmp_path: Path):
    corpus = SmallCorpus(str(tmp_path))
    with pytest.raises(StageError, match="nothing has been deduplicated"):
        compact(corpus.root)
    corpus.land({"wiki/a": [article(1)]})
    corpus.run()
    assert compact(corpus.root) == (1, 1)


def test_large_early_runs_are_left_alone(tmp_path: Path):
    corpus = SmallCorpus(str(tmp_path))
    corpus.land({"wiki/a": [article(number) for number in range(12)]})
    for number in range(3):
        corpus.land({f"wiki/{number}": [article(20 + number)]})
    corpus.run()
    assert compact(corpus.root) == (4, 2)
    assert stretches(corpus) == [(1,), (2, 3, 4)]
