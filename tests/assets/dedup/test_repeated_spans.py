"""Repeated spans agree with the definition; shown or cut, across texts and generations."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from assets.dedup.hash_runs import WINDOWS, SeenHashes
from assets.dedup.repeated_spans import find_repeated_spans, num_ranges
from assets.dedup.report import stage_facts
from assets.dedup.shingles import word_character, words
from assets.dedup.span_report import SPANS, longest_spans
from assets.errors import ConfigurationError
from assets.manifest import Manifest
from assets.root import Root
from assets.settings.dedup import (
    DedupSettings,
    RepeatedLinesSettings,
    RepeatedParagraphsSettings,
    RepeatedSpansSettings,
)
from assets.stage import check_accounting
from tests.assets.dedup.small_corpus import SmallCorpus, article
from tests.shared_data import shared_folder

SIZE = 3


def spans_by_definition(texts: list[str], ranks: list[int]) -> list[tuple[int, str, int]]:
    """Return (text, what the span covers, words) of every span, in the order of texts."""
    seen: set[tuple[str, ...]] = set()
    covered: dict[int, list[bool]] = {}
    for number in np.argsort(ranks).tolist():
        found = words(texts[number])
        is_covered = [False] * len(found)
        for first in range(len(found) - SIZE + 1):
            window = tuple(found[first : first + SIZE])
            if window in seen:
                is_covered[first : first + SIZE] = [True] * SIZE
            seen.add(window)
        covered[number] = is_covered
    return [
        (number, text[start:end], count)
        for number, text in enumerate(texts)
        for start, end, count in _ranges(text, covered[number])
    ]


def _ranges(text: str, is_covered: list[bool]) -> list[tuple[int, int, int]]:
    marks = [bool(word_character(character)) for character in text]
    first = [at for at, mark in enumerate(marks) if mark and (at == 0 or not marks[at - 1])]
    bounds = [0, *first[1:], len(text)]
    found: list[tuple[int, int, int]] = []
    for word, is_one in enumerate(is_covered):
        if is_one and word and is_covered[word - 1]:
            start, _, count = found[-1]
            found[-1] = (start, bounds[word + 1], count + 1)
        elif is_one:
            found.append((bounds[word], bounds[word + 1], 1))
    return found


TEXTS = st.lists(st.sampled_from(["a", "B", "ß,", "d", "-", "é\n"]), max_size=12).map(" ".join)


@settings(deadline=None, max_examples=60)  # the first call compiles
@given(st.lists(TEXTS, min_size=1, max_size=5), st.data())
def test_spans_are_those_of_the_definition(tmp_path_factory, texts, data):
    ranks = data.draw(st.permutations(range(len(texts))))
    ranges = data.draw(st.sampled_from([1, 4]))
    folder = tmp_path_factory.mktemp("spans")
    nothing_seen = SeenHashes(Root(str(folder)), WINDOWS, [])
    columns = [pa.array(texts[:2], pa.large_string()), pa.array(texts[2:], pa.large_string())]
    found = find_repeated_spans(
        lambda: iter(columns), np.array(ranks), SIZE, nothing_seen, folder, ranges
    )
    data_bytes = "".join(texts).encode()
    spans = [
        (text, data_bytes[start:end].decode(), count)
        for text, start, end, count in zip(
            *(array.tolist() for array in (found.text, found.start, found.end, found.words)),
            strict=True,
        )
    ]
    assert spans == spans_by_definition(texts, list(ranks))
    assert found.num_words.tolist() == [len(words(text)) for text in texts]
    assert (np.diff(found.new_windows.astype(object)) > 0).all()
    assert len(found.owners) == len(found.new_windows)


def test_ranges_grow_with_the_texts():
    assert [num_ranges(size) for size in (0, 4 << 20, 5 << 20, 1 << 40)] == [1, 1, 2, 256]


QUOTE = article(90, 60)


def texts() -> list[str]:
    return [
        f"{article(1)}. {QUOTE}! {article(2)}",
        f"{article(3)}\n\n{QUOTE.upper()}...\n\n{article(4)}",
        f"{article(5)} {article(91, 49)}",
        f"{article(6)} {article(91, 49)}",
        QUOTE + "?",
    ]


def test_they_are_reported_and_nothing_is_cut(tmp_path: Path):
    corpus = SmallCorpus(str(tmp_path), dedup={"spans": RepeatedSpansSettings()})
    corpus.land({"wiki/a": texts()})
    report = corpus.run()
    assert corpus.kept() == texts()
    assert {row["decision"] for row in corpus.ledger().to_pylist()} == {"kept"}
    (row,) = report.facts["repeated_spans"].rows
    assert (row["source"], row["documents"], row["spans"], row["words"]) == ("wiki", 2, 2, 120)
    found = longest_spans(corpus.root, Manifest.load(corpus.root, "unique"), 10)
    assert [(source, count) for _, source, count, _ in found] == [("wiki", 60), ("wiki", 60)]
    assert {text for *_, text in found} == {f"{QUOTE.upper()}...\n\n", f"{QUOTE}?"}
    assert len(longest_spans(corpus.root, Manifest.load(corpus.root, "unique"), 1)) == 1


def test_they_are_cut_on_request_and_later_generations_know_them(tmp_path: Path):
    corpus = SmallCorpus(str(tmp_path), dedup={"spans": RepeatedSpansSettings(remove=True)})
    corpus.land({"wiki/a": texts()})
    report = corpus.run()
    one, two, three, four, _ = texts()
    without = f"{article(3)}\n\n{article(4)}"
    assert corpus.kept() == [one, without, three, four]
    made = corpus.ledger().to_pylist()
    assert [(row["decision"], row["rule"]) for row in made] == [
        ("kept", None),
        ("modified", "repeated_spans"),
        ("kept", None),
        ("kept", None),
        ("dropped", "empty_after_dedup"),
    ]
    assert made[1]["value"] == len(two) - len(without)
    check_accounting(report)
    corpus.land({"wiki/b": [f"{article(7)} {article(4)}"]})
    corpus.run()
    assert corpus.kept()[-1] == f"{article(7)} "


def test_what_a_withdrawn_document_had_may_come_again(tmp_path: Path):
    dedup = {
        "spans": RepeatedSpansSettings(remove=True),
        "paragraphs": RepeatedParagraphsSettings(),
    }
    corpus = SmallCorpus(str(tmp_path), dedup=dedup)
    corpus.land({"wiki/a": [f"{article(1)} {QUOTE}\nshort one", article(2)]})
    corpus.run()
    corpus.land({"wiki/a": [article(2)], "wiki/b": [f"{article(3)} {QUOTE}\nshort one"]})
    corpus.run()
    assert corpus.kept()[-1] == f"{article(3)} {QUOTE}\nshort one"


def test_with_lines_and_paragraphs_what_is_left_empty_is_dropped(tmp_path: Path):
    dedup = {
        "lines": RepeatedLinesSettings(max_count=1),
        "paragraphs": RepeatedParagraphsSettings(),
        "spans": RepeatedSpansSettings(remove=True),
    }
    corpus = SmallCorpus(str(tmp_path), dedup=dedup)
    corpus.land(
        {"wiki/a": [f"{article(1)} {QUOTE}", f"menu\n {QUOTE}.\n \n", f"menu\n{article(4)}"]}
    )
    report = corpus.run()
    check_accounting(report)
    assert corpus.kept() == [f"{article(1)} {QUOTE}", article(4)]


def grow(corpus: SmallCorpus, *, together: bool) -> list[object]:
    for seed in range(3):
        quotes = [article(90, 60), article(seed + 1, 50), article(91, 80)]
        pages = [f"{article(10 * seed + number)}\n{quote}" for number, quote in enumerate(quotes)]
        corpus.land({"wiki/a": pages, f"books/{seed}": [*reversed(pages), f"x {quotes[0]}"]})
        if not together:
            corpus.run()
    corpus.run()
    tables = [
        corpus.root.read_table(entry.objects["spans"])
        for entry in Manifest.load(corpus.root, "unique").entries()
        if not entry.source
    ]
    spans = pa.concat_tables([SPANS.empty_table(), *tables]).drop_columns(["part"]).to_pylist()
    return [corpus.kept(), corpus.ledger().drop_columns(["part", "row"]).to_pylist(), len(spans)]


@pytest.mark.parametrize("remove", [False, True])
def test_growing_equals_replaying_with_any_parts(tmp_path: Path, remove: bool):
    dedup = {"spans": RepeatedSpansSettings(min_words=40, remove=remove)}
    grown = SmallCorpus(str(tmp_path / "grown"), dedup=dedup)
    replayed = SmallCorpus(str(tmp_path / "replayed"), dedup=dedup, rows_per_part=2, processes=2)
    assert grow(grown, together=False) == grow(replayed, together=True)


def test_short_spans_are_refused():
    with pytest.raises(ConfigurationError, match="at least 10"):
        DedupSettings(spans=RepeatedSpansSettings(min_words=9))


def test_editions_share_their_text(tmp_path: Path):
    """Two editions of a book: nearly every word of the second stands in the first."""
    folder = shared_folder("demo", "books")
    paths = sorted(folder.glob("Alice*/*.txt"))[:2]
    corpus = SmallCorpus(str(tmp_path), minhash=None, dedup={"spans": RepeatedSpansSettings()})
    corpus.land({"wiki/a": [path.read_text(errors="replace") for path in paths]})
    (row,) = stage_facts(corpus.settings.dedup, _run(corpus))["repeated_spans"].rows
    assert row["documents"] == 1 or row["spans"] > 1
    assert 0.3 < float(str(row["share_of_words"])) < 0.55


def _run(corpus: SmallCorpus) -> Manifest:
    corpus.run()
    return Manifest.load(corpus.root, "unique")
