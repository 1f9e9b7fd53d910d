"""The stage: a function of the log, never of how runs were cut."""

import dataclasses
import hashlib

import numpy as np
import pyarrow as pa
import pytest

from assets.dedup.unique import materialize_unique, read_unique, withdrawn_documents
from assets.document import UNIQUE, count_decisions
from assets.errors import IntegrityError, LossLimitError
from assets.manifest import Manifest
from assets.settings.dedup import MinHashSettings
from assets.sources.landing_log import LandingLog, read_log
from assets.stage import check_accounting
from assets.storage.local import LocalStorage
from tests.assets.dedup.brute_force import jaccard, shingle_set
from tests.assets.dedup.small_corpus import SmallCorpus, article

FIRST: dict[str, list[str | None]] = {
    "wiki/a": [article(1), article(2), article(1, edits=2), "a b", None, "A  b"],
    "wiki/b": [article(3), article(2), None],
    "books/x": [article(2), article(4), article(3, edits=1)],
}
SECOND = {
    "wiki/c": [article(4, edits=2), article(5), article(5), article(3)],
    "books/x": [article(4), article(6), article(2)],
}
THIRD = {
    "books/x": [article(2), article(7), article(4)],
    "wiki/d": [article(3, edits=1), article(6), article(1, edits=2), "a b"],
}
LANDINGS = [FIRST, SECOND, THIRD]


@pytest.fixture
def corpus(tmp_path):
    return SmallCorpus(str(tmp_path / "root"))


def decisions(corpus):
    """Return what was decided for each document, by id."""
    columns = ["decision", "rule", "similarity", "survivor_id", "value", "threshold", "detail"]
    ledger = corpus.ledger()
    return dict(zip(ledger["doc_id"].to_pylist(), ledger.select(columns).to_pylist(), strict=True))


def grow(corpus, landings, *, together=False):
    for files in landings:
        corpus.land(files)
        if not together:
            corpus.run()
    corpus.run()
    return corpus


def test_what_is_kept_and_why(corpus):
    corpus.land(FIRST)
    report = corpus.run()
    # Without priorities `books` comes before `wiki`.
    assert corpus.kept() == [article(2), article(4), article(3, edits=1), article(1), "a b"]
    assert report.waiting == ()
    check_accounting(report)
    counts = report.by_source()
    assert counts["books"]["kept"] == 3
    assert counts["wiki"]["dropped"] == {"exact_duplicate": 3, "near_duplicate": 2}
    assert counts["wiki"]["too_short_for_minhash"] == 2
    assert report.facts["generations"] == 1


def test_the_ledger_has_a_row_for_each_text_and_its_survivor_was_kept(corpus):
    grow(corpus, LANDINGS)
    ledger, texts = corpus.ledger(), corpus.texts_by_id()
    assert sorted(ledger["doc_id"].to_pylist()) == sorted(
        document for document, text in texts.items() if text is not None
    )
    made = decisions(corpus)
    for document, row in made.items():
        if row["rule"] == "near_duplicate":
            pair = [shingle_set(texts[which]) for which in (document, row["survivor_id"])]
            assert row["similarity"] == jaccard(*pair) >= row["threshold"] == 0.8
        if row["rule"] in ("near_duplicate", "exact_duplicate"):
            assert made[row["survivor_id"]]["decision"] == "kept"
        assert (row["decision"] == "kept") == (row["rule"] is None)
    assert count_decisions(ledger)["in"] == len(made)


def test_priority_decides_within_a_generation_only(tmp_path):
    corpus = SmallCorpus(str(tmp_path), priorities={"books": 0, "wiki": 5})
    grow(
        corpus,
        [{"books/x": [article(1)]}, {"books/y": [article(2)], "wiki/a": [article(2), article(1)]}],
    )
    assert [row["rule"] for row in decisions(corpus).values()] == [
        None,
        "exact_duplicate",
        None,
        "exact_duplicate",
    ]


@pytest.mark.parametrize(("processes", "rows_per_part"), [(1, 1_000_000), (2, 1)])
def test_runs_processes_and_parts_change_nothing(tmp_path, processes, rows_per_part):
    expected = decisions(grow(SmallCorpus(str(tmp_path / "grown")), LANDINGS))
    other = SmallCorpus(str(tmp_path / "other"), processes=processes, rows_per_part=rows_per_part)
    assert decisions(grow(other, LANDINGS, together=True)) == expected


def test_growing_and_replaying_give_the_same_bytes(tmp_path):
    grown = grow(SmallCorpus(str(tmp_path / "grown")), LANDINGS)
    replayed = grow(SmallCorpus(str(tmp_path / "replayed")), LANDINGS, together=True)
    for stage in ("signatures", "unique"):
        assert Manifest.load(grown.root, stage).digest == Manifest.load(replayed.root, stage).digest


def test_the_order_in_which_files_are_named_changes_nothing(tmp_path):
    expected = decisions(grow(SmallCorpus(str(tmp_path / "one")), [FIRST]))
    backwards = dict(reversed(FIRST.items()))
    assert decisions(grow(SmallCorpus(str(tmp_path / "two")), [backwards])) == expected


def test_a_second_run_does_nothing(corpus):
    grow(corpus, [FIRST])
    before = Manifest.load(corpus.root, "unique").digest
    report = corpus.run()
    assert (report.num_done, report.num_skipped) == (0, 2)
    assert report.digest == before


def test_a_generation_that_is_not_clean_waits_and_holds_back_later_ones(corpus):
    corpus.land(FIRST)
    log = read_log(corpus.root)
    unclean = LandingLog()
    unclean.apply(log.generations[0].entries)
    unclean.apply(
        [
            dataclasses.replace(
                log.generations[0].entries[0], op="add", path="later", sha256="0" * 64
            )
        ]
    )
    report = materialize_unique(corpus.root, corpus.settings, unclean)
    assert report.waiting == ("generation 2 waits for clean documents of books",)
    assert len(report.entries) == 2


def test_a_changed_setting_decides_anew_and_signatures_stay(corpus):
    grow(corpus, [FIRST])
    kept = len(corpus.kept())
    corpus.minhash = MinHashSettings(threshold=0.99)
    report = corpus.run()
    assert report.num_done == 2
    assert len(corpus.kept()) == kept + 2
    corpus.minhash = MinHashSettings(bands=7)
    before = Manifest.load(corpus.root, "signatures").digest
    corpus.run()
    assert Manifest.load(corpus.root, "signatures").digest == before


def test_the_guard_is_no_part_of_the_result(corpus):
    grow(corpus, [FIRST])
    corpus.minhash = MinHashSettings(max_source_loss=0.5)
    assert corpus.run().num_done == 0


def test_without_minhash_only_equal_texts_are_dropped(tmp_path):
    corpus = SmallCorpus(str(tmp_path), minhash=None)
    report = grow(corpus, [FIRST, SECOND]).run()
    rules = {row["rule"] for row in decisions(corpus).values()}
    assert rules == {None, "exact_duplicate", "unchanged"}
    assert "estimated_recall" not in report.facts


def test_a_source_that_nearly_vanishes_stops_the_run_before_anything_is_decided(corpus):
    corpus.land({"wiki/a": [article(1, edits=number % 3) for number in range(150)]})
    with pytest.raises(LossLimitError, match=r"wiki loses 149 of 150 .*\(99.33%") as stopped:
        corpus.run()
    assert str(stopped.value).count(" duplicate") >= 1
    assert "similarity 1.000" in str(stopped.value)
    assert Manifest.load(corpus.root, "unique").entries() == []
    corpus.minhash = MinHashSettings(max_source_loss=1.0)
    assert corpus.run().num_done == 1


def test_few_documents_are_not_guarded(corpus):
    corpus.land({"wiki/a": [article(1)] * 50})
    corpus.run()
    assert corpus.kept() == [article(1)]


def test_an_empty_file_and_an_empty_generation(corpus):
    grow(corpus, [{"wiki/a": []}, {"wiki/b": [None]}, {"wiki/c": [article(1)]}])
    assert corpus.kept() == [article(1)]


def test_sources_that_left_the_configuration_keep_their_place(tmp_path):
    corpus = SmallCorpus(str(tmp_path), priorities={"wiki": 3, "books": 1})
    grow(corpus, [FIRST])
    before = Manifest.load(corpus.root, "unique").digest
    del corpus.priorities["wiki"]
    assert corpus.run().num_done == 0
    assert Manifest.load(corpus.root, "unique").digest == before


def test_edits_are_cut_and_spans_move(corpus):
    grow(corpus, [{"wiki/a": ["Grüße an alle, heute.", article(1), "untouched"]}])
    ((clean, unique),) = corpus.parts()
    edits = [
        [
            {"start": 3, "end": 4, "replacement": "", "rule": "test"},
            {"start": 7, "end": 11, "replacement": "AN", "rule": "test"},
        ]
    ]
    with pytest.raises(IntegrityError, match="cuts a character"):
        _read_with(corpus, clean, unique, edits)
    edits[0][0] = {"start": 0, "end": 2, "replacement": "", "rule": "test"}
    assert _read_with(corpus, clean, unique, edits)[0] == "üßeANalle, heute."
    assert _read_with(corpus, clean, unique, edits)[2] == "untouched"


def _read_with(corpus, clean, unique, edits):
    table = pa.Table.from_pylist(
        [{"keep": True, "edits": row} for row in [*edits, [], []]], schema=UNIQUE
    )
    name = f"unique/wiki/{hashlib.sha256(repr(edits).encode()).hexdigest()}.parquet"
    data = corpus.root.publish_table(name, UNIQUE, table)
    edited = dataclasses.replace(unique, objects={**unique.objects, "data": data})
    return [
        text
        for batch in read_unique(corpus.root, clean, edited, ["text", "spans"])
        for text in batch["text"].to_pylist()
    ]


def test_texts_are_read_in_the_columns_asked_for(corpus):
    grow(corpus, [{"wiki/a": [article(1), article(1), article(2)]}])
    ((clean, unique),) = corpus.parts()
    (batch,) = read_unique(corpus.root, clean, unique, ["row", "doc_id", "landed_path"])
    assert batch.schema.names == ["row", "doc_id", "landed_path"]
    assert batch["row"].to_pylist() == [0, 2]


def test_entries_that_do_not_belong_together_are_refused(corpus):
    grow(corpus, [{"wiki/a": [article(1)]}, {"wiki/b": [article(2), article(3)]}])
    (first, _), (_, second) = corpus.parts()
    with pytest.raises(IntegrityError, match="decides 2 rows"):
        list(read_unique(corpus.root, first, second, ["text"]))


def test_a_kept_document_is_never_displaced(corpus):
    corpus.priorities = {"wiki": 0, "books": 9}
    grow(corpus, [{"wiki/a": [article(1)]}])
    grow(corpus, [{"books/x": [article(1), article(1, edits=1)]}])
    rules = [row["rule"] for row in decisions(corpus).values()]
    assert rules == [None, "exact_duplicate", "near_duplicate"]


def test_what_is_taken_down_goes_on_counting_as_kept(corpus):
    """Taking down masks what is published; a copy that lands later is still a duplicate."""
    grow(corpus, [{"wiki/a": [article(1)]}])
    (document,) = corpus.texts_by_id()
    record = f'{{"seq": 1, "op": "takedown", "doc_id": "{document.hex()}"}}'.encode()
    corpus.root.publish_bytes("dataset/takedowns/00000001.json", record)
    grow(corpus, [{"wiki/b": [article(1), article(1, edits=1)]}])
    assert corpus.kept() == [article(1)]


def test_nothing_is_withdrawn_where_nothing_changed(corpus):
    grow(corpus, [FIRST])
    (table,) = withdrawn_documents(corpus.root).values()
    assert table.num_rows == 0
    assert np.all([batch.num_rows == 0 for batch in table.to_batches()])


CHINESE = (
    "北京大学的研究人员昨天宣布、他们在四川省发现了一种新的恐龙化石。这种恐龙生活在大约一亿六千万年前、"
    "身长超过二十米、是当时陆地上最大的动物之一。研究小组负责人表示、这一发现有助于了解恐龙的演化过程。"
    "化石保存得非常完整、包括头骨、脊椎和四肢的大部分骨骼、将于明年春天在自然博物馆展出。"
)


def test_an_edited_chinese_copy_is_found(corpus):
    corpus.language = "zh"
    edited = CHINESE.replace("昨天", "今天").replace("、", ", ").replace("。", "!\n")
    corpus.land({"wiki/a": [CHINESE, edited, CHINESE[:60]]})
    corpus.run()
    assert [row["rule"] for row in decisions(corpus).values()] == [None, "near_duplicate", None]
    # As words it would be a few long ones, nearly all of them touched by the edits.
    assert len(shingle_set(CHINESE)) < 20


def test_shingles_of_characters_for_everything(corpus):
    corpus.minhash = MinHashSettings(shingles="characters")
    corpus.land({"wiki/a": [article(1), article(1, edits=1), article(2)]})
    corpus.run()
    assert [row["rule"] for row in decisions(corpus).values()] == [None, "near_duplicate", None]


def test_bands_that_find_little_are_warned_of(corpus, caplog):
    corpus.minhash = MinHashSettings(num_perm=16, bands=2)
    corpus.land({"wiki/a": [article(1)]})
    corpus.run()
    assert "2 bands of 8 rows find an expected 0.471" in caplog.text


def test_rows_that_do_not_fill_the_signature(corpus):
    corpus.minhash = MinHashSettings(preset="optimum", num_perm=128)
    corpus.land({"wiki/a": [article(1), article(1, edits=1), article(2)]})
    corpus.run()
    assert [row["rule"] for row in decisions(corpus).values()] == [None, "near_duplicate", None]


class Killed(BaseException):
    """Stands for kill -9: nothing may catch it and tidy up."""


def kill_after(patch, count):
    """Let `count` changes to the store happen, then die before the next one."""
    left = [count]

    def counted(method):
        def call(self, *args, **kwargs):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return method(self, *args, **kwargs)

        return call

    for name in ("create", "replace", "put_file"):
        patch.setattr(LocalStorage, name, counted(getattr(LocalStorage, name)))
    return left


def test_a_kill_anywhere_is_repaired_by_the_next_run(tmp_path):
    whole = SmallCorpus(str(tmp_path / "whole"))
    whole.land(FIRST)
    whole.land(SECOND)
    with pytest.MonkeyPatch.context() as patch:
        left = kill_after(patch, 10**9)
        expected = whole.run().digest
        changes = 10**9 - left[0]
    cut = SmallCorpus(str(tmp_path / "cut"))
    cut.land(FIRST)
    cut.land(SECOND)
    # Killed again and again, always a little later, on one and the same root.
    for count in range(0, changes, 3):
        with pytest.MonkeyPatch.context() as patch:
            kill_after(patch, count)
            try:
                cut.run()
            except Killed:
                continue
            break
    assert cut.run().digest == expected
