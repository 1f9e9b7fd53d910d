from __future__ import annotations

from pathlib import Path

import pytest

from assets.errors import ConfigurationError
from assets.ordering.olmo_mix import read_mix, read_provenance_rows, reconcile, shard_key
from tests.shared_data import shared_folder


@pytest.fixture
def mixes() -> Path:
    return shared_folder("olmo_mix")


def test_the_official_configuration_and_its_provenance(mixes: Path) -> None:
    mix = read_mix(mixes / "OLMo2-7B-stage1.yaml")
    assert (len(mix.paths), mix.num_unique) == (1122, 1117)
    assert (mix.sequence_length, mix.seed, mix.dtype) == (4096, 6198, "uint32")
    assert mix.global_batch_size == 1024
    assert set(mix.repeats.values()) == {2}
    repeated = [name.rsplit("/", 1)[1] for name in mix.repeats]
    assert repeated == [f"part-104-{number:05d}" for number in range(5)]
    found = reconcile(mix, read_provenance_rows(mixes / "provenance.csv"))
    assert found.num_rows == 1119
    assert len(found.missing) == len(found.extra) == 1
    assert "algebraic-stack" in found.missing[0]
    assert "part-15" in found.missing[0]
    assert "open-web-math" in found.extra[0]
    assert "part-15" in found.extra[0]
    assert sorted(name.rsplit("/", 1)[1] for name in found.duplicates) == [
        "part-094-00003",
        "part-15-00000",
    ]
    assert len(found.repeats) == 5
    assert not found.is_clean
    assert len(found.problems()) == 4


def test_repeats_of_whole_paths_in_a_second_stage(mixes: Path) -> None:
    mix = read_mix(mixes / "OLMo2-13B-stage2-seed2662-300B.yaml")
    assert (len(mix.paths), mix.num_unique) == (2476, 992)
    assert max(mix.repeats.values()) == 4
    arguments = mix.loader_arguments("/data")
    assert len(arguments["dataset_or_paths"]) == 2476
    assert arguments["dataset_or_paths"][0].startswith("/data/preprocessed/")


@pytest.mark.parametrize("name", ["dolma17.txt", "OLMo-mix-0925-official.txt"])
def test_lists_with_labels(mixes: Path, name: str) -> None:
    mix = read_mix(mixes / name, tokenizer="allenai/dolma2")
    lines = (mixes / name).read_text().splitlines()
    assert len(mix.paths) == sum(bool(line.strip()) and line[0] != "#" for line in lines)
    assert not any("{TOKENIZER}" in path or "," in path for path in mix.paths)
    assert sum(listed for listed, _ in mix.by_label().values()) == len(mix.paths)
    assert all(mix.labels)


@pytest.mark.parametrize(
    "name",
    [
        "http://olmo-data.org/a/b.npy",
        "https://olmo-data.org/a/b.csv.gz",
        "s3://ai2-llm/a/b.npy",
        "a/b.npy",
        " a/b ",
    ],
)
def test_one_shard_has_one_name(name: str) -> None:
    assert shard_key(name) == "a/b"


def test_a_clean_pair(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("data: {datasets: {b: [s3://x/b.npy], a: [s3://x/a.npy]}}\nseed: 3\n")
    table = tmp_path / "p.csv"
    table.write_text(
        "Dataset,Data Directory,more\na,https://y/a.csv.gz,1\nb,https://y/b.csv.gz,2\n"
    )
    mix = read_mix(config)
    assert mix.labels == ("a", "b")
    assert mix.loader_arguments() == {
        "dataset_or_paths": ["s3://x/a.npy", "s3://x/b.npy"],
        "seed": 3,
    }
    found = reconcile(mix, read_provenance_rows(table))
    assert found.is_clean
    assert found.problems() == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "model: {}", "no section `data`"),
        ("a.yaml", "data: {paths: [a], datasets: {b: [c]}}", "exactly one"),
        ("a.yaml", "data: [", "not valid YAML"),
        ("a.txt", "# nothing\n", "no token files"),
        ("p.csv", "Dataset,Data Directory\na,x.csv.gz\n", "a table of provenance, no mix"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        read_mix(tmp_path / name)


def test_other_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_mix(tmp_path / "none.yaml")
    (tmp_path / "p.csv").write_text("Step,Checkpoint Directory\n")
    with pytest.raises(ConfigurationError, match="Step, Checkpoint Directory, expected Dataset"):
        read_provenance_rows(tmp_path / "p.csv")
