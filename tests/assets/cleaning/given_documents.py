"""Documents with given texts, as the cleaning stage receives them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from assets.cleaning.pipeline import clean_table
from assets.document import CLEAN, DOCUMENTS, LEDGER, doc_id
from assets.settings.cleaning import CleaningSettings
from assets.settings.sources import SourceSettings

FILE = b"\x01" * 8
HTML = "text/html"


def documents_of(texts: Sequence[str], content_type: str | None = None) -> pa.Table:
    """Return a documents table (one row per text) of the source `test`."""
    rows = [
        {
            "doc_id": doc_id(FILE, number),
            "source": "test",
            "part": "part",
            "row": number,
            "landed_path": "a.jsonl",
            "text": text,
            "content_type": content_type,
            "content_hash": hashlib.sha256(text.encode()).digest(),
            "num_bytes": len(text.encode()),
            "metadata": '{"n": 1}',
        }
        for number, text in enumerate(texts)
    ]
    return pa.Table.from_pylist(rows, schema=DOCUMENTS)


def clean(
    texts: Sequence[str],
    *,
    profile: Any = "text",
    languages: tuple[str, ...] = ("any",),
    content_type: str | None = None,
    cleaning: CleaningSettings | None = None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the clean rows and the ledger rows of some texts, both checked against the schema."""
    source = SourceSettings(name="test", paths=("*",), profile=profile, languages=languages)
    documents = documents_of(texts, content_type)
    cleaned, ledger = clean_table(documents, source=source, cleaning=cleaning or CleaningSettings())
    cleaned.validate(full=True)
    ledger.validate(full=True)
    assert cleaned.schema.equals(CLEAN)
    assert ledger.schema.equals(LEDGER)
    for table in (cleaned, ledger):
        assert table["doc_id"].to_pylist() == documents["doc_id"].to_pylist()
        assert table["row"].to_pylist() == documents["row"].to_pylist()
    return cleaned.to_pylist(), ledger.to_pylist()
