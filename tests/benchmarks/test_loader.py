"""That the loader's benchmark measures what it says; never how long anything takes."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import loader, loader_ours
from benchmarks.loader_data import DataShape, publish
from benchmarks.loader_limits import run_apart
from benchmarks.loader_protocol import Rung, tree_cpu_s
from olmo_loader.instance_filter import InstanceFilterConfig, find_repetitive
from olmo_loader.published import open_published
from olmo_loader.verify import verify_dataset

SMALL = DataShape(
    shards=3,
    tokens_per_shard=5_000,
    mean_document=60,
    sequence_length=128,
    label_masks=True,
    filter_bits=True,
)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return loader.make_spec(tmp_path_factory.mktemp("bench"), SMALL)


def test_the_data_set_is_sound_and_its_documents_fill_the_shards(tmp_path: Path):
    publish(tmp_path / "data", SMALL)
    assert list(verify_dataset(tmp_path / "data")) == []
    published = open_published(tmp_path / "data")
    for record in published.plan.shards:
        assert record["n_tokens"] == SMALL.tokens_per_shard
        assert record["n_docs"] > SMALL.tokens_per_shard / SMALL.mean_document / 2
    assert len(published.sources) == 3


def test_the_filter_bits_are_the_filters_verdicts(spec: dict[str, Any]):
    reader = open_published(spec["full"]).reader
    index = np.arange(len(reader))
    assert reader.filter_bits is not None
    expected = ~find_repetitive(reader.read(index).raw, InstanceFilterConfig())
    assert np.array_equal(reader.filter_bits.keep(index), expected)


def test_every_rung_of_ours_yields_whole_batches_with_what_its_name_says(spec: dict[str, Any]):
    words = {"doc_lens": "doc_lens", "label masks": "label_mask", "filter": "instance_mask"}
    for name, make in loader_ours.rungs(spec).items():
        if "workers" in name:
            continue
        batch = next(iter(make()))
        if name == "gather":
            assert batch.shape == (loader.BATCH, SMALL.sequence_length)
            continue
        assert batch["input_ids"].shape == (loader.BATCH, SMALL.sequence_length)
        for word, key in words.items():
            assert (key in batch) == (word in name), (name, key)


def test_targets_name_rungs_that_exist(spec: dict[str, Any]):
    assert loader.TARGETS.keys() <= loader_ours.rungs(spec).keys()


def test_a_rung_reads_on_over_the_end_of_an_epoch_and_opens_it_again():
    opened: list[int] = []
    read: list[int] = []

    def make():
        opened.append(len(read))
        for number in range(5):
            read.append(number)
            yield number

    rung = Rung(make)
    rung.read(3)
    assert read == [0, 1, 2, 3]  # the first batch of an epoch is read before the clock starts
    rung.read(8)
    assert len(opened) == 3
    assert rung.read(1).keys() == {"cpu_s", "wall_s"}


def test_the_work_of_children_counts():
    start = tree_cpu_s()
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert tree_cpu_s() - start >= 0.25  # children are counted in ticks of 10 ms


def test_a_process_of_its_own_tells_cpu_wall_and_growth_of_its_peak():
    cpu, wall, peak = run_apart("block = bytearray(b'x') * 50_000_000")
    assert cpu >= 0
    assert wall > 0
    assert 40e6 < peak < 80e6


SERVER = """
from benchmarks.loader_protocol import serve
def rungs():
    {0}
    print("what a library says")
    return {{"count": lambda: iter(range(9)), "fail": lambda: iter([0, 1 / 0])}}
serve(("numpy",), rungs)
"""


def serve(tmp_path: Path, line: str = "pass") -> loader.Candidate:
    return loader.Candidate([sys.executable, "-c", SERVER.format(line)], tmp_path / "log")


def test_a_candidate_answers_and_names_what_fails(tmp_path: Path):
    candidate = serve(tmp_path)
    assert candidate.rungs == ["count", "fail"]
    assert candidate.title.startswith("numpy ")
    assert candidate.read("count", 20).keys() == {"cpu_s", "wall_s"}
    assert candidate.read("fail", 1) == {"error": "ZeroDivisionError: division by zero"}
    assert candidate.read("no such rung", 1) == {"error": "KeyError: 'no such rung'"}
    assert candidate.read("count", 1)["wall_s"] > 0
    candidate.close()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("import no_such_peer", "ModuleNotFoundError: No module named 'no_such_peer'"),
        ("import sys; sys.exit('out of memory')", "out of memory"),
    ],
)
def test_a_peer_that_cannot_start_gives_the_reason(tmp_path: Path, line: str, problem: str):
    candidate = serve(tmp_path, line)
    assert (candidate.rungs, candidate.problem) == ([], problem)
    candidate.close()


def test_a_peer_that_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(loader, "PEERS", {"olmo": ".venv-nowhere"})
    assert loader.open_peers(tmp_path / "spec.json", ["olmo"]) == []
    assert "olmo: not measured, .venv-nowhere is missing" in capsys.readouterr().out
