"""`olmo-data pairs` and `olmo-data dedup`: what they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assets.settings.dedup import (
    DecontaminationSettings,
    RepeatedSpansSettings,
    TextSetSettings,
)
from dagster_project.command_line.main import main
from tests.assets.dedup.small_corpus import SmallCorpus, article


@pytest.fixture
def config(tmp_path: Path) -> str:
    corpus = SmallCorpus(str(tmp_path / "root"))
    corpus.land({"wiki/a": [article(1), article(1, edits=1), article(2)]})
    corpus.run()
    path = tmp_path / "config.yaml"
    path.write_text(
        "root: root\nsources: [{name: wiki, paths: ['*']}]\ntokenizer: {train: {vocab_size: 300}}\n"
    )
    return str(path)


def test_pairs_show_the_cluster_and_the_difference(config, capsys):
    corpus = SmallCorpus(str(Path(config).parent / "root"))
    ids = {text: doc.hex() for doc, text in corpus.texts_by_id().items()}
    assert main(["pairs", ids[article(1, edits=1)], "--config", config]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(ids[article(1)])
    assert "kept" in lines[0]
    assert lines[1].startswith(ids[article(1, edits=1)])
    assert "near_duplicate" in lines[1]
    assert "+ x1y0" in lines
    assert main(["pairs", ids[article(2)], "--config", config]) == 0
    assert "No document was dropped" in capsys.readouterr().out
    assert main(["pairs", "00" * 16, "--config", config]) == 1


def test_the_curve_of_a_preset_and_of_the_configuration(config, capsys):
    assert main(["dedup", "curve", "--preset", "classic"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("16 bands of 8 rows, 128 permutations")
    assert "Expected recall at 0.85 (threshold 0.80): 0.9938" in out
    assert main(["dedup", "curve", "--config", config]) == 0
    assert capsys.readouterr().out.startswith("14 bands of 8 rows")
    assert main(["dedup", "curve", "--num-perm", "16", "--bands", "2"]) == 0
    assert "below 0.95" in capsys.readouterr().out
    assert main(["dedup", "curve", "--bands", "15"]) == 1
    assert "nearest number that does is 14" in capsys.readouterr().err


def test_the_report_of_a_root(config, capsys):
    assert main(["dedup", "report", "--config", config]) == 0
    out = capsys.readouterr().out
    assert "removed share: 33.33% of the texts; 30-40 % is usual on raw web text" in out
    assert "MinHash alone" in out


def test_against_lists_what_another_set_holds(config, capsys, tmp_path):
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps({"text": article(2), "id": "B 2"}) + "\n")
    output = tmp_path / "held.jsonl"
    command = ["dedup", "against", "b", "b.jsonl", "--config", config, "--output", str(output)]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "1 kept documents are in b" in out
    assert "B 2" in out
    (line,) = map(json.loads, output.read_text().splitlines())
    assert (line["set"], line["item"], line["is_exact"]) == ("b", "B 2", True)
    assert main(command) == 1
    assert main(["dedup", "against", "b", "none*.jsonl", "--config", config]) == 1
    assert "no file matches" in capsys.readouterr().err


def test_spans_are_listed_where_they_were_looked_for(config, capsys):
    assert main(["dedup", "spans", "--config", config]) == 1
    assert "dedup.spans is off" in capsys.readouterr().err
    path = Path(config)
    path.write_text(path.read_text() + "dedup: {spans: {min_words: 50}}\n")
    corpus = SmallCorpus(str(path.parent / "root"), dedup={"spans": RepeatedSpansSettings()})
    corpus.run()
    assert main(["dedup", "spans", "--config", config]) == 0
    assert "No kept text repeats" in capsys.readouterr().out
    corpus.land({"wiki/b": [f"{article(3)} {article(2)}"]})
    corpus.run()
    assert main(["dedup", "spans", "--config", config]) == 0
    assert "120 words" in capsys.readouterr().out


def test_compact_says_how_many_runs_there_are(config, capsys):
    corpus = SmallCorpus(str(Path(config).parent / "root"))
    corpus.land({"wiki/b": [article(3)]})
    corpus.run()
    assert main(["dedup", "compact", "--config", config]) == 0
    assert "runs: 2 before, 1 now" in capsys.readouterr().out


def test_common_ngrams_and_contamination_by_set(config, capsys, tmp_path):
    assert main(["dedup", "contamination", "--config", config]) == 1
    assert "run `olmo-data run --until unique`" in capsys.readouterr().err
    (tmp_path / "quiz.jsonl").write_text(json.dumps({"text": article(2), "id": "q"}))
    path = Path(config)
    path.write_text(
        path.read_text() + "dedup: {decontaminate: {sets: [{name: quiz, paths: [quiz.jsonl]}]}}\n"
    )
    output = tmp_path / "common.txt"
    command = ["dedup", "common-ngrams", str(output), "--min-documents", "1", "--config", config]
    assert main(command) == 0
    assert "108 of 108 n-grams stand in at least 1 of 3 texts" in capsys.readouterr().out
    assert len(output.read_text().splitlines()) == 108
    corpus = SmallCorpus(str(path.parent / "root"))
    quiz = TextSetSettings(name="quiz", paths=(str(tmp_path / "quiz.jsonl"),))
    corpus.dedup["decontaminate"] = DecontaminationSettings(sets=(quiz,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OLMO_DATA_ALLOWED_PATHS", str(tmp_path))
        corpus.run()
    assert main(["dedup", "contamination", "--config", config]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["set", "items", "not_looked_for", "items_found"]
    assert lines[1].split()[:4] == ["quiz", "1", "0", "1"]
