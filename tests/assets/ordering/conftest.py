from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.assets.ordering.grown_corpus import GrownCorpus, first_generation


@pytest.fixture(scope="session")
def _first_generation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrownCorpus]:
    yield from first_generation(tmp_path_factory)


@pytest.fixture
def grown(
    _first_generation: GrownCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> GrownCorpus:
    """A root whose first generation is cut into shards and not published."""
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    return _first_generation.copy(tmp_path / "grown")
