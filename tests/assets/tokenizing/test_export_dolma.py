from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from assets.errors import ConfigurationError
from assets.tokenizing.export_dolma import export_dolma
from dagster_project.command_line.main import main
from tests.journey.corpus import make_corpus, make_settings, run_journey


def lines_of(folder: Path) -> dict[str, list[dict[str, object]]]:
    return {
        str(path.relative_to(folder)): [
            json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()
        ]
        for path in sorted(folder.rglob("*.json.gz"))
    }


def test_kept_documents_and_attributes_are_written_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    make_corpus(tmp_path / "corpus")
    root = run_journey(make_settings(tmp_path / "corpus", tmp_path / "root"))
    report = export_dolma(root, tmp_path / "out")
    documents = lines_of(tmp_path / "out/documents")
    attributes = lines_of(tmp_path / "out/attributes/olmo_data")
    assert documents.keys() == attributes.keys()
    assert report.files == len(documents)
    assert report.documents == sum(map(len, documents.values())) > 0
    for name, lines in documents.items():
        assert [line["id"] for line in lines] == [line["id"] for line in attributes[name]]
        for document, beside in zip(lines, attributes[name], strict=True):
            assert document["source"] == name.split("/")[0]
            assert {"id", "text", "source", "metadata"} <= document.keys()
            assert isinstance(beside["attributes"], dict)
            for spans in beside["attributes"].values():
                assert all(len(span) == 3 for span in spans)
    ids = [line["id"] for lines in documents.values() for line in lines]
    assert len(set(ids)) == len(ids)
    export_dolma(root, tmp_path / "again")
    for path in (tmp_path / "out").rglob("*.json.gz"):
        assert (
            path.read_bytes()
            == (tmp_path / "again" / path.relative_to(tmp_path / "out")).read_bytes()
        )
    with pytest.raises(ConfigurationError, match="exists"):
        export_dolma(root, tmp_path / "out")
    with pytest.raises(ConfigurationError, match="nothing to export"):
        export_dolma(root, tmp_path / "none", sources=("no-such",))


def test_the_command_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", "dolma", "--help"])
    assert "must not exist" in capsys.readouterr().out
