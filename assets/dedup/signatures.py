"""The signatures stage: exact hash, shingle set and MinHash signature of every clean text.

One task per clean task, its parts co-partitioned with theirs; one row per clean row that has a
text. The Parquet file's metadata says how signatures were made (`SignatureSpec.metadata`), so that
a reader can load them into datasketch::

    table = pq.read_table("signatures/wiki/....parquet")
    minhash = datasketch.MinHash(hashvalues=stored_signatures(table)[0], seed=1, scheme="affine32")

Memory is one row group of texts and ten bytes for each of its words.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.canonical import fingerprint
from assets.dedup.decontaminate import ContaminationIndex, PublishedIndex, load_index
from assets.dedup.exact import HASH_BYTES, NORMALISATION, exact_hashes
from assets.dedup.minhash import SignatureSpec, signatures
from assets.dedup.shingles import Characters, ShingleSets, are_unspaced, sampled, shingle_sets
from assets.document import DOC_ID_BYTES
from assets.engine import run_tasks
from assets.errors import IntegrityError
from assets.manifest import PartEntry
from assets.parquet_files import ParquetFile
from assets.root import Root
from assets.settings.dedup import DedupSettings
from assets.stage import StageTask, add_statistics

STAGE = "signatures"
CODE_VERSION = 2
"""Raised by hand when the same texts would get other hashes, shingles or signatures."""

_COLUMNS = ["doc_id", "row", "text", "language"]

logger = logging.getLogger(__name__)

_CHARACTERS: dict[str, Characters] = {"words": "none", "characters": "all", "language": "language"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SignatureTask:
    """The clean parts of one task; everything a worker needs to make their signatures."""

    root_url: str
    spec: SignatureSpec | None
    fingerprint: str
    clean: tuple[PartEntry, ...]
    index: PublishedIndex | None = None
    """The evaluation items to look for."""


def signature_spec(dedup: DedupSettings) -> SignatureSpec | None:
    """Return how signatures are made under these settings; None without MinHash."""
    minhash = dedup.minhash
    if minhash is None:
        return None
    return SignatureSpec(
        ngram=minhash.ngram,
        num_perm=minhash.num_perm,
        bands=minhash.bands,
        rows_per_band=minhash.rows,
        seed=minhash.seed,
        characters=_CHARACTERS[minhash.shingles],
        character_ngram=minhash.character_ngram,
        max_shingles=minhash.max_shingles,
    )


def signature_tasks(
    root_url: str,
    dedup: DedupSettings,
    clean: Iterable[PartEntry],
    index: PublishedIndex | None = None,
) -> list[StageTask[SignatureTask]]:
    """Return one task for each clean task among the entries."""
    groups: dict[tuple[str, str], list[PartEntry]] = {}
    for entry in clean:
        groups.setdefault((entry.source, entry.task), []).append(entry)
    spec = signature_spec(dedup)
    tasks = []
    for (source, task), entries in sorted(groups.items()):
        hashed = signature_fingerprint(entries[0], spec, index)
        payload = SignatureTask(
            root_url=root_url,
            spec=spec,
            fingerprint=hashed,
            clean=tuple(sorted(entries, key=lambda entry: entry.part)),
            index=index,
        )
        tasks.append(
            StageTask(
                source=source,
                generation=entries[0].generation,
                task=task,
                fingerprint=hashed,
                payload=payload,
            )
        )
    return tasks


def signature_fingerprint(
    clean: PartEntry, spec: SignatureSpec | None, index: PublishedIndex | None
) -> str:
    """Return the fingerprint of the signatures of a clean task.

    How many bands there are does not enter: band keys are made from signatures when they are used.
    """
    return fingerprint(
        stage=STAGE,
        code=CODE_VERSION,
        clean=clean.fingerprint,
        normalisation=NORMALISATION,
        spec=None if spec is None else spec.metadata,
        unicode=unicodedata.unidata_version,
        **({} if index is None else {"evaluation_sets": index.sha256}),
    )


def signature_schema(spec: SignatureSpec | None, *, with_items: bool = False) -> pa.Schema:
    """Return the columns of `signatures/`.

    Without MinHash there are no shingles. `with_items`: the evaluation item that a text holds most
    of, its number in the index, and the share of its n-grams; null where it holds none.
    """
    fields = [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("doc_id", pa.binary(DOC_ID_BYTES), nullable=False),
        pa.field("exact_hash", pa.binary(HASH_BYTES), nullable=False),
        pa.field("num_bytes", pa.int64(), nullable=False),
    ]
    metadata = {"normalisation": NORMALISATION}
    if spec is not None:
        fields.append(
            pa.field("shingles", pa.large_list(pa.field("item", pa.uint32(), nullable=False)))
        )
        # Little-endian uint32, `num_perm` of them; null where a text is too short for shingles.
        fields.append(pa.field("signature", pa.binary(4 * spec.num_perm)))
        metadata |= spec.metadata
    if with_items:
        fields += [pa.field("item", pa.int32()), pa.field("item_share", pa.float64())]
    return pa.schema(fields, metadata=metadata)


def signature_batch(
    batch: pa.RecordBatch, spec: SignatureSpec | None, index: ContaminationIndex | None = None
) -> pa.RecordBatch:
    """Return the signatures of the rows of a clean batch that have a text.

    Args:
        batch: the columns doc_id, row, text and language.
        spec: how to make them.
        index: evaluation items to look for.
    """
    rows = batch.filter(pc.is_valid(batch["text"]))
    texts = rows["text"]
    columns = [
        rows["row"],
        rows["doc_id"],
        fixed_binary(exact_hashes(texts)),
        pc.binary_length(texts),
    ]
    if spec is not None:
        sets = shingle_sets(
            texts,
            spec.ngram,
            by_character=_by_character(rows, spec),
            character_ngram=spec.character_ngram,
        )
        found = np.ascontiguousarray(signatures(sets, spec)).view(np.uint8)
        is_short = sets.sizes == 0
        sets = sampled(sets, spec.max_shingles)
        columns.append(pa.LargeListArray.from_arrays(pa.array(sets.offsets), pa.array(sets.values)))
        columns.append(fixed_binary(found, is_null=is_short))
    if index is not None:
        items, shares = index.best(texts)
        columns += [pa.array(items, mask=items < 0), pa.array(shares, mask=items < 0)]
    schema = signature_schema(spec, with_items=index is not None)
    arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _by_character(rows: pa.RecordBatch, spec: SignatureSpec) -> np.ndarray:
    if spec.characters == "language":
        return are_unspaced(rows["language"])
    return np.full(rows.num_rows, spec.characters == "all")


def fixed_binary(rows: np.ndarray, *, is_null: np.ndarray | None = None) -> pa.Array:
    """Return the rows of a (n, width) uint8 array as a fixed-size binary column."""
    mask = None
    if is_null is not None and is_null.any():
        mask = pa.array(~is_null).buffers()[1]
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(rows.shape[1]), len(rows), [mask, pa.py_buffer(np.ascontiguousarray(rows))]
    )


def binary_rows(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return a fixed-size binary column as (n, width) uint8; a null has undefined bytes."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    width = array.type.byte_width
    if len(array) == 0:
        return np.empty((0, width), np.uint8)
    data = np.frombuffer(array.buffers()[1], np.uint8)
    return data[array.offset * width :][: len(array) * width].reshape(-1, width)


def stored_signatures(table: pa.Table) -> np.ndarray:
    """Return the signatures of a `signatures/` table, (rows, num_perm) uint32.

    All ones where a text is too short for shingles: the signature of the empty set.
    """
    column = table["signature"].combine_chunks()
    found = np.ascontiguousarray(binary_rows(column)).view("<u4").copy()
    found[np.asarray(column.is_null())] = 0xFFFFFFFF
    return found


def stored_sets(table: pa.Table) -> ShingleSets:
    """Return the shingle sets of a `signatures/` table."""
    column = table["shingles"].combine_chunks()
    offsets = np.asarray(column.offsets, np.int64)
    values = np.asarray(column.values)[offsets[0] : offsets[-1]]
    return ShingleSets(offsets - offsets[0], values)


def signature_task(payload: SignatureTask) -> list[PartEntry]:
    """Make, publish and return the signatures of one clean task.

    Raises:
        IntegrityError: a clean part is missing or damaged, or its texts are not as many as its
            ledger says.
        RootError: a part cannot be written.
    """
    root = Root(payload.root_url)
    index = None
    if payload.index is not None:
        index = load_index(payload.root_url, tuple(sorted(payload.index.objects.items())))
    return [_signature_part(root, payload, index, entry) for entry in payload.clean]


def repair_signatures(
    root: Root,
    tasks: Sequence[StageTask[SignatureTask]],
    entries: Sequence[PartEntry],
    *,
    processes: int,
) -> None:
    """Make those signature parts again that are not, byte for byte, what their record says.

    Only the tasks they are of are done again; what comes out is what the record says.

    Args:
        root: where the parts lie.
        tasks: all tasks of the stage.
        entries: the parts that are about to be read.
        processes: worker processes.

    Raises:
        IntegrityError: a part cannot be made again as it was.
    """
    damaged = [entry for entry in entries if not root.is_intact(entry.objects["data"])]
    for entry in damaged:
        logger.warning(
            "unique: %s is missing or damaged; task %s of %s is done again",
            entry.objects["data"].name,
            entry.task,
            entry.source,
        )
    wanted = {(entry.source, entry.task) for entry in damaged}
    again = [task.payload for task in tasks if (task.source, task.task) in wanted]
    for _ in run_tasks(signature_task, again, processes=processes):
        pass
    for entry in damaged:
        if not root.is_intact(entry.objects["data"]):
            raise IntegrityError(
                f"{root.url}: {entry.objects['data'].name} was made again with other bytes than "
                "its record says; the libraries were changed since: install constraints.txt's"
            )


def _signature_part(
    root: Root, payload: SignatureTask, index: ContaminationIndex | None, clean: PartEntry
) -> PartEntry:
    name = f"{STAGE}/{clean.source}/{clean.part}-{payload.fingerprint[:16]}.parquet"
    statistics: dict[str, Any] = {"documents": 0, "shingles": 0, "too_short_for_minhash": 0}
    with root.workspace() as folder:
        schema = signature_schema(payload.spec, with_items=index is not None)
        with ParquetFile(folder / "data", schema) as file:
            for batch in root.read_batches(clean.objects["data"], _COLUMNS):
                made = signature_batch(batch, payload.spec, index)
                file.write(made)
                statistics = add_statistics(statistics, _statistics(made))
        if statistics["documents"] != clean.statistics["kept"] + clean.statistics["modified"]:
            raise IntegrityError(
                f"{root.url}: {clean.objects['data'].name} holds {statistics['documents']:,d} "
                f"texts, its ledger {clean.statistics['kept'] + clean.statistics['modified']:,d}"
            )
        objects = {"data": root.publish_file(name, folder / "data")}
    return PartEntry(
        stage=STAGE,
        source=clean.source,
        generation=clean.generation,
        task=clean.task,
        part=clean.part,
        fingerprint=payload.fingerprint,
        objects=objects,
        rows=statistics["documents"],
        files=clean.files,
        statistics=statistics,
    )


def _statistics(made: pa.RecordBatch) -> dict[str, int]:
    has_sets = "shingles" in made.schema.names
    return {
        "documents": made.num_rows,
        "shingles": len(made["shingles"].flatten()) if has_sets else 0,
        "too_short_for_minhash": made["signature"].null_count if has_sets else 0,
    }
