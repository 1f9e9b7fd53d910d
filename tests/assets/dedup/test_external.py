"""Dropping from A what is in B: found exactly and nearly, named in the ledger, part of nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.dedup.held import find_held
from assets.dedup.pairs import ClusterFinder
from assets.dedup.report import stage_facts
from assets.errors import ConfigurationError, IntegrityError, PinnedRootError
from assets.manifest import Manifest
from assets.settings.dedup import DedupSettings, MinHashSettings, TextSetSettings
from assets.stage import check_accounting
from tests.assets.dedup.small_corpus import SmallCorpus, article

CHINESE = (
    "北京大学的研究人员昨天宣布、他们在四川省发现了一种新的恐龙化石。这种恐龙生活在大约一亿六千万年前、"
    "身长超过二十米、是当时陆地上最大的动物之一。研究小组负责人表示、这一发现有助于了解恐龙的演化过程。"
)


def write_jsonl(corpus: SmallCorpus, name: str, records: list[dict[str, object]]) -> None:
    path = Path(corpus.folder) / "others" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


@pytest.fixture
def corpus(tmp_path: Path) -> SmallCorpus:
    corpus = SmallCorpus(str(tmp_path))
    write_jsonl(
        corpus,
        "b.jsonl.gz",
        [{"text": article(1), "id": "B1"}, {"text": article(2, edits=1)}, {"text": "a b"}],
    )
    table = pa.table({"body": [CHINESE, article(9)], "key": ["P0", "P1"], "unused": [1, 2]})
    pq.write_table(table, tmp_path / "others" / "c.parquet")
    corpus.dedup["against"] = (
        TextSetSettings(name="b", paths=("others/*.jsonl.gz",)),
        TextSetSettings(name="c", paths=("others/*.parquet",), fields=("body",), id_field="key"),
    )
    return corpus


TEXTS = [
    article(1).upper(),
    article(1, edits=2),
    article(2),
    article(3),
    article(3, edits=1),
    "A  b",
    article(9),
]


def rows(corpus: SmallCorpus) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = corpus.ledger().to_pylist()
    return found


def test_what_another_set_holds_is_dropped_and_the_ledger_names_it(corpus: SmallCorpus):
    corpus.land({"wiki/a": TEXTS})
    report = corpus.run()
    check_accounting(report)
    assert corpus.kept() == [article(3)]
    found = rows(corpus)
    assert [row["rule"] for row in found] == [
        "exact_in_external",
        "near_in_external",
        "near_in_external",
        None,
        "near_duplicate",
        "exact_in_external",
        "exact_in_external",
    ]
    assert [row["detail"] and json.loads(row["detail"]) for row in found] == [
        {"item": "B1", "set": "b"},
        {"item": "B1", "set": "b"},
        {"item": "b.jsonl.gz:1", "set": "b"},
        None,
        None,
        {"item": "b.jsonl.gz:2", "set": "b", "too_short_for_minhash": True},
        {"item": "P1", "set": "c"},
    ]
    for row in found:
        outside = (row["rule"] or "").endswith("external")
        assert (row["survivor_id"] is None) == (outside or row["decision"] == "kept")
    assert found[0]["similarity"] == 1.0
    assert found[1]["threshold"] == 0.8 <= found[1]["similarity"] < 1.0
    facts = stage_facts(corpus.settings.dedup, Manifest.load(corpus.root, "unique"))
    pairs = {
        row["survivor_source"]: row["documents"] for row in facts["removed_by_source_pair"].rows
    }
    assert pairs == {"against:b": 4, "against:c": 1, "wiki": 1}


def test_external_documents_are_shown_as_what_they_are(corpus: SmallCorpus):
    corpus.land({"wiki/a": TEXTS})
    corpus.run()
    ids = {text: document for document, text in corpus.texts_by_id().items()}
    cluster = ClusterFinder(corpus.root).find(ids[article(1, edits=2)])
    assert (cluster.kept, cluster.num_dropped) == (None, 2)
    assert cluster.external == '{"item": "B1", "set": "b"}'


def test_growing_equals_replaying_and_kept_documents_still_count(
    tmp_path: Path, corpus: SmallCorpus
):
    landings = [{"wiki/a": TEXTS[:4]}, {"wiki/b": TEXTS[3:]}, {"wiki/a": [article(2), article(5)]}]
    for landing in landings:
        corpus.land(landing)
        corpus.run()
    other = SmallCorpus(str(tmp_path / "other"), processes=2, rows_per_part=2)
    (tmp_path / "other").mkdir(exist_ok=True)
    (tmp_path / "others").rename(tmp_path / "other" / "others")
    other.dedup = corpus.dedup
    for landing in landings:
        other.land(landing)
    other.run()
    columns = ["doc_id", "rule", "similarity", "survivor_id", "detail"]
    assert other.ledger().select(columns) == corpus.ledger().select(columns)
    assert corpus.kept() == [article(3), article(5)]


def test_language_decides_between_words_and_characters(corpus: SmallCorpus):
    corpus.language = "zh"
    corpus.land({"wiki/a": [CHINESE.replace("昨天", "今天")]})
    corpus.run()
    assert [row["rule"] for row in rows(corpus)] == ["near_in_external"]


def test_without_minhash_equal_texts_only(corpus: SmallCorpus):
    corpus.minhash = None
    corpus.land({"wiki/a": TEXTS[:3]})
    corpus.run()
    assert [row["rule"] for row in rows(corpus)] == ["exact_in_external", None, None]


def test_another_set_decides_anew_and_is_refused_once_published(corpus: SmallCorpus):
    corpus.land({"wiki/a": TEXTS})
    corpus.run()
    write_jsonl(corpus, "more.jsonl.gz", [{"text": article(3)}])
    corpus.run()
    assert corpus.kept() == []
    corpus.root.publish_bytes("dataset/dataset.json", b"{}")
    corpus.run()
    (Path(corpus.folder) / "others" / "more.jsonl.gz").unlink()
    with pytest.raises(PinnedRootError, match=r"other external documents.*dedup\.against"):
        corpus.run()


def test_a_damaged_set_is_made_again(corpus: SmallCorpus):
    corpus.land({"wiki/a": [article(3)]})
    corpus.run()
    (path,) = (Path(corpus.folder) / "models").rglob("band_keys.npy")
    path.chmod(0o600)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    corpus.land({"wiki/b": [article(1)]})
    corpus.run()
    assert corpus.kept() == [article(3)]
    assert path.read_bytes() == whole
    (record,) = (Path(corpus.folder) / "models").rglob("set.json")
    record.chmod(0o600)
    record.write_bytes(b"{")
    with pytest.raises(IntegrityError, match=r"set\.json is damaged"):
        corpus.run()


def test_an_emptied_or_textless_record_is_counted(corpus: SmallCorpus, caplog):
    write_jsonl(corpus, "b.jsonl.gz", [{"text": article(1)}, {"body": "x"}, {"text": 7}])
    corpus.land({"wiki/a": [article(1)]})
    corpus.run()
    assert "2 of 3 records" in caplog.text
    assert corpus.kept() == []


@pytest.mark.parametrize("records", [[], [{"body": "x"}]])
def test_a_set_without_texts_is_refused(corpus: SmallCorpus, records: list[dict[str, object]]):
    write_jsonl(corpus, "b.jsonl.gz", records)
    corpus.land({"wiki/a": [article(1)]})
    with pytest.raises(ConfigurationError, match=r"0 of \d records"):
        corpus.run()


def test_two_sets_of_one_name_are_refused():
    one = TextSetSettings(name="b", paths=("x",))
    with pytest.raises(ConfigurationError, match="appears more than once"):
        DedupSettings(against=(one, one))


def test_asking_what_a_set_holds_changes_nothing(corpus: SmallCorpus):
    wanted = corpus.dedup.pop("against")
    corpus.land({"wiki/a": TEXTS[:5]})
    corpus.land({"books/b": TEXTS[5:]})
    corpus.run()
    before = Manifest.load(corpus.root, "unique").digest
    held = list(find_held(corpus.root, corpus.settings, wanted))
    assert [(item.source, item.is_exact, item.set_name, item.item_id) for item in held] == [
        ("wiki", True, "b", "B1"),
        ("wiki", False, "b", "b.jsonl.gz:1"),
        ("books", True, "b", "b.jsonl.gz:2"),
        ("books", True, "c", "P1"),
    ]
    assert Manifest.load(corpus.root, "unique").digest == before
    corpus.minhash = MinHashSettings(seed=2)
    with pytest.raises(ConfigurationError, match="another seed"):
        list(find_held(corpus.root, corpus.settings, wanted))
