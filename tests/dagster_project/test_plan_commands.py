from __future__ import annotations

from pathlib import Path

import pytest

from dagster_project.command_line.main import main
from dagster_project.command_line.parser import build_parser
from tests.shared_data import shared_folder


def test_a_configuration_is_compared_with_its_provenance(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = shared_folder("olmo_mix")
    status = main(
        [
            "provenance",
            "check",
            str(folder / "OLMo2-7B-stage1.yaml"),
            str(folder / "provenance.csv"),
        ]
    )
    shown = capsys.readouterr()
    assert status == 1
    assert "1,122 paths, 1,117 different; 1,119 rows" in shown.out
    assert shown.out.count("read 2 times") == 5
    assert "1 missing, 1 extra, 2 duplicate" in shown.err


def test_a_mix_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_folder("olmo_mix") / "OLMo2-7B-stage1.yaml"
    assert main(["plan", "describe", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "sequence length 4096, seed 6198, dtype uint32, global batch 1024" in shown
    assert "1,122 paths, 1,117 different" in shown


def test_a_budget_without_a_data_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(
        f"root: {tmp_path / 'root'}\nsources: [{{name: web, paths: ['*.txt']}}]\n"
        "tokenizer: {train: {vocab_size: 400}}\n"
    )
    arguments = ["plan", "--config", str(config), "budget"]
    assert main([*arguments, "--params", "70e9", "--tokens", "2e12"]) == 0
    shown = capsys.readouterr().out
    assert "D / 20 N = 1.43" in shown
    assert "D / D_opt(C) = 1.2" in shown
    assert main(arguments) == 1
    assert "give one or two of" in capsys.readouterr().err


def test_extending_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(
        f"root: {tmp_path / 'root'}\nsources: [{{name: web, paths: ['*.txt']}}]\n"
        "tokenizer: {train: {vocab_size: 400}}\n"
    )
    status = main(
        ["plan", "--config", str(config), "extend", str(tmp_path / "root"), "--consumed", "3"]
    )
    assert status == 1
    assert "no data set has been published yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["plan", "show"], ["index", "list"], ["learn", "perplexity", "--source", "s"]]
)
def test_config_and_root_stand_before_an_action_or_behind_it(words):
    options = ["--config", "c.yaml", "--root", "r"]
    behind = build_parser().parse_args([*words, *options])
    before = build_parser().parse_args([words[0], *options, *words[1:]])
    assert (behind.config, behind.root) == (before.config, before.root) == ("c.yaml", "r")
    assert build_parser().parse_args(words).root is None
