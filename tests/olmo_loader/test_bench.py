"""The ladder and its verdict."""

from __future__ import annotations

import re

import pytest

from olmo_loader.__main__ import main
from olmo_loader.errors import ConfigurationError
from olmo_loader.tools.ladder import (
    COLLATE,
    MASKS,
    PROCESSES,
    RANDOM,
    RAW,
    THREADS,
    LadderOptions,
    Rung,
    climb,
    measure_against,
)
from olmo_loader.tools.verdict import diagnose, largest_stage, tokens_needed
from tests.olmo_loader.small_data import SmallDataset, make_small

MTOK = 1_000_000


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> SmallDataset:
    return make_small(tmp_path_factory.mktemp("small") / "dataset", docs=200)


def rungs(raw: float = 500, random: float = 100, busy: float = 1.0) -> list[Rung]:
    """Rungs of a second each, at millions of tokens per second."""
    rates = [(RAW, raw), (RANDOM, random), (MASKS, 50), (COLLATE, 40), (THREADS, 60)]
    return [
        Rung(name, int(rate * MTOK), 1.0, busy if name == RANDOM else 1.0) for name, rate in rates
    ]


def test_the_ladder_has_every_rung(small):
    options = LadderOptions(seconds=0.05, processes=0)
    found = list(climb(small.folder, None, options))
    assert [rung.name for rung in found] == [RAW, RANDOM, MASKS, COLLATE, THREADS]
    assert all(rung.tokens > 0 and rung.wall_s > 0 for rung in found)
    assert sum(found[-1].tokens_per_source.values()) >= found[-1].tokens


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
def test_worker_processes_are_a_rung_too(small):
    options = LadderOptions(seconds=0.05, processes=1, threads=0)
    assert [rung.name for rung in climb(small.folder, None, options)][-1] == PROCESSES


def test_a_trainer_that_takes_its_time_does_not_wait(small):
    options = LadderOptions(seconds=0.5)
    slow = measure_against(small.folder, None, options, tokens_per_s=10_000)
    assert slow.wait_share < 0.5
    assert slow.batches >= 1
    assert sum(slow.share_per_source.values()) == pytest.approx(1)
    assert slow.bytes_per_batch >= 8 * 16 * 8


def test_the_command_prints_rungs_shares_need_and_verdict(small, capsys):
    options = ["--seconds", "0.05", "--processes", "0", "--params", "7e9", "--flops", "1e15"]
    assert main(["bench", str(small.folder), *options]) == 0
    output = capsys.readouterr().out
    for name in (RAW, RANDOM, MASKS, COLLATE, THREADS):
        assert re.search(rf"^{re.escape(name)} +[\d,]+ +[\d,.]+ +[\d.]+%$", output, re.MULTILINE)
    assert re.search(r"^books +\d+\.\d\d% +\d+\.\d\d%$", output, re.MULTILINE)
    head = r"^source +planned +realised  in [\d,]+ tokens with threads$"
    assert re.search(head, output, re.MULTILINE)
    assert re.search(r"^a batch that waits in the queue: [\d,]+ bytes$", output, re.MULTILINE)
    assert "needed: 9,524 tokens/s" in output
    assert "the trainer waits" in output
    assert main(["bench", str(small.folder), *options[:-2]]) == 2
    assert "--params and --flops go together" in capsys.readouterr().err


def test_what_a_model_needs():
    assert tokens_needed(7e9, 1e15, 0.42) == pytest.approx(10_000)


def test_the_largest_stage_is_what_adds_most():
    name, most = largest_stage(rungs())
    assert name == RANDOM
    assert most == pytest.approx(10)
    slow_filter = [*rungs()[:2], Rung(MASKS, 5 * MTOK, 1.0, 1.0), *rungs()[3:]]
    assert largest_stage(slow_filter)[0] == MASKS


@pytest.mark.parametrize(
    ("given", "wait", "fill", "expected"),
    [
        (rungs(), None, 1.0, "give --params and --flops"),
        (rungs(), 0.01, 0.9, "fine: the trainer waits 1.0% of its time"),
        (rungs(), 0.5, 0.9, "although batches are ready: handing over"),
        (rungs(), 0.5, 0.1, "on the CPU (60,000,000 tokens/s at most)"),
        (rungs(raw=110), 0.5, 0.1, "on storage: random instances at 100,000,000 tokens/s"),
        (rungs(busy=0.2), 0.5, 0.1, "on storage"),
    ],
    ids=["no need", "fine", "handing over", "cpu", "as fast as sequential", "mostly waiting"],
)
def test_verdicts(given, wait, fill, expected: str):
    assert expected in diagnose(given, wait, fill)


def test_a_ladder_that_cannot_be_climbed():
    with pytest.raises(ConfigurationError, match="no ladder"):
        LadderOptions(seconds=0)
