"""What the documents and examples say is true: configurations load, commands exist, code runs."""

import re
from pathlib import Path

import pytest

from assets.settings.load import load_settings
from dagster_project.command_line.parser import build_parser
from tests.journey.corpus import make_corpus, make_settings, run_journey

CHECKOUT = Path(__file__).resolve().parents[1]
DOCUMENTS = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
CONFIGS = sorted((CHECKOUT / "configs").glob("*.yaml"))
_CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_configuration_loads(path, monkeypatch):
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"\$\{([A-Z_]+)\}", text):
        monkeypatch.setenv(name, "/corpora")
    assert load_settings(path).sources


def test_the_corpus_configuration_has_eight_sources(monkeypatch):
    monkeypatch.setenv("OLMO_CORPUS", "/corpora")
    names = [source.name for source in load_settings(CHECKOUT / "configs/corpus.yaml").sources]
    assert len(names) == len(set(names)) == 8


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_in_the_documents_exists(document):
    text = document.read_text(encoding="utf-8")
    known = set(build_parser().format_help().split())
    for command in re.findall(r"(?:^|`)olmo-data ([a-z][a-z-]+)", text, re.MULTILINE):
        assert command in known, f"{document.name}: olmo-data {command}"
    for target in re.findall(r"`make ([a-z][a-z-]+)`", text):
        makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
        assert f"\n{target}:" in makefile, f"{document.name}: make {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_paths_in_the_documents_exist(document):
    text = document.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:configs|docs|examples|benchmarks|assets|tests)/[\w./-]+)`", text):
        if "mine" not in name:
            assert (CHECKOUT / name).exists(), f"{document.name}: {name}"


def test_the_code_in_the_documents_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    make_corpus(tmp_path / "corpus")
    run_journey(make_settings(tmp_path / "corpus", tmp_path / "data/demo"))
    monkeypatch.chdir(tmp_path)
    for name in ("README.md", "docs/loader.md"):
        blocks = _CODE.findall((CHECKOUT / name).read_text(encoding="utf-8"))
        assert blocks
        for block in blocks:
            exec(compile(block, name, "exec"), {})
