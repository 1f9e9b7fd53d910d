"""What an impatient user gives a loader by mistake: refused at once, with the argument's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olmo_loader import IterableDataset, MemMapDataset, build_train_dataloader
from olmo_loader.errors import ConfigurationError
from tests.olmo_loader.small_data import make_small


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    np.arange(4 * 20, dtype=np.uint16).tofile(tmp_path / "a.npy")
    return tmp_path / "a.npy"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 5}, "rank counts from 0 to 1, not 5"),
        ({"rank": -1}, "rank is a whole number from 0 on, not -1"),
        ({"world_size": 0}, "world_size is a whole number from 1 on, not 0"),
        ({"world_size": -1}, "world_size is a whole number from 1 on, not -1"),
        ({"global_batch_size": 0}, "global_batch_size is a whole number from 1 on, not 0"),
        ({"global_batch_size": -8}, "global_batch_size is a whole number from 1 on, not -8"),
        ({"global_batch_size": 8.0}, "global_batch_size is a whole number from 1 on, not 8.0"),
        ({"start_index": -1}, "start_index is a whole number from 0 on, not -1"),
        ({"start_index": 1.5}, "start_index is a whole number from 0 on, not 1.5"),
        ({"max_examples": -4}, "max_examples is a whole number from 0 on, not -4"),
        ({"max_examples": "4"}, "max_examples is a whole number from 0 on, not '4'"),
        ({"num_threads": -1}, "num_threads is a whole number from 0 on, not -1"),
        ({"num_threads": "2"}, "num_threads is a whole number from 0 on, not '2'"),
        ({"shuffle": "no"}, "shuffle is True or False, not 'no'"),
        ({"work_dir": 3}, "work_dir is a folder on this host, not 3"),
    ],
)
def test_what_would_read_other_instances_is_refused(tokens, options: dict[str, Any], message: str):
    """OLMo slices with whatever it gets: rank 5 of 2 reads a part of some other rank's."""
    data = MemMapDataset(tokens, chunk_size=4)
    given = {"global_batch_size": 8, "world_size": 2, "rank": 0, **options}
    with pytest.raises(ConfigurationError, match=message):
        IterableDataset(data, **given)


def test_the_place_that_is_set_is_checked(tokens):
    dataset = IterableDataset(MemMapDataset(tokens, chunk_size=4), 4, world_size=1, rank=0)
    with pytest.raises(ConfigurationError, match="start_index is a whole number from 0 on, not -3"):
        dataset.start_index = -3
    assert dataset.start_index == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout_s": "x"}, "timeout_s is a time above 0, not 'x'"),
        ({"run": None}, "a run's name is letters, digits, .* not None"),
        ({"work_dir": 3}, "work_dir is a folder on this host, not 3"),
        ({"work_dir": ""}, "work_dir is a folder on this host, not ''"),
        ({"work_dir": "s3://bucket/run"}, "work_dir is a folder on this host, not 's3://bucket/ru"),
        ({"shuffle": "no"}, "shuffle is True or False, not 'no'"),
        ({"drop_last": "no"}, "drop_last is True or False, not 'no'"),
        ({"audit": None}, "audit is True or False, not None"),
        ({"generate_doc_lengths": 2}, "generate_doc_lengths is True or False, not 2"),
    ],
)
def test_what_would_be_taken_for_something_else_is_refused(
    tokens, tmp_path: Path, monkeypatch, options: dict[str, Any], message: str
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=message):
        build_train_dataloader([tokens], global_batch_size=4, sequence_length=4, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_a_folder_is_no_file_of_tokens(tmp_path: Path):
    (tmp_path / "shards.npy").mkdir()
    with pytest.raises(ConfigurationError, match=r"shards\.npy is a folder, not a file of ids"):
        len(MemMapDataset(tmp_path / "shards.npy", chunk_size=4))


def test_a_file_is_no_data_set(tokens):
    with pytest.raises(ConfigurationError, match=r"a\.npy is a file.* a list: \['.*a\.npy'\]"):
        build_train_dataloader(tokens, global_batch_size=4)


def test_a_scheme_that_is_not_read_is_olmo_s_error_too():
    with pytest.raises(NotImplementedError, match="gs:// is not read in this version"):
        len(MemMapDataset("gs://bucket/a.npy"))


def test_the_command_for_another_length_can_be_typed(tmp_path: Path):
    """`plan extend` refuses to run without ``--consumed``."""
    data = make_small(tmp_path / "dataset")
    with pytest.raises(ConfigurationError, match=r"plan extend .* --consumed N .*-length 32.*read"):
        build_train_dataloader(data.folder, global_batch_size=4, sequence_length=32)
