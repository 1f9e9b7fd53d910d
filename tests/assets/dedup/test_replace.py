"""Changed files: unchanged records keep their first document, the missing ones are withdrawn."""

import pytest

from assets.dedup.unique import withdrawn_documents
from assets.document import doc_id
from assets.manifest import Manifest
from assets.sources.landing_log import read_log
from tests.assets.dedup.small_corpus import SmallCorpus, article

A, B, C, D, E = (article(seed) for seed in range(20, 25))


@pytest.fixture
def corpus(tmp_path):
    return SmallCorpus(str(tmp_path / "root"))


def land(corpus, texts, path="wiki/a"):
    """Land one version of a file, decide it; return its documents in order."""
    log = corpus.land({path: texts})
    corpus.run()
    (version,) = log.generations[-1].versions
    return [doc_id(version.file_id, number) for number in range(len(texts))]


def outcome(corpus, document):
    """Return the rule and the survivor of a document; (None, None) if it was kept."""
    ledger = corpus.ledger()
    row = ledger["doc_id"].to_pylist().index(document)
    return ledger["rule"][row].as_py(), ledger["survivor_id"][row].as_py()


def withdrawn(corpus):
    """Return the withdrawn documents of each generation that has any."""
    return {
        number: table["doc_id"].to_pylist()
        for number, table in sorted(withdrawn_documents(corpus.root).items())
        if table.num_rows
    }


def test_an_appended_file_keeps_its_documents(corpus):
    old = land(corpus, [A, B])
    new = land(corpus, [A, B, C])
    assert [outcome(corpus, document) for document in new] == [
        ("unchanged", old[0]),
        ("unchanged", old[1]),
        (None, None),
    ]
    assert withdrawn(corpus) == {}


def test_a_missing_record_is_withdrawn_and_its_text_may_come_again(corpus):
    old = land(corpus, [A, B])
    land(corpus, [A, C])
    assert withdrawn(corpus) == {2: [old[1]]}
    (table,) = [table for number, table in withdrawn_documents(corpus.root).items() if number == 2]
    (row,) = table.to_pylist()
    assert (row["source"], row["generation"], row["landed_path"]) == ("wiki", 1, "a")
    later = land(corpus, [B, A], "wiki/b")
    assert outcome(corpus, later[0]) == (None, None)
    assert outcome(corpus, later[1]) == ("exact_duplicate", old[0])


def test_withdrawn_counts_as_gone_for_its_own_generation(corpus):
    land(corpus, [A])
    log = corpus.land({"wiki/a": [B], "wiki/z": [A, article(20, edits=1)]})
    corpus.run()
    other = next(version for version in log.generations[-1].versions if version.path == "z")
    kept = doc_id(other.file_id, 0)
    assert outcome(corpus, kept) == (None, None)
    assert outcome(corpus, doc_id(other.file_id, 1)) == ("near_duplicate", kept)


def test_a_slightly_changed_record_takes_the_place_of_the_old_one(corpus):
    old = land(corpus, [A])
    (new,) = land(corpus, [article(20, edits=1)])
    assert outcome(corpus, new) == (None, None)
    assert withdrawn(corpus) == {2: old}


def test_records_are_matched_in_order_and_one_to_one(corpus):
    old = land(corpus, [A, A, B, A])
    new = land(corpus, [B, A, A, A, A])
    matched = [outcome(corpus, document) for document in new]
    assert matched[:4] == [("unchanged", old[at]) for at in (2, 0, 1, 3)]
    # The fourth copy has no counterpart; it is a duplicate like any other.
    assert matched[4] == ("exact_duplicate", old[0])
    assert withdrawn(corpus) == {}


def test_a_chain_leads_to_the_first_document(corpus):
    first = land(corpus, [A, B])
    land(corpus, [A, C])
    third = land(corpus, [D, A])
    assert outcome(corpus, third[1]) == ("unchanged", first[0])
    fourth = land(corpus, [D])
    assert outcome(corpus, fourth[0]) == ("unchanged", third[0])
    assert withdrawn(corpus)[4] == [first[0]]


def test_a_revert_makes_withdrawn_texts_new_documents(corpus):
    old = land(corpus, [A, B])
    middle = land(corpus, [A, C])
    back = land(corpus, [A, B])
    assert len({*old, *middle, *back}) == 6
    assert [outcome(corpus, document) for document in back] == [
        ("unchanged", old[0]),
        (None, None),
    ]
    assert withdrawn(corpus) == {2: [old[1]], 3: [middle[1]]}


def test_duplicates_dropped_earlier_are_not_revived(corpus):
    old = land(corpus, [A])
    copy = land(corpus, [A], "wiki/b")
    land(corpus, [B])
    assert outcome(corpus, copy[0]) == ("exact_duplicate", old[0])
    # Its file grows: the copy is unchanged, and stays dropped.
    again = land(corpus, [A, C], "wiki/b")
    assert outcome(corpus, again[0]) == ("unchanged", copy[0])
    assert corpus.kept().count(A) == 1


def test_a_dropped_document_is_not_withdrawn(corpus):
    land(corpus, [A])
    land(corpus, [A, B], "wiki/b")
    land(corpus, [B], "wiki/b")
    assert withdrawn(corpus) == {}


def test_a_file_that_became_empty_withdraws_everything(corpus):
    old = land(corpus, [A, None, B])
    land(corpus, [])
    assert withdrawn(corpus) == {2: [old[0], old[2]]}
    assert outcome(corpus, land(corpus, [B, A], "wiki/c")[0]) == (None, None)


def test_unchanged_records_are_no_losses(corpus):
    texts = [article(seed) for seed in range(100, 250)]
    land(corpus, texts)
    land(corpus, [*texts, A])
    counts = corpus.run().by_source()["wiki"]
    assert counts["dropped"] == {"unchanged": 150}
    assert counts["kept"] == 151


def test_a_large_file_may_span_parts(tmp_path):
    corpus = SmallCorpus(str(tmp_path), rows_per_part=2)
    old = land(corpus, [A, B, C, D, E])
    new = land(corpus, [E, D, article(1), B, A])
    assert [outcome(corpus, document) for document in new] == [
        ("unchanged", old[4]),
        ("unchanged", old[3]),
        (None, None),
        ("unchanged", old[1]),
        ("unchanged", old[0]),
    ]
    assert withdrawn(corpus) == {2: [old[2]]}


def test_replacing_step_by_step_equals_a_replay(tmp_path):
    versions = [[A, B, C], [A, C, D], [B, A, D], [A, B, C], [E]]
    grown, replayed = SmallCorpus(str(tmp_path / "1")), SmallCorpus(str(tmp_path / "2"))
    for texts in versions:
        land(grown, texts)
        replayed.land({"wiki/a": texts})
    replayed.run()
    assert len(read_log(replayed.root).generations) == 5
    digests = {Manifest.load(item.root, "unique").digest for item in (grown, replayed)}
    assert len(digests) == 1
