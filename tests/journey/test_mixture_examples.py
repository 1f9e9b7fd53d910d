"""The example mixtures run on a small corpus: Llama 3's shares, and two stages in two roots."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from assets.ordering.held_out import check_held_out
from assets.ordering.plan_sources import plan_source_rows
from assets.ordering.published import open_plan, read_published, read_shard_index
from assets.root import Root
from assets.settings.load import load_settings
from assets.settings.schema import EngineSettings, Settings
from assets.settings.tokens import ShardingSettings, TokenizerSettings, TrainTokenizerSettings
from olmo_loader.plan import Plan
from tests.journey.corpus import run_journey, story, write_jsonl

CONFIGS = Path(__file__).parents[2] / "configs"
DOCUMENTS = {"web": 40, "code": 24, "books": 12, "papers": 12, "math": 10, "multilingual": 8}


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder per source; texts of one source are like no other's."""
    folder = tmp_path / "corpus"
    for number, (source, count) in enumerate({**DOCUMENTS, "web_best": 12}.items()):
        texts = [story(1000 * number + seed, 90 + 40 * (seed % 4)) for seed in range(count)]
        write_jsonl(folder / source / "a.jsonl.gz", texts)
    monkeypatch.setenv("OLMO_CORPUS", str(folder))
    monkeypatch.setenv("OLMO_DATA_ALLOWED_PATHS", str(folder))
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    return folder


def small(settings: Settings, root: Path, *, length: int = 32) -> Settings:
    """The example at the size of a test: what it says about sources and order stays."""
    sources = tuple(
        dataclasses.replace(source, profile="none", format="jsonl", languages=("any",))
        for source in settings.sources
    )
    tokenizer = settings.tokenizer
    if tokenizer.train is not None:
        train = TrainTokenizerSettings(vocab_size=400)
        tokenizer = TokenizerSettings(train=train)
    return dataclasses.replace(
        settings,
        root=str(root),
        sources=sources,
        tokenizer=tokenizer,
        sharding=ShardingSettings(max_tokens=3000, min_tokens=200),
        ordering=dataclasses.replace(settings.ordering, sequence_length=length),
        engine=EngineSettings(processes=1),
    )


def current_plan(root: Root) -> Plan:
    published = read_published(root)
    assert published is not None
    return open_plan(root, published.file.plan)


def test_the_llama_3_mix_has_its_shares(corpus: Path, tmp_path: Path) -> None:
    settings = load_settings(CONFIGS / "llama3_mix.yaml")
    plan = current_plan(run_journey(small(settings, tmp_path / "root")))
    rows = {row["group"]: row for row in plan_source_rows(plan)}
    weights = {"web": 50, "code": 25, "books": 6.5, "papers": 6.5, "math": 8, "multilingual": 4}
    assert {name: round(100 * row["weight"], 6) for name, row in rows.items()} == weights
    for name, weight in weights.items():
        assert rows[name]["target"] == pytest.approx(weight / 100)
        assert abs(rows[name]["drift"]) <= rows[name]["drift_allowed"]
        assert rows[name]["realised"] == pytest.approx(weight / 100, abs=2 / plan.num_positions)
        source = next(item for item in settings.sources if item.name == name)
        assert rows[name]["epochs"] <= (source.max_repetition or 1)
    assert check_held_out(plan.folder.parents[1], plan, plan.shards)["held_out_shards"] == 0


def test_stage_2_is_a_root_of_its_own_that_counts_from_zero(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = pytest.importorskip("olmo_loader.loader")
    first_root = run_journey(small(load_settings(CONFIGS / "stage1.yaml"), tmp_path / "one"))
    frozen = sorted((tmp_path / "one/dataset/tokenizer").glob("*/tokenizer.json"))
    monkeypatch.setenv("OLMO_TOKENIZER", str(frozen[0]))
    monkeypatch.setenv("OLMO_DATA_ALLOWED_PATHS", f"{corpus}:{frozen[0].parent}")
    second_root = run_journey(
        small(load_settings(CONFIGS / "stage2.yaml"), tmp_path / "two", length=128)
    )
    first, second = current_plan(first_root), current_plan(second_root)
    assert first.record["tokenizer_sha256"] == second.record["tokenizer_sha256"]
    assert (first.seed, second.seed) == (6198, 42)
    assert second.record["parent"] is None
    assert read_shard_index(second_root).records[0]["seq"] == 1
    running = iter(loader.build_train_dataloader(tmp_path / "one/dataset", global_batch_size=4))
    end_of_first = [next(running).state for _ in range(3)][-1]
    annealing = loader.build_train_dataloader(tmp_path / "two/dataset", global_batch_size=4)
    batch = next(iter(annealing))
    assert end_of_first["instances"] == 12
    assert batch.state["instances"] == 4
    assert batch["index"].tolist() == second.open_order()[:4].tolist()
    with pytest.raises(Exception, match=r"plan|data set"):
        annealing.load_state_dict(end_of_first)
