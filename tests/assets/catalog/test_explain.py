"""A document's life, compared with what a reading of everything says."""

import pytest

from assets.catalog.explain import Explainer, parse_doc_id
from assets.errors import ConfigurationError
from assets.manifest import Manifest
from assets.ordering.published import read_shard_index
from assets.sharding.spans import find_spans


def ledger(root, stage):
    for entry in Manifest.load(root, stage).entries():
        if entry.source:
            yield from root.read_table(entry.objects["ledger"]).to_pylist()


def test_every_record_is_explained_as_its_ledgers_say(grown):
    root, settings = grown
    explainer = Explainer(root, settings)
    decisions = {
        stage: {row["doc_id"]: (row["decision"], row["rule"]) for row in ledger(root, stage)}
        for stage in ("documents", "clean", "unique", "tokens")
    }
    assert len(decisions["documents"]) > 20
    for doc_id in decisions["documents"]:
        found = {
            chapter.stage: (chapter.what, chapter.facts.get("rule"))
            for chapter in explainer.explain(doc_id)
        }
        for stage, by_id in decisions.items():
            assert found.get(stage) == by_id.get(doc_id), (stage, doc_id.hex())


def test_spans_are_those_of_a_full_scan(grown):
    root, settings = grown
    explainer = Explainer(root, settings)
    ids = [row["doc_id"] for row in ledger(root, "tokens")]
    expected = find_spans(root, read_shard_index(root).records, ids)
    for doc_id in ids:
        span = explainer.find_span(doc_id)
        found = [] if span is None else [(span.shard, span.start, span.end)]
        assert found == expected.get(doc_id, [])


def test_a_withdrawn_document_and_a_replaced_file_say_so(grown):
    root, settings = grown
    explainer = Explainer(root, settings)
    entry = next(
        item for item in Manifest.load(root, "documents").entries()
        if any(span.landed_path == "a.jsonl.gz" for span in item.files)
    )  # fmt: skip
    file_id = next(span.file_id for span in entry.files if span.landed_path == "a.jsonl.gz")
    chapters = explainer.explain(parse_doc_id(file_id + "0" * 16))
    assert chapters[0].facts["replaced in generation"] == 2
    withdrawn = [chapter for chapter in chapters if chapter.stage == "takedown"]
    assert [chapter.what for chapter in withdrawn] == ["withdraw"]
    # The second record is in the new file as well: there it is unchanged, here it stays live.
    assert not [
        chapter
        for chapter in explainer.explain(parse_doc_id(file_id + "0" * 15 + "1"))
        if chapter.stage == "takedown"
    ]


def test_a_duplicate_names_its_survivor_for_people(grown):
    root, settings = grown
    row = next(row for row in ledger(root, "unique") if row["rule"] == "near_duplicate")
    chapter = Explainer(root, settings).explain(row["doc_id"])[-1]
    assert chapter.facts["survivor_id"] == row["survivor_id"].hex()
    assert chapter.facts["survivor"].startswith("books/")
    assert chapter.facts["similarity"] >= 0.8


@pytest.mark.parametrize("text", ["", "12", "g" * 32, "0" * 31, "0" * 34])
def test_what_is_not_an_id_is_refused(text):
    with pytest.raises(ConfigurationError, match="32 hexadecimal digits"):
        parse_doc_id(text)


def test_unknown_files_and_records_are_named(grown):
    root, settings = grown
    explainer = Explainer(root, settings)
    with pytest.raises(ConfigurationError, match="no landed file"):
        explainer.explain(bytes(16))
    known = next(ledger(root, "documents"))["doc_id"]
    with pytest.raises(ConfigurationError, match="has no record 1,000,000"):
        explainer.explain(known[:8] + (10**6).to_bytes(8, "big"))
