"""A grown data set, made once for all tests of the catalog."""

import dataclasses
from typing import Any

import pytest

from tests.journey.corpus import make_corpus, make_settings, run_journey, story, write_jsonl


@pytest.fixture(scope="session")
def grown(tmp_path_factory):
    """Return (root, settings) of a data set of two generations; one document was withdrawn."""
    folder = tmp_path_factory.mktemp("catalog")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OLMO_DATA_CACHE", str(folder / "cache"))
        make_corpus(folder / "corpus")
        settings = make_settings(folder / "corpus", folder / "root")
        sharding = dataclasses.replace(settings.sharding, document_order="seeded", seed=3)
        settings = dataclasses.replace(settings, sharding=sharding)
        run_journey(settings)
        changed: list[Any] = [story(seed) for seed in (*range(1, 12), 60, 61)]
        write_jsonl(folder / "corpus/stories/a.jsonl.gz", changed)
        yield run_journey(settings), settings
