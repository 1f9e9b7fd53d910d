"""Repeated lines and paragraphs: cut by the rule, nothing else touched, nothing lost silently."""

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings

from assets.dedup.exact import normalised
from assets.dedup.hash_runs import SeenHashes
from assets.dedup.units import split_units
from assets.document import count_decisions
from assets.errors import IntegrityError
from assets.manifest import Manifest
from assets.settings.dedup import RepeatedLinesSettings, RepeatedParagraphsSettings
from assets.stage import check_accounting
from tests.assets.dedup.small_corpus import SmallCorpus, article

TEXTS = st.lists(st.text(st.sampled_from("aB \n\t\u2028é"), max_size=30), max_size=5)


def rules(corpus):
    """Return (decision, rule) by text."""
    texts = corpus.texts_by_id()
    return {
        texts[row["doc_id"]]: (row["decision"], row["rule"]) for row in corpus.ledger().to_pylist()
    }


@settings(deadline=None)  # the first call compiles
@given(TEXTS, st.booleans())
@example(["a\n \n\nb\n", "", "\n\n", "a\n\nb"], True)
def test_units_cover_every_character_and_hash_what_they_say(texts, by_blank_line):
    units = split_units(pa.array(texts, pa.large_string()), by_blank_line=by_blank_line)
    data = "".join(texts).encode()
    said = [
        normalised(data[start:end].decode())
        for start, end in zip(units.start.tolist(), units.end.tolist(), strict=True)
    ]
    assert all(said)
    assert [len(text) for text in said] == units.characters.tolist()
    assert len(set(units.hash.tolist())) == len(set(said))
    expected = [
        (number, normalised(piece))
        for number, text in enumerate(texts)
        for piece in pieces(text, by_blank_line=by_blank_line)
        if normalised(piece)
    ]
    assert list(zip(units.document.tolist(), said, strict=True)) == expected


def pieces(text, *, by_blank_line):
    if not by_blank_line:
        return text.split("\n")
    found, current = [], ""
    for line in text.split("\n"):
        if line.strip():
            current += line + "\n"
        elif current:
            found.append(current)
            current = ""
    return [*found, current]


def test_units_of_a_slice_are_those_of_its_texts():
    column = pa.array(["x\ny", "a\nb", "c"], pa.large_string()).slice(1, 2)
    units = split_units(column, by_blank_line=False)
    assert units.start.tolist() == [0, 2, 3]
    assert units.end.tolist() == [2, 3, 4]
    assert units.document.tolist() == [0, 0, 1]


def test_a_line_seen_too_often_in_a_bucket_is_cut_everywhere(tmp_path):
    corpus = SmallCorpus(str(tmp_path), dedup={"lines": RepeatedLinesSettings(max_count=2)})
    texts = [f"Share this!\n{article(seed)}\nsee also\n" for seed in range(2)]
    texts += [f"{article(2)}\n share  THIS!\n", article(3)]
    corpus.land({"wiki/a": texts})
    report = corpus.run()
    assert corpus.kept() == [
        f"{article(0)}\nsee also\n",
        f"{article(1)}\nsee also\n",
        f"{article(2)}\n",
        article(3),
    ]
    assert [row["value"] for row in corpus.ledger().to_pylist()] == [12, 12, 14, None]
    assert set(rules(corpus).values()) == {("modified", "repeated_lines"), ("kept", None)}
    check_accounting(report)
    assert report.by_source()["wiki"]["modified"] == 3
    (row,) = report.facts["cut_from_texts"].rows
    assert row == {
        "source": "wiki",
        "rule": "repeated_lines",
        "documents": 3,
        "share": 0.75,
        "bytes": 38,
    }


def test_buckets_are_counted_apart(tmp_path):
    lines = RepeatedLinesSettings(max_count=2, bucket_documents=2)
    corpus = SmallCorpus(str(tmp_path), dedup={"lines": lines})
    corpus.land({"wiki/a": [f"{article(seed)}\nthe end" for seed in range(4)]})
    corpus.run()
    assert all(text.endswith("the end") for text in corpus.kept())


def test_the_first_document_keeps_a_paragraph_across_generations(tmp_path):
    corpus = SmallCorpus(str(tmp_path), dedup={"paragraphs": RepeatedParagraphsSettings()})
    one, two, three = article(1), article(2), article(3)
    corpus.land({"wiki/a": [f"{one}\n{two}", f"{three}\n{two}\n{article(4)}"]})
    corpus.run()
    assert corpus.kept() == [f"{one}\n{two}", f"{three}\n{article(4)}"]
    corpus.land({"wiki/b": [f"{article(5)}\n{one}\n{article(6)}\n{article(6)}"]})
    corpus.run()
    assert corpus.kept()[-1] == f"{article(5)}\n{article(6)}\n"


def test_a_text_of_repeated_paragraphs_only_is_dropped_with_its_copies(tmp_path):
    corpus = SmallCorpus(str(tmp_path), dedup={"paragraphs": RepeatedParagraphsSettings()})
    one, two = article(1), article(2)
    mixed = f"{two}\n{one}\n{article(3, 3)}"
    corpus.land({"wiki/a": [f"{one}\n{article(7)}", f"{two}\n{article(3, 3)}", mixed, mixed + "!"]})
    report = corpus.run()
    made = rules(corpus)
    assert made[mixed] == ("dropped", "empty_after_dedup")
    assert made[mixed + "!"] == ("dropped", "empty_after_dedup")
    check_accounting(report)
    assert report.by_source()["wiki"]["dropped"] == {"empty_after_dedup": 2}
    kept = {row["doc_id"] for row in corpus.ledger().to_pylist() if row["decision"] != "dropped"}
    survivors = [row["survivor_id"] for row in corpus.ledger().to_pylist() if row["survivor_id"]]
    assert set(survivors) <= kept


def test_blank_lines_separate_paragraphs_where_told(tmp_path):
    settings_ = RepeatedParagraphsSettings(separator="blank_line", min_characters=10)
    corpus = SmallCorpus(str(tmp_path), dedup={"paragraphs": settings_})
    corpus.land(
        {"wiki/a": ["a b\n\nshort\n\nline one\nline two\n\n", "short\n\nline one\nline two\n\nx"]}
    )
    corpus.run()
    assert corpus.kept() == ["a b\n\nshort\n\nline one\nline two\n\n", "short\n\nx"]


def test_distinct_texts_survive_whole(tmp_path):
    both = {"lines": RepeatedLinesSettings(), "paragraphs": RepeatedParagraphsSettings()}
    corpus = SmallCorpus(str(tmp_path), dedup=both)
    texts = [f"{article(seed)}\n\n{article(100 + seed)}\n" for seed in range(100)]
    corpus.land({"wiki/a": texts})
    corpus.run()
    assert corpus.kept() == texts


LINES = st.sampled_from(
    ["menu", "MENU ", "about us", "", *[article(seed, 30) for seed in range(6)]]
)
PAGES = st.lists(st.lists(LINES, max_size=5).map("\n".join), min_size=1, max_size=8)


@settings(deadline=None, max_examples=15)
@given(st.lists(PAGES, min_size=1, max_size=3))
def test_growing_equals_replaying_and_every_paragraph_is_kept_once(tmp_path_factory, landings):
    roots = []
    for name, together in (("grown", False), ("replayed", True)):
        folder = tmp_path_factory.mktemp(name)
        corpus = SmallCorpus(
            str(folder), dedup={"paragraphs": RepeatedParagraphsSettings()}, minhash=None
        )
        for number, texts in enumerate(landings):
            corpus.land({f"wiki/{number}": texts})
            if not together:
                corpus.run()
        corpus.run()
        roots.append(corpus)
    assert roots[0].kept() == roots[1].kept()
    digests = {Manifest.load(corpus.root, "unique").digest for corpus in roots}
    assert len(digests) == 1
    lines = Counter(
        normalised(line) for text in roots[0].kept() for line in text.split("\n") if line.strip()
    )
    assert set(lines.values()) <= {1}
    landed = {normalised(line) for pages in landings for page in pages for line in page.split("\n")}
    assert set(lines) == landed - {""}
    assert count_decisions(roots[0].ledger())["in"] == sum(map(len, landings))


@pytest.mark.parametrize(
    "name", ["paragraphs.npy", "paragraphs_fences.npy", "paragraphs_owners.npy"]
)
def test_damaged_hashes_are_found_and_made_again(tmp_path, name):
    corpus = SmallCorpus(str(tmp_path), dedup={"paragraphs": RepeatedParagraphsSettings()})
    corpus.land({"wiki/a": [article(1)]})
    corpus.run()
    (path,) = (tmp_path / "dedup").rglob(name)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-3])
    corpus.land({"wiki/b": [f"{article(1)}\n{article(2)}"]})
    corpus.run()
    assert corpus.kept() == [article(1), article(2)]
    assert np.load(path).dtype == (np.uint32 if "owners" in name else np.uint64)


def test_hashes_that_cannot_be_found_again_stop_the_run(tmp_path, monkeypatch):
    corpus = SmallCorpus(str(tmp_path), dedup={"paragraphs": RepeatedParagraphsSettings()})
    corpus.land({"wiki/a": [article(1)]})
    monkeypatch.setattr(SeenHashes, "contain", lambda _, queries: np.zeros(len(queries), bool))
    with pytest.raises(IntegrityError, match="does not hold what was written"):
        corpus.run()
    assert Manifest.load(corpus.root, "unique").entries() == []
