"""Decontamination: the kernel agrees with sets of n-grams; who holds an item is dropped, named."""

import gzip
import json
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from assets.dedup import text_sets
from assets.dedup.common_ngrams import find_common_ngrams
from assets.dedup.contamination_report import contamination_table
from assets.dedup.decontaminate import build_index
from assets.dedup.report import stage_facts
from assets.dedup.shingles import words
from assets.errors import ConfigurationError, LandingError, PinnedRootError, StageError
from assets.manifest import Manifest
from assets.settings.dedup import DecontaminationSettings, TextSetSettings
from assets.stage import check_accounting
from tests.assets.dedup.small_corpus import SmallCorpus, article

NOTHING = np.empty(0, np.uint64)
ANY = (TextSetSettings(name="any", paths=("x",)),)


def ngrams(text, size):
    found = words(text)
    return {tuple(found[at : at + size]) for at in range(len(found) - size + 1)}


def best_by_sets(item_texts, text, wanted):
    """Return (item, share) by the definition."""
    best, most = -1, 0.0
    for number, item in enumerate(item_texts):
        count = len(words(item))
        if count < wanted.min_words:
            continue
        size = min(count, wanted.ngram)
        share = len(ngrams(item, size) & ngrams(text, size)) / len(ngrams(item, size))
        if share > most:
            best, most = number, share
    return best, most


SMALL_TEXTS = st.lists(st.sampled_from(["a", "b", "c", "d,", "E"]), max_size=14).map(" ".join)


@settings(deadline=None)  # the first call compiles
@given(st.lists(SMALL_TEXTS, min_size=1, max_size=5), st.lists(SMALL_TEXTS, max_size=5), st.data())
def test_the_kernel_agrees_with_sets(items, texts, data):
    ngram = data.draw(st.integers(2, 6))
    wanted = DecontaminationSettings(sets=ANY, ngram=ngram, min_words=data.draw(st.integers(1, 2)))
    items = [*items, "a b c d e f"]
    found, shares = build_index(items, wanted, NOTHING).best(pa.array(texts, pa.large_string()))
    for text, item, share in zip(texts, found.tolist(), shares.tolist(), strict=True):
        assert (item, share) == best_by_sets(items, text, wanted)


def write_sets(corpus):
    """Write two evaluation sets; return what the configuration says of them."""
    folder = Path(corpus.folder) / "evaluation"
    folder.mkdir(parents=True)
    long = {"id": "q1", "question": article(50, 40), "choices": [article(51, 20), "yes"]}
    lines = [long, {"id": 2, "question": "what is the capital of atlantis"}, {"question": "why"}]
    (folder / "quiz.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    table = pa.table({"text": [article(60, 100), article(61, 100)], "id": ["p0", None]})
    pq.write_table(table, folder / "tasks.parquet")
    return (
        TextSetSettings(name="quiz", paths=("evaluation/*.jsonl",), fields=("question", "choices")),
        TextSetSettings(name="tasks", paths=("evaluation/*.parquet",)),
    )


@pytest.fixture
def corpus(tmp_path):
    corpus = SmallCorpus(str(tmp_path))
    corpus.dedup["decontaminate"] = DecontaminationSettings(sets=write_sets(corpus))
    return corpus


def test_who_holds_an_item_is_dropped_and_the_ledger_says_which(corpus):
    half = " ".join(article(60, 100).split()[:40])
    texts = [
        f"{article(1)} {article(50, 40)} {article(51, 20)} yes {article(2)}",
        f"{article(3)}. What is the capital of  Atlantis? {article(4)}",
        f"{article(5)} what is the capital of Spain",
        f"{article(6)} {half}",
        f"{article(61, 100)} {article(7)}",
        "why",
    ]
    corpus.land({"wiki/a": texts})
    report = corpus.run()
    check_accounting(report)
    assert corpus.kept() == [texts[2], texts[3], texts[5]]
    lost = [row for row in corpus.ledger().to_pylist() if row["decision"] == "dropped"]
    assert [(row["rule"], row["threshold"], row["survivor_id"]) for row in lost] == [
        ("contaminated", 0.5, None)
    ] * 3
    assert [row["value"] for row in lost] == [1.0, 1.0, 1.0]
    assert [json.loads(row["detail"]) for row in lost] == [
        {"item": "q1", "set": "quiz"},
        {"item": "2", "set": "quiz"},
        {"item": "tasks.parquet:1", "set": "tasks"},
    ]
    facts = stage_facts(corpus.settings.dedup, Manifest.load(corpus.root, "unique"))
    assert {row["set"]: row["documents"] for row in facts["contaminated_by_set"].rows} == {
        "quiz": 2,
        "tasks": 1,
    }


def test_a_contaminated_document_is_nobodys_survivor(corpus):
    held = f"{article(60, 100)} {article(8)}"
    corpus.land({"wiki/a": [held]})
    corpus.run()
    corpus.land({"wiki/b": [article(8), held]})
    corpus.run()
    assert corpus.kept() == [article(8)]


def test_common_ngrams_count_for_nothing(corpus):
    (Path(corpus.folder) / "common.txt").write_text(
        "\n".join(" ".join(article(60, 100).split()[at : at + 13]) for at in range(88))
    )
    wanted = corpus.dedup["decontaminate"]
    corpus.dedup["decontaminate"] = DecontaminationSettings(
        sets=wanted.sets, common_ngrams="common.txt"
    )
    corpus.land({"wiki/a": [article(60, 100)]})
    corpus.run()
    assert len(corpus.kept()) == 1


def test_other_items_are_other_signatures(corpus):
    corpus.land({"wiki/a": [article(1)]})
    corpus.run()
    path = Path(corpus.folder) / "evaluation" / "more.jsonl"
    path.write_text(json.dumps({"question": article(1)}))
    corpus.run()
    assert corpus.kept() == []


def test_items_may_not_change_under_a_published_data_set(corpus):
    corpus.land({"wiki/a": [article(1)]})
    corpus.run()
    corpus.root.publish_bytes("dataset/dataset.json", b"{}")
    corpus.run()
    path = Path(corpus.folder) / "evaluation" / "quiz.jsonl"
    path.write_text(path.read_text().replace("atlantis", "utopia"))
    with pytest.raises(PinnedRootError, match="other evaluation items"):
        corpus.run()


@pytest.mark.parametrize(
    ("name", "data", "error", "message"),
    [
        ("x.jsonl", b'{"body": "x"}\n{}\n', ConfigurationError, "0 of 2 records"),
        ("x.jsonl", b'{"text": \n', ConfigurationError, "cannot be read"),
        (
            "x.jsonl.gz",
            gzip.compress(b'{"text": "a b c d e f"}', mtime=0)[:-9],
            ConfigurationError,
            "cannot",
        ),
        ("x.jsonl", b"[" * 200_000, ConfigurationError, "cannot be read"),
        ("x.jsonl", b'{"text": "' + b"a" * 5000 + b'"}', ConfigurationError, "more than"),
        (
            "x.jsonl.gz",
            gzip.compress(b" " * 100_000, mtime=0),
            ConfigurationError,
            "more than",
        ),
        ("x.parquet", b"PAR1", ConfigurationError, "cannot be read"),
        ("x.txt", b"text", ConfigurationError, "neither"),
        ("x.jsonl", b'{"text": "two words"}', ConfigurationError, "none of 1 items has 5 words"),
        (None, b"", ConfigurationError, "no file matches"),
    ],
)
def test_sets_that_cannot_be_used_are_refused(tmp_path, monkeypatch, name, data, error, message):
    monkeypatch.setattr(text_sets, "MAX_RECORD_BYTES", 4096 if "more" in message else 1 << 20)
    corpus = SmallCorpus(str(tmp_path))
    (tmp_path / "sets").mkdir()
    if name is not None:
        (tmp_path / "sets" / name).write_bytes(data)
    sets = (TextSetSettings(name="bad", paths=("sets/*",)),)
    corpus.dedup["decontaminate"] = DecontaminationSettings(sets=sets)
    corpus.land({"wiki/a": [article(1)]})
    with pytest.raises(error, match=message):
        corpus.run()


def test_a_set_outside_the_allowed_folders_is_refused(tmp_path):
    corpus = SmallCorpus(str(tmp_path / "root"))
    (tmp_path / "secret.jsonl").write_text('{"text": "x"}')
    sets = (TextSetSettings(name="bad", paths=("../secret.jsonl",)),)
    corpus.dedup["decontaminate"] = DecontaminationSettings(sets=sets)
    corpus.land({"wiki/a": [article(1)]})
    with pytest.raises(LandingError, match="outside the folders"):
        corpus.run()


def small_tokenizer(tmp_path):
    """Write a tokenizer of bytes and a few merges; return its path."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    texts = [article(seed) for seed in range(20)] + ["what is the capital of atlantis"]
    alphabet = ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.enable_truncation(5)
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def test_tokens_take_the_place_of_words(corpus):
    folder = Path(corpus.folder)
    path = small_tokenizer(folder)
    sets = corpus.dedup["decontaminate"].sets
    wanted = DecontaminationSettings(sets=sets, tokenizer=path.name, ngram=30)
    corpus.dedup["decontaminate"] = wanted
    texts = [
        f"{article(3)} what is the capital of atlantis",
        f"{article(3)} what is the CAPITAL of atlantis",
        f"{article(1)} {article(60, 100)}",
        f"{article(1)} {' '.join(article(60, 100).split()[:40])}",
    ]
    corpus.land({"wiki/a": texts})
    corpus.run()
    assert [row["rule"] for row in corpus.ledger().to_pylist()] == [
        "contaminated",
        None,
        "contaminated",
        None,
    ]
    # N-grams by the definition, from the ids of the reference library.
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    grams = [
        {tuple(ids[at : at + 30]) for at in range(len(ids) - 29)}
        for ids in (tokenizer.encode(text).ids for text in (article(60, 100), texts[2]))
    ]
    row = corpus.ledger().to_pylist()[2]
    assert row["value"] == len(grams[0] & grams[1]) / len(grams[0])


def test_a_tokenizer_that_is_none_is_refused(corpus):
    sets = corpus.dedup["decontaminate"].sets
    corpus.land({"wiki/a": [article(1)]})
    for name, data in (("missing.json", None), ("bad.json", b"{}")):
        if data is not None:
            (Path(corpus.folder) / name).write_bytes(data)
        corpus.dedup["decontaminate"] = DecontaminationSettings(sets=sets, tokenizer=name)
        with pytest.raises(ConfigurationError, match=r"dedup\.decontaminate\.tokenizer"):
            corpus.run()


@pytest.mark.parametrize("with_tokenizer", [False, True])
def test_the_list_of_common_ngrams_is_made_from_the_corpus(corpus, with_tokenizer):
    folder = Path(corpus.folder)
    more = {"tokenizer": small_tokenizer(folder).name, "ngram": 20} if with_tokenizer else {}
    sets = corpus.dedup["decontaminate"].sets
    corpus.dedup["decontaminate"] = DecontaminationSettings(sets=sets, **more)
    common = " ".join(article(60, 100).split()[:60])
    corpus.land({"wiki/a": [f"{article(seed)} {common}" for seed in range(4)] + [article(61, 100)]})
    corpus.land({"books/b": [f"{article(70)} {common}", None]})
    found = find_common_ngrams(corpus.root, corpus.settings, 5)
    assert found.num_documents == 6
    assert find_common_ngrams(corpus.root, corpus.settings, 5, ["wiki"]).lines == ()
    if not with_tokenizer:
        words_of = common.split()
        assert set(found.lines) == {" ".join(words_of[at : at + 13]) for at in range(48)}
    (folder / "common.txt").write_text("\n".join(found.lines))
    corpus.run()
    assert len(corpus.kept()) == 0
    corpus.dedup["decontaminate"] = DecontaminationSettings(
        sets=sets, common_ngrams="common.txt", **more
    )
    corpus.run()
    assert len(corpus.kept()) == 5
    table = contamination_table(corpus.root)
    assert [
        (row["set"], row["items"], row["items_found"], row["documents_dropped"])
        for row in table.rows
    ] == [("quiz", 3, 0, 0), ("tasks", 2, 1, 1)]


def test_a_list_of_ids_that_is_none_is_refused(corpus):
    folder = Path(corpus.folder)
    sets = corpus.dedup["decontaminate"].sets
    (folder / "common.txt").write_text('[1, -2]\n"x"\n')
    corpus.dedup["decontaminate"] = DecontaminationSettings(
        sets=sets, common_ngrams="common.txt", tokenizer=small_tokenizer(folder).name
    )
    corpus.land({"wiki/a": [article(1)]})
    with pytest.raises(ConfigurationError, match=r"common_ngrams"):
        corpus.run()


def test_what_needs_evaluation_sets_says_so(tmp_path):
    corpus = SmallCorpus(str(tmp_path))
    corpus.land({"wiki/a": [article(1)]})
    corpus.run()
    with pytest.raises(ConfigurationError, match="decontaminate is off"):
        find_common_ngrams(corpus.root, corpus.settings, 5)
    with pytest.raises(StageError, match="0 collections of evaluation sets"):
        contamination_table(corpus.root)
