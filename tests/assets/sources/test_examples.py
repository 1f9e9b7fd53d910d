"""Every example configuration loads, and reads a tiny corpus of the kind it is for."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assets.cleaning.clean import materialize_clean
from assets.root import Root
from assets.settings.load import load_settings
from assets.settings.schema import EngineSettings, Settings
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from tests.assets.sources.test_gutenberg import HEAD
from tests.assets.sources.test_stackexchange import post, posts
from tests.assets.sources.test_wiki_xml import dump, wiki_page
from tests.assets.sources.warc_building import page, record

FOLDER = Path(__file__).resolve().parents[3] / "configs/examples"
PROSE = (
    "The river runs through the old town and out to the sea, and that is where the people of the "
    "valley have lived with it for as long as anyone can remember. "
) * 6


def parquet(**columns: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, write_page_checksum=True)
    return file.getvalue()


def lines(*values: Mapping[str, object]) -> bytes:
    return gzip.compress(b"".join(json.dumps(value).encode() + b"\n" for value in values), mtime=0)


def common_crawl() -> dict[str, bytes]:
    html = f"<body><main><h1>River</h1><p>{PROSE}</p></main></body>"
    text = record(PROSE.encode(), kind="conversion", content_type="text/plain")
    return {
        "cc-main-2024-10/1/warc/a.warc.gz": gzip.compress(page(html)),
        "cc-wet-2024-10/a.warc.wet.gz": gzip.compress(text),
    }


def fineweb() -> dict[str, bytes]:
    columns = {"text": [PROSE, "x"], "id": ["a", "b"], "url": ["http://a/", "http://b/"]}
    more = {"language": ["en", "en"], "language_score": [0.9, 0.5]}
    return {"fineweb/CC-MAIN-2024-10/0.parquet": parquet(**columns, **more)}


def dolma() -> dict[str, bytes]:
    documents = [
        {"id": str(number), "text": PROSE, "metadata": {"url": f"http://{number}/"}}
        for number in range(2)
    ]
    toxicity = [{"id": str(number), "attributes": {"toxicity": number}} for number in range(2)]
    return {
        "dolma/documents/a.json.gz": lines(*documents),
        "dolma/attributes/pii/a.json.gz": lines(*({"id": i, "attributes": {}} for i in "01")),
        "dolma/attributes/toxicity/a.json.gz": lines(*toxicity),
    }


CORPORA: dict[str, tuple[Callable[[], dict[str, bytes]], dict[str, int]]] = {
    "common_crawl": (common_crawl, {"cc-main-2024-10": 1, "cc-wet-2024-10": 1}),
    "fineweb": (fineweb, {"fineweb": 1}),
    "dolma": (dolma, {"dolma-cc": 1}),
    "wiki": (lambda: {"wiki/enwiki.xml": dump(wiki_page(PROSE))}, {"enwiki": 1}),
    "books": (
        lambda: {
            "books/1/1-0.txt": (
                f"{HEAD}*** START OF THIS PROJECT GUTENBERG EBOOK X ***\n{PROSE}"
            ).encode("latin-1")
        },
        {"gutenberg": 1},
    ),
    "arxiv": (
        lambda: {"arxiv/a.tex.gz": gzip.compress(b"\\section{A} " + PROSE.encode())},
        {"arxiv": 1},
    ),
    "stackexchange": (
        lambda: {
            "stackexchange/math.stackexchange.com/Posts.xml": posts(post(1, 1, f"<p>{PROSE}</p>")),
            "posts/a.tsv": f"id\tbody\n1\t<p>{PROSE}</p>\n".encode(),
        },
        {"stackexchange": 1, "posts-table": 1},
    ),
    "code": (
        lambda: {
            "stack/a.parquet": parquet(
                content=["def a():\n    return 1\n", "b", "c"],
                hexsha=["1", "2", "3"],
                max_stars_repo_path=["a.py", "b.py", "c.py"],
                max_stars_count=[7, 1, None],
            ),
            "tree/src/main.rs": b'fn main() {\n    println!("hello");\n}\n',
        },
        {"the-stack": 1, "tree": 1},
    ),
}


def test_every_example_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == CORPORA.keys()


@pytest.mark.parametrize("name", CORPORA)
def test_an_example_reads_its_corpus(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, expected = CORPORA[name]
    corpora = tmp_path / "corpora"
    for path, data in make().items():
        (corpora / path).parent.mkdir(parents=True, exist_ok=True)
        (corpora / path).write_bytes(data)
    monkeypatch.setenv("OLMO_CORPORA", str(corpora))
    monkeypatch.setenv("OLMO_DATA_ALLOWED_PATHS", str(corpora))
    settings: Settings = dataclasses.replace(
        load_settings(FOLDER / f"{name}.yaml", root=str(tmp_path / "root")),
        engine=EngineSettings(processes=1),
    )
    root = Root(settings.root)
    log = land(root, settings)
    sources = tuple(source.name for source in settings.sources)
    documents = materialize_documents(root, settings, log, sources).by_source()
    assert {source: figures["documents"] for source, figures in documents.items()} == expected
    assert not any(figures["quarantined"] for figures in documents.values())
    clean = materialize_clean(root, settings, log, sources).by_source()
    assert {source: figures["kept"] + figures["modified"] for source, figures in clean.items()} == (
        expected
    )
