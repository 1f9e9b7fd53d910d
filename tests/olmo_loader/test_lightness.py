"""What the loader imports, seen in fresh interpreters: it must start fast and anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import olmo_loader

PACKAGE = Path(olmo_loader.__file__).parent
HEAVY = ("dagster", "duckdb", "pandas", "pyarrow", "datasketch", "tokenizers", "yaml", "xxhash")
NEED_TORCH = {
    *("olmo_loader.collator", "olmo_loader.distributed", "olmo_loader.iterable_dataset"),
    *("olmo_loader.loader", "olmo_loader.memmap_dataset", "olmo_loader.training_data"),
    *("olmo_loader.document_masks", "olmo_loader.labels", "olmo_loader.microbatches"),
    *("olmo_loader.train_loader", "olmo_loader.eval_loader", "olmo_loader.resumable"),
    *("olmo_loader.batch_ahead", "olmo_loader.batch_places", "olmo_loader.tensor_sockets"),
}
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if path.name != "__main__.py"
)


def loaded_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=PACKAGE.parent,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_no_module_loads_anything_heavy():
    loaded = loaded_after("\n".join(f"import {name}" for name in MODULES))
    assert loaded.isdisjoint(HEAVY)
    assert "torch" in loaded


def test_formats_and_tools_load_no_torch():
    light = [name for name in MODULES if name not in NEED_TORCH]
    assert "olmo_loader.shard_format" in light
    loaded = loaded_after("\n".join(f"import {name}" for name in light))
    assert loaded.isdisjoint({*HEAVY, "torch"})


def test_the_command_line_loads_no_torch():
    assert "torch" not in loaded_after("import olmo_loader.__main__")


def test_the_package_itself_loads_nothing():
    assert loaded_after("import olmo_loader").isdisjoint({*HEAVY, "torch", "numpy"})


@pytest.mark.parametrize("name", olmo_loader.__all__)
def test_public_names_are_there(name: str):
    assert getattr(olmo_loader, name).__name__ == name
    assert name in dir(olmo_loader)


def test_the_public_surface_is_pinned():
    assert sorted(olmo_loader.__all__) == [
        *("DataCollator", "InstanceFilterConfig", "IterableDataset", "MemMapDataset"),
        *("PaddingDirection", "build_eval_dataloader", "build_train_dataloader"),
    ]
    with pytest.raises(AttributeError, match="nonsense"):
        olmo_loader.nonsense  # noqa: B018
