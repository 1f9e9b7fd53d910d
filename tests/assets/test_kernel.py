"""Compiled code is not older than the sources it was made from."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

import assets.cleaning
import assets.dedup
import assets.ordering
from assets.kernel import kernel, source_stamp


def test_a_kernel_computes():
    @kernel
    def double(value: int) -> int:
        return 2 * value

    assert double(21) == 42


@pytest.mark.parametrize("package", [assets.cleaning, assets.dedup, assets.ordering])
def test_every_kernel_is_stamped_with_its_sources(package: ModuleType):
    stamped = 0
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name.endswith(".asset"):
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if isinstance(value, Dispatcher):
                compiled: Any = value
                if compiled.targetoptions.get("inline"):
                    continue  # it is part of the kernels that it is written into, and of no other
                file = compiled.py_func.__code__.co_filename
                assert compiled._cache._cache_file._source_stamp == source_stamp(file), name
                stamped += 1
    assert stamped > 0


def test_the_stamp_changes_with_a_module_that_is_only_imported_by_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stamps = []
    for constant in (1, 2):
        folder = tmp_path / str(constant)
        folder.mkdir()
        (folder / "far.py").write_text(f"VALUE = {constant}\n")
        (folder / "near.py").write_text("from assets.far import VALUE\n")
        (folder / "top.py").write_text("from assets import near\n")
        for name in ("far", "near", "top"):
            module = ModuleType(f"assets.{name}")
            module.__file__ = str(folder / f"{name}.py")
            monkeypatch.setitem(sys.modules, f"assets.{name}", module)
        stamps.append(source_stamp(str(folder / "top.py")))
    assert stamps[0] != stamps[1]


def test_a_kernel_loads_no_package_that_no_kernel_uses():
    # Extensions of numba (awkward) and SciPy cost more CPU than all kernels of a small run.
    code = (
        "import sys; from assets.cleaning.pages.scan import scan_page; "
        "scan_page(b'<p>', max_depth=9, max_nodes=9); "
        "print(*{'awkward', 'scipy.linalg', 'duckdb', 'torch', 'dagster'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
