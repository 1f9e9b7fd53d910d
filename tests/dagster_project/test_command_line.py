"""olmo-data: the whole journey by two commands, and one clear message for whatever is wrong."""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from typing import Any

import dagster as dg
import pandas as pd
import pytest
import tokenizers
from tokenizers import models

from dagster_project.command_line.main import main
from dagster_project.command_line.terminal import escape, format_table, show_progress
from dagster_project.environment import CHECKOUT
from tests.dagster_project.small_platform import make_platform
from tests.journey.corpus import story, write_jsonl, write_text


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small data set made by `olmo-data run`, for tests that only look."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OLMO_DATA_CACHE", str(folder / "cache"))
        patch.setenv("DAGSTER_HOME", str(folder / "home"))
        config = make_platform(folder)
        assert main(["run", "--config", str(config)]) == 0
        yield folder


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    return make_platform(tmp_path)


@pytest.fixture
def copied(finished, config, tmp_path):
    """The finished data set in a folder of its own, for tests that go on from it."""
    shutil.rmtree(tmp_path / "corpus")
    for name in ("corpus", "root"):
        shutil.copytree(finished / name, tmp_path / name)
    return config


def small(folder):
    return ["--config", str(folder / "corpus/small.yaml")]


def test_run_makes_a_data_set_and_says_where_everything_is(config, tmp_path, capsys):
    assert main(["run", "--config", str(config)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"documents +stories +19 +17 +0 +0 +2", said)
    assert re.search(r"unique +books +3 +2 +0 +1 +0", said)
    assert re.search(r"unique +books +dropped +near_duplicate +1 +33.3%", said)
    assert re.search(r"documents +stories +quarantined +bad_json", said)
    assert f"Data set  {tmp_path}/root/dataset" in said
    assert "python -m olmo_loader inspect" in said
    assert "olmo-data ui" in said
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        runs = instance.get_runs()
        assert {run.job_name for run in runs} == {"sources_job", "dataset_job"}
        assert {run.status for run in runs} == {dg.DagsterRunStatus.SUCCESS}
        event: Any = instance.get_latest_materialization_event(dg.AssetKey("token_documents"))
        assert event.asset_materialization.metadata["tokens"].value > 1000
        version = event.asset_materialization.tags["dagster/data_version"]
        assert re.fullmatch("[0-9a-f]{64}", version)

    before = {path: path.read_bytes() for path in (tmp_path / "root").rglob("*") if path.is_file()}
    started = time.monotonic()
    assert main(["run", "--config", str(config)]) == 0
    assert "Nothing changed" in capsys.readouterr().out
    assert time.monotonic() - started < 30
    assert {path: path.read_bytes() for path in before} == before
    assert len(list((tmp_path / "root").rglob("*.json"))) == sum(
        p.suffix == ".json" for p in before
    )


def test_until_and_source_narrow_a_run(config, tmp_path, capsys):
    narrow = ["run", "--config", str(config), "--source", "books"]
    assert main([*narrow, "--until", "documents"]) == 0
    root = tmp_path / "root"
    assert {path.name for path in (root / "documents").iterdir()} >= {"books", "manifest.json"}
    assert not (root / "documents/stories").exists()
    assert not (root / "clean").exists()
    assert main([*narrow, "--until", "clean"]) == 0
    assert (root / "clean/books").exists()
    assert main(["run", "--config", str(config), "--until", "tokens", "--processes", "2"]) == 0
    assert (root / "tokens/stories").exists()
    assert not (root / "dataset/dataset.json").exists()
    assert "Nothing changed" not in capsys.readouterr().out


def test_a_source_that_waits_is_not_complete(copied, tmp_path, capsys):
    config = copied
    write_jsonl(tmp_path / "corpus/stories/d.jsonl.gz", [story(80)])
    write_text(tmp_path / "corpus/books/new.txt", story(300, 500))
    assert main(["run", "--config", str(config), "--until", "documents"]) == 0
    capsys.readouterr()
    assert main(["run", "--config", str(config), "--source", "books"]) == 1
    said = capsys.readouterr()
    assert "stories" in said.err
    assert "waits" in said.err
    assert "not complete" in said.err


def test_losses_above_the_limit_fail_with_the_table(copied, capsys):
    config = copied
    text = config.read_text().replace("max_quarantined: 0.5", "max_quarantined: 0.01")
    config.write_text(text)
    assert main(["run", "--config", str(config)]) == 1
    said = capsys.readouterr()
    assert "max_quarantined is 1.00%" in said.err
    assert "bad_json" in said.err
    assert "What each stage did" in said.out
    assert "Traceback" not in said.out + said.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["run", "--config", "nowhere.yaml"], 1, "no such configuration file"),
        (["run", "--source", "nobody"], 1, "no source is named 'nobody'"),
        (["run", "--root", "/proc/nothing"], 1, "cannot be written"),
        (["explain", "zz"], 1, "32 hexadecimal digits"),
        (["explain", "0" * 32], 1, "no landed file"),
        (["query", "COPY runs TO 'x.csv'"], 1, "read-only"),
        (["query", "SELEC"], 1, "syntax error"),
    ],
)
def test_what_is_wrong_is_one_message(finished, capsys, arguments, status, message):
    command, *rest = arguments
    config = [] if "--config" in rest else small(finished)
    assert main([command, *config, *rest]) == status
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("olmo-data: ")
    assert "Traceback" not in said.err


@pytest.mark.parametrize("arguments", [[], ["rum"], ["run", "--until", "lunch"], ["run", "-x"]])
def test_wrong_arguments_end_with_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: olmo-data" in capsys.readouterr().err


def test_unknown_keys_name_the_file_and_the_nearest_key(config, capsys):
    config.write_text(config.read_text().replace("limits:", "limit:"))
    assert main(["run", "--config", str(config)]) == 1
    error = capsys.readouterr().err
    assert "small.yaml: unknown key 'limit'; did you mean 'limits'?" in error


def test_a_tokenizer_file_is_refused_before_anything_is_read(config, tmp_path, capsys):
    words = tokenizers.Tokenizer(models.WordLevel({"a": 0, "<|endoftext|>": 3}, unk_token="a"))
    words.add_special_tokens(["<|endoftext|>"])
    words.save(str(tmp_path / "corpus/words.json"))
    text = config.read_text()

    def refused(tokenizer: str, message: str) -> None:
        config.write_text(text.replace("{train: {vocab_size: 400}}", tokenizer))
        assert main(["run", "--config", str(config), "--until", "documents"]) == 1
        assert message in capsys.readouterr().err
        assert not (tmp_path / "root/landings").exists()

    refused("{path: none.json}", "none.json cannot be read: No such file")
    refused("{path: words.json}", "words.json: 2 of 4 ids stand for nothing: 1, 2")
    refused("{path: words.json, allow_vocabulary_holes: true, eos_token: '</s>'}", "'</s>' is not")


def test_weights_and_separators_that_nothing_has_are_refused_before_anything_is_read(
    config, tmp_path, capsys
):
    words = tokenizers.Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    words.add_special_tokens(["<|endoftext|>"])
    words.save(str(tmp_path / "corpus/words.json"))
    text = config.read_text().replace("{train: {vocab_size: 400}}", "{path: words.json}")

    def refused(ordering: str, message: str) -> None:
        config.write_text(text.replace("seed: 7", ordering))
        assert main(["run", "--config", str(config), "--until", "documents"]) == 1
        assert message in capsys.readouterr().err
        assert not (tmp_path / "root/landings").exists()

    weights = "{stories: 1, books: 1, boks/x: 1}"
    refused(f"order: mixture, mixture: {{weights: {weights}}}", "no source is named 'boks'; did")
    weights = "{stories: 1, books/x: 1}"
    refused(
        f"order: mixture, mixture: {{weights: {weights}}}",
        "'books/x': sources[books] has no strata",
    )
    refused("packing: best_fit, packing_options: {separator_id: 2}", "below 2, or none")


def test_a_root_keeps_its_tokenizer_before_a_text_is_read(copied, tmp_path, capsys):
    dataset = tmp_path / "root/dataset/dataset.json"
    dataset.unlink()  # as after a run that was stopped before it published
    write_text(tmp_path / "corpus/books/new.txt", "A book that nobody reads yet.")
    copied.write_text(copied.read_text().replace("vocab_size: 400", "vocab_size: 500"))
    assert main(["run", "--config", str(copied), "--until", "documents"]) == 1
    assert "is pinned to the tokenizer" in capsys.readouterr().err
    assert len(list((tmp_path / "root/landings").iterdir())) == 1


def test_a_missing_folder_and_an_empty_one_are_named(config, tmp_path, capsys):
    (tmp_path / "corpus/books").rename(tmp_path / "corpus/gone")
    assert main(["run", "--config", str(config)]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert main(["sources", "--config", str(config)]) == 1
    (tmp_path / "corpus/books").mkdir()
    assert main(["run", "--config", str(config)]) == 1
    assert "no file matches books/*.txt" in capsys.readouterr().err


def test_sources_lists_what_landed_and_what_waits(finished, capsys):
    books = finished / "corpus/books"
    first, second, *_ = sorted(books.glob("*.txt"))
    before = first.read_bytes()
    write_text(books / "zz.txt", "not landed yet")
    first.write_bytes(before + b"more")
    second.rename(finished / "away")
    assert main(["sources", *small(finished)]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    line = next(line for line in lines if "books" in line)
    (books / "zz.txt").unlink()
    first.write_bytes(before)
    (finished / "away").rename(second)
    assert head.split()[5:10] == ["files", "new", "changed", "gone", "landed"]
    assert line.split()[5:10] == ["3", "1", "1", "1", "3"]


def test_explain_follows_a_document_from_its_file_to_the_instances(finished, capsys):
    ask = "SELECT doc_id, survivor_id FROM ledger('unique') WHERE rule = 'near_duplicate'"
    assert main(["query", *small(finished), ask, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["explain", *small(finished), found["doc_id"]]) == 0
    dropped = capsys.readouterr().out
    assert "unique: dropped" in dropped
    assert "near_duplicate" in dropped
    assert found["survivor_id"] in dropped
    assert "plan" not in dropped
    assert main(["explain", *small(finished), found["survivor_id"], "--text"]) == 0
    kept = capsys.readouterr().out
    assert re.search(r"source +books", kept)
    assert "tokens: kept" in kept
    assert "plan: read" in kept


def test_verify_finds_nothing_then_a_flipped_byte(finished, capsys):
    assert main(["verify", *small(finished)]) == 0
    shard = next((finished / "root/dataset/shards/books").glob("*[0-9a-f].npy"))
    data = bytearray(shard.read_bytes())
    data[10] ^= 1
    shard.write_bytes(data)
    capsys.readouterr()
    assert main(["verify", *small(finished)]) == 1
    assert shard.name in capsys.readouterr().err
    data[10] ^= 1
    shard.write_bytes(data)


def test_gc_lists_and_deletes_only_what_nothing_refers_to(finished, capsys):
    (finished / "root/clean/books/left-behind.parquet").write_bytes(b"x")
    everything = [*small(finished), "--older-than-hours", "0"]
    assert main(["gc", *everything]) == 0
    assert "left-behind.parquet" in capsys.readouterr().out
    assert main(["gc", *everything, "--delete"]) == 0
    assert not (finished / "root/clean/books/left-behind.parquet").exists()
    assert main(["verify", *small(finished)]) == 0


def test_what_could_steer_a_terminal_is_shown_instead():
    assert escape("a\x1b[31mb\u202ec\nd\te\x7f") == "a\\x1b[31mb\\u202ec\nd\te\\x7f"
    assert escape("a\nb", one_line=True) == "a\\x0ab"
    assert escape("plain \u00e9\u4e2d") == "plain \u00e9\u4e2d"


def test_warnings_are_remembered_for_the_end(capsys):
    with show_progress() as told:
        logging.getLogger("assets.sources").warning("%s is still changing", "a.txt")
        logging.getLogger("assets.sources").info("done")
    assert told == ["a.txt is still changing"]
    assert capsys.readouterr().out == "  warning: a.txt is still changing\n  done\n"


def test_tables_are_aligned_and_leave_nothing_out():
    shown = format_table(pd.DataFrame({"name": ["a", "b\n"], "n": [1, 23456], "x": [0.5, None]}))
    assert shown.splitlines() == ["name        n    x", "a           1  0.5", "b\\x0a  23,456"]


def test_quick_commands_import_no_dagster(finished):
    code = (
        "import sys; from dagster_project.command_line.main import main; "
        f"status = main(['sources', *{small(finished)!r}]); "
        "assert 'dagster' not in sys.modules; assert 'torch' not in sys.modules; sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, env=os.environ, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
