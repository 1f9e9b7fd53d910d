"""Where repeated spans stand, generation by generation, and the longest of them for people."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.dedup.cuts import FoundSpans
from assets.dedup.decided import DecidedGeneration
from assets.dedup.signatures import fixed_binary
from assets.document import DOC_ID_BYTES
from assets.manifest import Manifest
from assets.root import Root

SPANS = pa.schema(
    [
        pa.field("doc_id", pa.binary(DOC_ID_BYTES), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("words", pa.int64(), nullable=False),
    ]
)
"""`dedup/<generation>-<fp16>/spans.parquet`: each repeated span of a kept document, in UTF-8 bytes
of its clean text. The text that keeps it is none of these rows."""


def spans_table(decided: DecidedGeneration, spans: FoundSpans) -> pa.Table:
    """Return the spans of a generation, as `SPANS`."""
    tables = [SPANS.empty_table()]
    for part in decided.arrived.parts:
        where = spans.of(part.arrivals)
        arrival = spans.arrival[where]
        tables.append(
            pa.Table.from_arrays(
                [
                    fixed_binary(decided.arrived.doc_ids[arrival]),
                    pa.repeat(part.clean.source, len(arrival)),
                    pa.repeat(part.clean.part, len(arrival)),
                    pa.array(part.rows[arrival - part.first]),
                    pa.array(spans.start[where]),
                    pa.array(spans.end[where]),
                    pa.array(spans.words[where]),
                ],
                schema=SPANS,
            )
        )
    return pa.concat_tables(tables)


def longest_spans(root: Root, unique: Manifest, limit: int) -> list[tuple[bytes, str, int, str]]:
    """Return (doc_id, source, words, text) of the longest repeated spans, the longest first.

    Raises:
        IntegrityError: a table or a clean part is missing or damaged.
    """
    tables = [SPANS.empty_table()]
    for entry in unique.entries():
        if not entry.source and "spans" in entry.objects:
            table = root.read_table(entry.objects["spans"])
            longest = np.argsort(-np.asarray(table["words"]), kind="stable")[:limit]
            tables.append(table.take(pa.array(longest)))
    found = pa.concat_tables(tables)
    found = found.take(pc.sort_indices(found, [("words", "descending"), ("doc_id", "ascending")]))
    clean = {(entry.source, entry.part): entry for entry in Manifest.load(root, "clean").entries()}
    spans = []
    for row in found.slice(0, limit).to_pylist():
        data = clean[row["source"], row["part"]].objects["data"]
        (document,) = root.read_rows(data, [row["row"]], ["text"])
        text = document["text"].encode()[row["start"] : row["end"]].decode()
        spans.append((row["doc_id"], row["source"], row["words"], text))
    return spans
