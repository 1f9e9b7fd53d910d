"""Every document of the demonstration corpora that can be read: the ids of every engine."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer

from assets.root import Root
from assets.settings.schema import LimitSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from assets.tokenizing.encode import single_threaded
from assets.tokenizing.engine import FAST_ENGINES, ReferenceEncoder, load_engine
from tests.shared_data import shared_folder

SOURCES = {
    **dict.fromkeys(("web", "wiki", "books", "qa", "multilingual"), "auto"),
    # Markup is as good a text as any for this: what a reader makes of it is not compared here.
    **dict.fromkeys(("papers", "docs"), "text"),
}
BATCH_BYTES = 1 << 20


def decoded(folder, name):
    """Return the texts of a source's documents in batches, as the sources stage decodes them."""
    settings = Settings(
        root=str(folder / "root"),
        base_dir=str(shared_folder("demo")),
        sources=(SourceSettings(name=name, paths=(f"{name}/**/*",), format=SOURCES[name]),),
        tokenizer=TokenizerSettings(path="none"),
        limits=LimitSettings(max_quarantined=1.0),
    )
    root = Root(settings.root)
    report = materialize_documents(root, settings, land(root, settings), (name,))
    for entry in report.entries:
        column = root.read_table(entry.objects["data"], ["text"])["text"].combine_chunks()
        size = max(1, len(column) * BATCH_BYTES // max(1, column.nbytes))
        yield from (column.slice(first, size) for first in range(0, len(column), size))


@pytest.mark.deep
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ["allenai_dolma2.json", "allenai_gpt-neox-olmo-dolma-v1_5.json"])
def test_every_engine_gives_the_reference_ids_on_every_document(tmp_path, source, name):
    data = shared_folder("tokenizers", name).read_bytes()
    reference = Tokenizer.from_str(data.decode())
    reference.encode_special_tokens = True
    count = 0
    with single_threaded():
        loaded = [load_engine(data, reference, wanted=engine) for engine in FAST_ENGINES]
        for batch in decoded(tmp_path, source):
            expected = ReferenceEncoder(reference).encode(batch)
            count += len(batch)
            for engine in loaded:
                found = engine.encode(batch)
                assert found.offsets.tolist() == expected.offsets.tolist()
                assert (found.ids == expected.ids).all()
    assert count
