import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interop import make_cases
from interop.make_cases import flatten, open_case, require_same

INTEROP = Path(make_cases.__file__).parent


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interop") / "cases"
    make_cases.make(folder, None, random_count=4, shapes={"u16": make_cases.DATASETS["u16"]})
    return folder


def cases(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "cases.json").read_text())
    return found


def test_a_plan_serves_as_work_dir_and_every_other_case_has_its_own(made):
    orders = [Path(case["order"]) for case in cases(made)]
    plans = [order for order in orders if order.parent.name == "plans"]
    assert len(plans) == 1
    assert len(set(orders)) == len(orders)
    for case, order in zip(cases(made), orders, strict=True):
        written = np.fromfile(order / "global_indices.npy", np.uint32)
        assert len(written) % case.get("world_size", 1) == 0
        assert written.max() < len(open_case(case))


def test_the_batches_cover_the_order_without_its_start(made):
    for case in cases(made):
        if not case["name"].endswith("resumed-world2"):
            continue
        with np.load(made / "expected" / f"{case['name']}.npz") as arrays:
            read = [arrays[key] for key in arrays.files if key.endswith("/index")]
        written = np.fromfile(Path(case["order"]) / "global_indices.npy", np.uint32)
        assert case["start_index"] > 0
        left = written[case["start_index"] :]
        full = len(left) // (case["batch"] * 2) * case["batch"] * 2
        assert sorted(np.concatenate(read)) == sorted(left[:full])


def test_the_shards_end_inside_an_instance_and_some_documents_have_no_end_token(made):
    for core in json.loads((made / "core.json").read_text()):
        if "packed" in core:
            continue
        for path in core["paths"]:
            tokens = np.fromfile(path, core["memmap_dtype"])
            docs = np.fromfile(path.removesuffix(".npy") + ".docs.npy", "<u8,V16")
            ends = tokens[docs["f0"][1:].astype(np.int64) - 1]
            assert len(tokens) % core["chunk_size"]
            assert 0 < (ends != core["eos_token_id"]).sum() < len(ends) / 4


def test_the_files_of_an_export_hold_whole_packed_instances_and_their_padding(made):
    (export,) = (case for case in cases(made) if "packed" in case)
    assert len(export["paths"]) > 1
    items = open_case(export)
    masks = np.concatenate([np.fromfile(path, bool) for path in export["label_mask_paths"]])
    assert len(masks) == len(items) * export["chunk_size"]
    assert 0 < (~masks).sum() < len(masks) / 4
    with np.load(made / "items" / f"{export['name']}.npz") as arrays:
        assert len(arrays.files) == 2 * len(items)


def test_a_difference_between_our_own_two_ways_ends_the_run():
    batch = {"index": np.array([1])}

    class Tensor:
        def __init__(self, values):
            self.values = np.array(values)

        def numpy(self):
            return self.values

    same = [{"index": Tensor([1, 2]), "metadata": ["a"]}]
    require_same("case", same, same)
    for other in (
        [],
        [{"index": Tensor([1, 3]), "metadata": ["a"]}],
        [{"index": Tensor([1, 2]), "metadata": ["b"]}],
        [{"metadata": ["a"], "index": Tensor([1, 2])}],
    ):
        with pytest.raises(SystemExit, match="case: our own loaders"):
            require_same("case", same, other)
    assert flatten(batch) == ({}, {"keys": ["index"], **batch})


@pytest.mark.parametrize("script", ["check_olmo.py", "check_olmo_core.py"])
def test_the_readers_are_free_of_our_packages(script):
    text = (INTEROP / script).read_text()
    for package in ("olmo_loader", "assets", "benchmarks", "interop.make"):
        assert f"import {package}" not in text
        assert f"from {package}" not in text
    compiled = subprocess.run(
        [sys.executable, "-m", "py_compile", str(INTEROP / script)],
        capture_output=True,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stderr
