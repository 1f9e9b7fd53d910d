"""A corpus with its root and settings, for tests that publish: made once, copied for each test."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assets.cleaning.clean import materialize_clean
from assets.dedup.unique import materialize_unique
from assets.ordering.publish import DatasetReport, publish_dataset
from assets.root import Root
from assets.settings.schema import Settings
from assets.sharding.shards import materialize_shards
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from assets.sources.landing_log import read_log
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer
from tests.journey.corpus import make_corpus, make_settings


@dataclasses.dataclass
class GrownCorpus:
    """Landed files in `folder/corpus`, a root in `folder/root`."""

    folder: Path
    settings: Settings

    @classmethod
    def make(cls, folder: Path) -> GrownCorpus:
        """Land the first generation and take it up to its shards."""
        make_corpus(folder / "corpus")
        made = cls(folder, make_settings(folder / "corpus", folder / "root"))
        made.cut()
        return made

    def copy(self, folder: Path) -> GrownCorpus:
        """Copy files and root elsewhere."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        settings = make_settings(folder / "corpus", folder / "root")
        return GrownCorpus(folder, settings)

    @property
    def root(self) -> Root:
        return Root(self.settings.root)

    @property
    def corpus(self) -> Path:
        return self.folder / "corpus"

    @property
    def dataset(self) -> Path:
        return self.folder / "root/dataset"

    def cut(self) -> None:
        """Land what changed and take it up to its shards, without publishing."""
        root, settings = self.root, self.settings
        log = land(root, settings)
        names = tuple(source.name for source in settings.sources)
        materialize_documents(root, settings, log, names)
        materialize_clean(root, settings, log, names)
        materialize_unique(root, settings, log)
        materialize_tokenizer(root, settings, log)
        materialize_tokens(root, settings, log)
        materialize_shards(root, settings, log)

    def publish(self, **changes: Any) -> DatasetReport:
        """Publish with these settings changed."""
        root = self.root
        return publish_dataset(root, dataclasses.replace(self.settings, **changes), read_log(root))

    def bytes_of(self, prefix: str = "") -> dict[str, bytes]:
        """Return every object of the root, by name."""
        storage = self.root.storage
        return {name: storage.read(name) for name, _ in storage.list(prefix)}


def first_generation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrownCorpus]:
    """Yield a corpus whose first generation is cut, for a fixture of a whole session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OLMO_DATA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield GrownCorpus.make(tmp_path_factory.mktemp("grown"))
