"""With every option of deduplication switched on at once, the laws still hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assets.dedup import slices, unique
from assets.dedup.compaction import compact
from assets.dedup.decide import KEPT, NEAR, URL, Decisions, TooManyCandidatesError, decide
from assets.dedup.earlier import find_stretches, open_runs
from assets.dedup.runs import KeptRuns
from assets.dedup.slices import decide_generation
from assets.manifest import Manifest
from assets.settings.dedup import (
    DecontaminationSettings,
    MinHashSettings,
    RepeatedLinesSettings,
    RepeatedParagraphsSettings,
    RepeatedSpansSettings,
    TextSetSettings,
)
from assets.stage import check_accounting
from tests.assets.dedup.brute_force import arrive
from tests.assets.dedup.small_corpus import Landed, SmallCorpus, article
from tests.assets.dedup.test_unique import Killed, kill_after

QUOTE, LINE = article(70, 40), "Share this page with your friends"


def page(seed: int, *, edits: int = 0) -> str:
    """Return a text with its own words, a quotation and a line that every page has."""
    return f"{article(seed, edits=edits)}\n{LINE}\n{article(90 + seed, 12)} {QUOTE}\nend of {seed}"


LANDINGS: list[dict[str, list[Landed]]] = [
    {
        "wiki/a": [page(1), page(2), page(1, edits=2), "a b", None, "A  b", f"{article(50)} x"],
        "books/x": [page(2), page(4), article(60), article(61, edits=3)],
    },
    {
        "wiki/b": [page(4, edits=2), page(5), f"{QUOTE}\n{LINE}", page(3)],
        "books/x": [page(4), page(6), page(2)],
    },
    {
        "wiki/a": [page(1), page(7), page(2, edits=1)],
        "wiki/c": [page(6), article(50), page(8), "what is it that walks on four legs"],
    },
]


def everything(folder: Path, **more: Any) -> SmallCorpus:
    """Return a root with all options, its sets beside it."""
    sets = folder / "sets"
    sets.mkdir(parents=True)
    items = [{"text": article(50, 80)}, {"text": "What is it that walks on four legs?"}]
    (sets / "quiz.jsonl").write_text("\n".join(map(json.dumps, items)))
    others = [{"text": article(60), "id": "o1"}, {"text": article(61), "id": "o2"}]
    (sets / "others.jsonl").write_text("\n".join(map(json.dumps, others)))
    quiz = TextSetSettings(name="quiz", paths=("sets/quiz.jsonl",))
    return SmallCorpus(
        str(folder),
        minhash=MinHashSettings(preset="classic", max_shingles=1024),
        dedup={
            "policy": "longest",
            "url": True,
            "lines": RepeatedLinesSettings(max_count=3),
            "paragraphs": RepeatedParagraphsSettings(),
            "spans": RepeatedSpansSettings(min_words=20, remove=True),
            "decontaminate": DecontaminationSettings(sets=(quiz,)),
            "against": (TextSetSettings(name="others", paths=("sets/others.jsonl",)),),
        },
        **more,
    )


def test_every_rule_is_met_and_all_add_up(tmp_path: Path):
    corpus = everything(tmp_path)
    for files in LANDINGS:
        corpus.land(files)
    report = corpus.run()
    check_accounting(report)
    made = corpus.ledger().to_pylist()
    assert {row["rule"] for row in made} >= {
        "contaminated",
        "exact_duplicate",
        "near_duplicate",
        "exact_in_external",
        "near_in_external",
        "repeated_lines",
        "empty_after_dedup",
        "unchanged",
    }
    decisions = {row["doc_id"]: row["decision"] for row in made}
    for row in made:
        if row["rule"] in ("exact_duplicate", "near_duplicate"):
            assert decisions[row["survivor_id"]] in ("kept", "modified")
    assert sum(QUOTE in text for text in corpus.kept()) == 1


def test_growing_compacting_and_replaying_agree(tmp_path: Path):
    grown = everything(tmp_path / "grown")
    for files in LANDINGS:
        grown.land(files)
        grown.run()
        compact(grown.root)
    replayed = everything(tmp_path / "replayed", processes=2)
    for files in LANDINGS:
        replayed.land(files)
    replayed.run()
    assert Manifest.load(grown.root, "unique").digest == (
        Manifest.load(replayed.root, "unique").digest
    )


@pytest.mark.parametrize("memory_bytes", [0, 12_000, 40_000])
def test_deciding_in_slices_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory_bytes: int
):
    whole, sliced = everything(tmp_path / "whole"), everything(tmp_path / "sliced")
    for corpus in (whole, sliced):
        for files in LANDINGS:
            corpus.land(files)
    whole.run()

    def with_little(*arguments: Any) -> Decisions:
        *others, _, folder = arguments
        return decide_generation(*others, memory_bytes, folder)  # type: ignore[call-arg]

    monkeypatch.setattr(unique, "decide_generation", with_little)
    if memory_bytes == 0:
        # Each document is a slice; the outlines of those that it meets may take what they need.
        monkeypatch.setattr(slices, "decide", without_limit)
    sliced.run()
    assert Manifest.load(sliced.root, "unique").digest == Manifest.load(whole.root, "unique").digest


def without_limit(*arguments: Any, **limits: Any) -> Decisions:
    return decide(*arguments, **(limits | {"max_outline_bytes": None}))


def test_one_document_that_meets_too_many_is_an_error(tmp_path: Path):
    corpus = SmallCorpus(str(tmp_path))
    corpus.land({"wiki/a": [article(1)]})
    corpus.run()
    arrivals = arrive([article(1, edits=1)])
    ((_, run),) = open_runs(
        corpus.root,
        find_stretches(
            corpus.root,
            [entry for entry in Manifest.load(corpus.root, "unique").entries() if not entry.source],
        ),
        {},
    ).items()
    limits = {"exact": True, "threshold": 0.8, "max_kept_per_bucket": 256}
    with pytest.raises(TooManyCandidatesError, match=r"raise dedup\.memory_mb"):
        decide_generation(arrivals, KeptRuns((run,)), None, limits, 0, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_slices_of_urls_and_orders(tmp_path: Path, seed: int):
    rng = np.random.default_rng(seed)
    texts = [article(int(rng.integers(12)), edits=int(rng.integers(4))) for _ in range(60)]
    arrivals = replace(arrive(texts), urls=rng.integers(-1, 9, 60))
    order = rng.permutation(60)
    limits = {"exact": bool(seed), "threshold": 0.8, "max_kept_per_bucket": 2}
    found = []
    for size in (1 << 30, 60_000, 20_000):
        folder = tmp_path / str(size)
        folder.mkdir()
        found.append(decide_generation(arrivals, KeptRuns(()), order, limits, size, folder))
    for other in found[1:]:
        for name in ("rule", "survivor", "similarity"):
            assert np.array_equal(
                getattr(found[0], name), getattr(other, name), equal_nan=name == "similarity"
            )
        assert (found[0].compared, found[0].skipped, found[0].band_hits) == (
            other.compared,
            other.skipped,
            other.band_hits,
        )
    assert {KEPT, NEAR, URL} <= set(found[0].rule.tolist())


@pytest.mark.parametrize("first", range(3))
def test_a_kill_anywhere_is_repaired_by_the_next_run(tmp_path: Path, first: int):
    whole, cut = everything(tmp_path / "whole"), everything(tmp_path / "cut")
    for corpus in (whole, cut):
        for files in LANDINGS[: first + 1]:
            corpus.land(files)
    with pytest.MonkeyPatch.context() as patch:
        left = kill_after(patch, 10**9)
        expected = whole.run().digest
        changes = 10**9 - left[0]
    # Killed again and again, always later, on one and the same root.
    for count in range(first, changes, 4):
        with pytest.MonkeyPatch.context() as patch:
            kill_after(patch, count)
            try:
                cut.run()
            except Killed:
                continue
            break
    assert cut.run().digest == expected
    assert cut.kept() == whole.kept()
