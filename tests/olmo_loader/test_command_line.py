"""``python -m olmo_loader``: what people see, and the exit status."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from olmo_loader import build_train_dataloader
from olmo_loader.__main__ import main
from olmo_loader.published import open_published
from olmo_loader.tools.decode import printable
from olmo_loader.tools.step import describe_step, step_positions
from tests.olmo_loader.small_data import SmallDataset, doc_ids, make_small
from tests.olmo_loader.web_server import serve

POSITION = re.compile(r"position (\d+)  instance (\d+)  rank (\d+)  (\w+)  (\S+) tokens (\d+)\.\.")


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> SmallDataset:
    return make_small(tmp_path_factory.mktemp("small") / "dataset")


@pytest.mark.parametrize("epoch", [0, 2])
def test_inspect_names_what_the_loader_reads(small, capsys, epoch: int):
    loader = build_train_dataloader(small.folder, global_batch_size=4, epoch=epoch)
    for step, batch in enumerate(loader):
        options = ["--step", str(step), "--global-batch-size", "4", "--epoch", str(epoch)]
        assert main(["inspect", str(small.folder), *options]) == 0
        rows = POSITION.findall(capsys.readouterr().out)
        assert [int(row[1]) for row in rows] == batch["index"].tolist()
        assert [int(row[0]) for row in rows] == [4 * step + at for at in range(len(rows))]
        for row, ids in zip(rows, batch["input_ids"], strict=True):
            tokens = np.fromfile(small.folder / row[4], "<u2")[int(row[5]) :][:16]
            assert ids.tolist() == tokens.tolist()


def test_inspect_names_documents_and_their_spans(small, capsys):
    assert main(["inspect", str(small.folder), "--step", "0", "--global-batch-size", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = POSITION.search(lines[1])
    assert found is not None
    start = int(found[6])
    seed = 2 if found[4] == "wiki" else 1 if "/00000-" in found[5] else 3
    names = [name.tobytes().hex() for name in doc_ids(seed, 40)]
    spans = [re.match(r" +(\w{32})  (\d+)\.\.(\d+)( \(continued\))?$", line) for line in lines[2:]]
    documents = [span for span in spans if span is not None]
    assert len(documents) == len(lines) - 2
    assert documents[0][2] == str(start)
    assert documents[-1][3] == str(start + 16)
    numbers = [names.index(span[1]) for span in documents]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_inspect_for_one_rank(small, capsys):
    options = ["inspect", str(small.folder), "--step", "1", "--global-batch-size", "4"]
    main(options)
    everything = [row[1] for row in POSITION.findall(capsys.readouterr().out)]
    for rank in (0, 1):
        assert main([*options, "--world-size", "2", "--rank", str(rank)]) == 0
        rows = POSITION.findall(capsys.readouterr().out)
        assert [row[1] for row in rows] == everything[rank::2]
        assert {row[2] for row in rows} == {str(rank)}


def test_inspect_beyond_the_end_says_how_many_steps_there_are(small, capsys):
    options = ["--step", "99999", "--global-batch-size", "4"]
    assert main(["inspect", str(small.folder), *options]) == 2
    assert re.search(r"error: plan \w+ has \d+ steps of 4 instances", capsys.readouterr().err)


def test_inspect_shows_text(tmp_path: Path, capsys, monkeypatch):
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {f"w{number}": number for number in range(300)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="w2"))
    content = tokenizer.to_str().encode()
    monkeypatch.setattr("tests.olmo_loader.small_data.TOKENIZER", content)
    data = make_small(tmp_path / "dataset")
    options = ["--step", "0", "--global-batch-size", "2", "--text"]
    assert main(["inspect", str(data.folder), *options]) == 0
    output = capsys.readouterr().out
    batch = next(iter(build_train_dataloader(data.folder, global_batch_size=2)))
    shown = re.findall(r"w(\d+)", output)
    assert [int(number) for number in shown] == batch["input_ids"].flatten().tolist()
    (data.folder / "tokenizer/tokenizer.json").write_bytes(b"another")
    assert main(["inspect", str(data.folder), *options]) == 2
    assert "not the tokenizer" in capsys.readouterr().err


def test_text_cannot_act_on_the_terminal():
    assert printable("a\x1b[31mé\n\u202eb") == "a\\x1b[31mé\\n\\u202eb"


def test_stats(small, capsys):
    assert main(["stats", str(small.folder)]) == 0
    output = capsys.readouterr().out
    header, *rows = output.splitlines()[1:]
    assert header.split()[0] == "source"
    cells = {row.split()[0]: row.replace(",", "").split()[1:] for row in rows}
    tokens = dict.fromkeys(("books", "wiki"), 0)
    for record in small.records:
        tokens[record["source"]] += record["n_tokens"]
    assert {name: int(cells[name][2]) for name in tokens} == tokens
    assert int(cells["total"][1]) == 120
    assert cells["total"][-1] == "100.00%"
    for row in cells.values():
        assert int(row[2]) == int(row[3]) * 16 + int(row[4])


def test_verify(tmp_path: Path, capsys):
    data = make_small(tmp_path / "dataset", docs=5)
    data.take_down([(data.records[0]["shard"], 0, 4)])
    data.publish()
    assert main(["verify", str(data.folder)]) == 0
    shown = capsys.readouterr()
    assert shown.out == "no fault found\n"
    assert "shard 3 of 3" in shown.err
    assert main(["stats", str(data.folder)]) == 0
    assert " 4 " in capsys.readouterr().out
    path = data.folder / data.records[1]["shard"]
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["verify", str(data.folder), "--quiet"]) == 1
    shown = capsys.readouterr()
    assert shown.out.endswith("\n1 faults\n")
    assert path.name in shown.out
    assert shown.err == ""


@pytest.mark.parametrize("command", ["verify", "stats"])
def test_no_data_set_is_a_message_not_a_traceback(tmp_path: Path, command: str):
    done = subprocess.run(
        [sys.executable, "-m", "olmo_loader", command, str(tmp_path / "nothing")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "give the folder of a published data set" in done.stderr


def bytes_read() -> int:
    text = Path("/proc/self/io").read_text()
    return int(text.split("rchar: ")[1].split()[0])


def test_inspect_reads_only_that_step_s_bytes(tmp_path: Path):
    """Beyond opening, which does not depend on the step, a step costs its own bytes."""
    data = make_small(tmp_path / "dataset", docs=12_000)
    costs = []
    for step in (0, 1, 5, 100, 3000):
        opened = open_published(data.folder)
        before = bytes_read()
        begin, index = step_positions(opened, step=step, global_batch_size=4)
        assert len(list(describe_step(opened, begin, index))) == 4
        costs.append(bytes_read() - before)
    whole = sum(path.stat().st_size for path in (data.folder / "shards").rglob("*.npy"))
    assert max(costs) < whole / 20, costs


def test_inspect_and_stats_of_a_data_set_on_a_server(small, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = ["--step", "3", "--global-batch-size", "4"]
    outputs = []
    with serve(small.folder) as server:
        for place in (str(small.folder), server.url):
            for command in (["inspect", place, *options], ["stats", place]):
                assert main(command) == 0
            outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


STEP = ["--step", "0", "--global-batch-size", "4"]


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("inspect", [*STEP[:3], "0"], "global_batch_size is a whole number from 1"),
        ("inspect", [*STEP, "--world-size", "0"], "--world-size is a whole number from 1"),
        ("inspect", [*STEP, "--world-size", "3"], "4 does not divide by 3 ranks"),
        ("inspect", [*STEP, "--rank", "1"], "no rank 1 of 1; give --world-size"),
        ("inspect", [*STEP, "--epoch", "-1"], "--epoch is a whole number from 0"),
        ("inspect", [*STEP, "--plan", "zz"], "no plan zz; there is"),
        ("inspect", STEP[:2], "--step needs --global-batch-size"),
        ("inspect", ["--state", "/nowhere.json"], "/nowhere.json"),
        ("inspect", [*STEP, "--balance-attention"], "ordering.packing to best_fit"),
        ("bench", ["--need", "-5"], "--need is a number above 0, not -5"),
        ("bench", ["--params", "0", "--flops", "1e15"], "--params is a number above 0"),
        ("bench", ["--seconds", "0"], "no ladder can be climbed"),
        ("verify", ["--audit", "/nowhere"], "no audit log"),
        ("verify", ["--work-dir", "/nowhere"], "no order of a run in there"),
    ],
)
def test_questions_that_have_no_answer(small, capsys, command, options, message: str):
    assert main([command, str(small.folder), *options]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert message in shown.err
    assert shown.out == ""
