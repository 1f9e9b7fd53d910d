"""A signature part that was truncated, reordered or damaged is found and made again, alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.dedup.signatures import signature_task, signature_tasks
from assets.errors import IntegrityError
from assets.manifest import Manifest
from assets.root import ObjectRef, Root
from assets.stage import materialize_tasks
from tests.assets.dedup.small_corpus import SmallCorpus, article


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def reorder(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.take(pa.array([1, 0, 2])), path)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


@pytest.fixture
def corpus(tmp_path: Path) -> SmallCorpus:
    """Return a root with the signatures of three parts, and nothing decided."""
    corpus = SmallCorpus(str(tmp_path))
    texts = [article(1), article(2), article(1, edits=1)]
    corpus.land({"wiki/a": texts, "books/b": [article(3), article(2, edits=1), article(4)]})
    clean = Manifest.load(corpus.root, "clean").entries()
    tasks = signature_tasks(corpus.root.url, corpus.settings.dedup, clean)
    materialize_tasks(corpus.root, "signatures", tasks, signature_task, processes=1)
    return corpus


@pytest.mark.parametrize("harm", [truncate, reorder, flip, Path.unlink])
def test_only_the_damaged_part_is_made_again(
    corpus: SmallCorpus, caplog: pytest.LogCaptureFixture, harm: Callable[[Path], None]
):
    damaged, other = sorted((Path(corpus.folder) / "signatures").glob("*/*.parquet"))
    before, untouched = damaged.read_bytes(), other.stat().st_mtime_ns
    damaged.chmod(0o600)
    harm(damaged)
    corpus.run()
    assert corpus.kept() == [article(3), article(2, edits=1), article(4), article(1)]
    assert f"{damaged.name} is missing or damaged; task" in caplog.text
    assert other.name not in caplog.text
    assert damaged.read_bytes() == before
    assert other.stat().st_mtime_ns == untouched


def test_what_cannot_be_made_as_it_was_is_an_error(
    corpus: SmallCorpus, monkeypatch: pytest.MonkeyPatch
):
    intact = Root.is_intact

    def never_in_books(self: Root, reference: ObjectRef) -> bool:
        return "signatures/books" not in reference.name and intact(self, reference)

    monkeypatch.setattr(Root, "is_intact", never_in_books)
    with pytest.raises(IntegrityError, match="made again with other bytes"):
        corpus.run()
