from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.assets.ordering.grown_corpus import GrownCorpus


@pytest.fixture(scope="session")
def _first_generation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrownCorpus]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OLMO_DATA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield GrownCorpus.make(tmp_path_factory.mktemp("grown"))


@pytest.fixture
def grown(
    _first_generation: GrownCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> GrownCorpus:
    """A root whose first generation is cut into shards and not published."""
    monkeypatch.setenv("OLMO_DATA_CACHE", str(tmp_path / "cache"))
    return _first_generation.copy(tmp_path / "grown")
