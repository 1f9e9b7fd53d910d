from __future__ import annotations

import gzip
import io
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from assets.errors import ConfigurationError
from assets.root import Root
from assets.settings.reading import ReadSettings, RowFilter
from assets.settings.schema import EngineSettings, LimitSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings, TrainTokenizerSettings
from assets.sources.documents import materialize_documents
from assets.sources.formats.dolma import attribute_path, is_attribute_file
from assets.sources.formats.read import read_records
from assets.sources.landing import land
from tests.assets.sources.reading import outcome, outcomes
from tests.shared_data import shared_folder

DOCUMENTS = [{"id": str(number), "text": f"text {number}", "source": "s"} for number in range(4)]


def write(path: Path, lines: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def attributes_of(documents: list[dict[str, Any]], **values: Any) -> list[dict[str, Any]]:
    return [{"id": line["id"], "attributes": values} for line in documents]


def read_corpus(folder: Path, **read: Any) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Land a corpus and return its documents and how many records each rule took."""
    source = SourceSettings(
        name="test",
        paths=(str(folder / "**/*.json.gz"),),
        format="dolma",
        read=ReadSettings(**read),
    )
    settings = Settings(
        root=str(folder.parent / "root"),
        sources=(source,),
        tokenizer=TokenizerSettings(train=TrainTokenizerSettings(vocab_size=1000)),
        limits=LimitSettings(max_quarantined=None),
        engine=EngineSettings(processes=1),
        base_dir=str(folder.parent),
    )
    root = Root(settings.root)
    report = materialize_documents(root, settings, land(root, settings), ("test",))
    rows: list[dict[str, Any]] = []
    rules: Counter[str] = Counter()
    for entry in report.entries:
        rows += root.read_table(entry.objects["data"]).to_pylist()
        rules.update(entry.statistics["dropped"])
        rules.update(entry.statistics["quarantined"])
    for row in rows:
        row["metadata"] = json.loads(row["metadata"])
    return rows, rules


def test_where_attributes_lie() -> None:
    assert attribute_path("v1/documents/a/0.gz", "pii") == "v1/attributes/pii/a/0.gz"
    assert attribute_path("documents/documents/0.gz", "x") == "documents/attributes/x/0.gz"
    assert attribute_path("other/0.gz", "x") is None
    assert is_attribute_file("v1/attributes/pii/0.gz")
    assert not is_attribute_file("v1/documents/attributes/0.gz")


def test_attributes_join_their_documents(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write(corpus / "documents/a.json.gz", [*DOCUMENTS[:2], "\n", *DOCUMENTS[2:]])
    write(corpus / "attributes/one/a.json.gz", attributes_of(DOCUMENTS, x=1))
    write(corpus / "attributes/two/a.json.gz", attributes_of(DOCUMENTS, y=[[0, 6, 0.5]]))
    write(corpus / "attributes/unused/a.json.gz", ["not json\n"])
    rows, rules = read_corpus(corpus, attributes=("one", "two"))
    assert [row["user_id"] for row in rows] == ["0", "1", "2", "3"]
    assert rows[0]["metadata"] == {"source": "s", "attributes": {"x": 1, "y": [[0, 6, 0.5]]}}
    assert rules == {"attribute_file": 3}


@pytest.mark.parametrize(
    ("lines", "found", "lost"),
    [
        (attributes_of(DOCUMENTS, x=1)[:2], 2, 2),
        ([*attributes_of(DOCUMENTS, x=1), {"id": "9", "attributes": {}}], 4, 1),
        ([*attributes_of(DOCUMENTS, x=1)[:1], "{bad\n", *attributes_of(DOCUMENTS, x=1)[2:]], 3, 1),
        (attributes_of(DOCUMENTS[::-1], x=1), 0, 4),
        ([{"id": "0"}, *attributes_of(DOCUMENTS, x=1)[1:]], 3, 1),
        (None, 0, 1),
    ],
)
def test_attributes_of_other_documents_are_losses(
    tmp_path: Path, lines: list[Any] | None, found: int, lost: int
) -> None:
    corpus = tmp_path / "corpus"
    write(corpus / "documents/a.json.gz", list(DOCUMENTS))
    if lines is not None:
        write(corpus / "attributes/one/a.json.gz", lines)
    rows, rules = read_corpus(corpus, attributes=("one",))
    assert (len(rows), rules["bad_attributes"]) == (found, lost)


def test_other_attributes_are_another_decoding(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write(corpus / "documents/a.json.gz", list(DOCUMENTS))
    write(corpus / "attributes/one/a.json.gz", attributes_of(DOCUMENTS, x=1))
    assert "attributes" not in read_corpus(corpus)[0][0]["metadata"]
    assert read_corpus(corpus, attributes=("one",))[0][0]["metadata"]["attributes"] == {"x": 1}


def test_later_attributes_leave_earlier_documents_alone(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    rows: list[dict[str, Any]] = []
    for name, value in (("a", 1), ("b", 3)):
        write(corpus / f"documents/{name}.json.gz", list(DOCUMENTS))
        write(corpus / f"attributes/one/{name}.json.gz", attributes_of(DOCUMENTS, x=value))
        rows, _ = read_corpus(corpus, attributes=("one",))
        write(corpus / f"attributes/one/{name}.json.gz", attributes_of(DOCUMENTS, x=value + 1))
    assert {row["landed_path"]: row["metadata"]["attributes"] for row in rows} == {
        "documents/a.json.gz": {"x": 1},
        "documents/b.json.gz": {"x": 3},
    }


def test_filters_drop_by_value() -> None:
    lines = b"".join(
        json.dumps({"text": str(number), "m": {"score": value}}).encode() + b"\n"
        for number, value in enumerate([0.1, 0.9, True, None, "x", 5])
    )
    outside = ReadSettings(drop=(RowFilter(path="m.score", above=0.5, below=0.2),))
    missing = "<filter_value_missing>"
    expected = ["<filtered>", "<filtered>", missing, missing, missing, "<filtered>"]
    assert outcomes(lines, read=outside) == expected
    equal = ReadSettings(drop=(RowFilter(path="m.score", equals=True, missing="keep"),))
    assert outcomes(lines, read=equal) == ["0", "1", "<filtered>", "3", "4", "5"]
    absent = ReadSettings(drop=(RowFilter(path="m.other.0", above=1.0),))
    assert set(outcomes(lines, read=absent)) == {missing}
    with pytest.raises(ConfigurationError, match="above and/or below, or equals"):
        RowFilter(path="x")


def test_the_toolkits_own_mixer_keeps_the_same_documents(tmp_path: Path) -> None:
    fixtures = shared_folder("dolma_fixtures")
    corpus = tmp_path / "corpus"
    shutil.copytree(fixtures / "provided/documents", corpus / "documents")
    shutil.copytree(fixtures / "provided/attributes", corpus / "attributes")
    for path in (corpus, *corpus.rglob("*")):
        path.chmod(0o755)
    rows, rules = read_corpus(
        corpus,
        attributes=("pii", "toxicity"),
        drop=(
            RowFilter(path="metadata.length", above=9999, below=500),
            RowFilter(path="attributes.pii.too_much_pii", equals=True, missing="keep"),
            RowFilter(path="attributes.toxicity", above=0.8, missing="keep"),
        ),
    )
    with gzip.open(fixtures / "expected/mixer.json.gz", "rt") as file:
        expected = [json.loads(line) for line in file]
    assert [row["user_id"] for row in rows] == [line["id"] for line in expected]
    assert [row["text"] for row in rows] == [line["text"] for line in expected]
    attributes = [row["metadata"]["attributes"] for row in rows]
    assert attributes == [line.get("attributes", {}) for line in expected]
    assert rules == {"attribute_file": 4, "filtered": 4}
    assert rows[0]["url"] == expected[0]["metadata"]["url"]


def test_attributes_nested_too_deep_cost_their_document() -> None:
    nested = b'{"id": "1", "attributes": {"a": ' + b"[" * 200 + b"]" * 200 + b"}}"
    records = read_records(
        lambda: io.BytesIO(b'{"id": "1", "text": "words"}\n'),
        source=SourceSettings(
            name="test", paths=("*",), format="dolma", read=ReadSettings(attributes=("t",))
        ),
        landed_path="documents/a.json",
        beside={"t": io.BytesIO(nested)},
    )
    assert [outcome(record) for record in records] == ["<bad_attributes>"]
