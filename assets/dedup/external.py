"""External documents: what the data set must not hold, because another set has it already.

They count as kept before the first generation, numbered from 0, and are searched like a generation:
a sorted run of exact hashes, band keys and shingle sets. They are never part of the data set.

::

    models/external/<fp16>/run arrays as in `runs.py`, items.parquet, set.json

`set.json` comes last and names the other objects; its folder is named by what the set was made of:
the content of its files, the settings, and how signatures are made. It is made once, text by text;
memory is `170 + 24 * bands` bytes for each external document and one batch of texts.
"""

from __future__ import annotations

import json
import logging
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from assets.canonical import canonical_json, fingerprint
from assets.cleaning.language import identify_languages, model_sha256
from assets.dedup.arrivals import map_values
from assets.dedup.exact import NORMALISATION
from assets.dedup.minhash import SignatureSpec, band_keys
from assets.dedup.runs import KeptDocuments, KeptPart, Run, write_run
from assets.dedup.shingles import ShingleSets
from assets.dedup.signatures import binary_rows, signature_batch, stored_sets, stored_signatures
from assets.dedup.text_sets import TextItem, read_text_sets, set_files
from assets.document import DOC_ID_BYTES
from assets.errors import ConfigurationError, IntegrityError
from assets.root import ObjectRef, Root
from assets.settings.dedup import TextSetSettings
from assets.settings.schema import Settings
from assets.sources.hash_cache import HashCache

CODE_VERSION = 1
"""Raised by hand when the same texts would be found otherwise."""

SOURCE_PREFIX = "against:"
"""Stands before a set's name where reports name sources; no source can be called so."""

ITEMS = pa.schema(
    [
        pa.field("set_name", pa.string(), nullable=False),
        pa.field("item_id", pa.string(), nullable=False),
    ]
)
"""External documents in the order of their numbers."""

_BATCH_BYTES = 8 << 20
_BATCH_ITEMS = 4096
_TEXTS = pa.schema(
    [
        pa.field("doc_id", pa.binary(DOC_ID_BYTES)),
        pa.field("row", pa.int64()),
        pa.field("text", pa.large_string()),
        pa.field("language", pa.string()),
    ]
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ExternalSet:
    """A published set of external documents."""

    sha256: str
    """What it was made of: files, settings, signatures."""
    count: int
    objects: dict[str, ObjectRef]

    def open(self, root: Root) -> Run:
        """Open it for search; documents are numbered from 0.

        Raises:
            IntegrityError: an object is missing or damaged.
        """
        return Run(root, self.objects, np.empty(0, np.int64))

    def items(self, root: Root) -> pa.Table:
        """Return who the documents are, as `ITEMS`."""
        return root.read_table(self.objects["items"])


def prepare_external(
    root: Root,
    settings: Settings,
    sets: tuple[TextSetSettings, ...],
    spec: SignatureSpec | None,
) -> ExternalSet | None:
    """Return the published external documents, made if they are not there; null without sets.

    Raises:
        ConfigurationError: a set cannot be read, or a file changed while it was.
        LandingError: a file lies outside the folders that may be read.
    """
    if not sets:
        return None
    made_of = _fingerprint(settings, sets, spec)
    folder = f"models/external/{made_of[:16]}"
    found = _published(root, folder, made_of)
    if found is None:
        found = _publish(root, settings, sets, spec, folder, made_of)
        if _fingerprint(settings, sets, spec) != made_of:
            raise ConfigurationError(
                "dedup.against: a file changed while it was read; run again when it is finished"
            )
        root.publish_bytes(f"{folder}/set.json", canonical_json(_record(found)))
    return found


def _fingerprint(
    settings: Settings, sets: tuple[TextSetSettings, ...], spec: SignatureSpec | None
) -> str:
    """Return what a set is made of; the folders its files lie in are no part of it."""
    with HashCache.open() as cache:
        files = [
            [item.name, file.landed_path, _sha256(cache, file.location)]
            for item in sets
            for file in set_files(item, settings)
        ]
    by_language = spec is not None and spec.characters == "language"
    return fingerprint(
        stage="external",
        code=CODE_VERSION,
        files=files,
        fields=[[*item.fields, item.id_field, item.language_field] for item in sets],
        normalisation=NORMALISATION,
        spec=None if spec is None else spec.metadata,
        bands=None if spec is None else [spec.bands, spec.rows],
        unicode=unicodedata.unidata_version,
        languages=model_sha256() if by_language else None,
    )


def _sha256(cache: HashCache, location: str) -> str:
    try:
        _, sha256 = cache.sha256(location)
    except OSError as error:
        raise ConfigurationError(f"dedup.against: {location} cannot be read: {error}") from error
    if sha256 is None:
        raise ConfigurationError(f"dedup.against: {location} is being written; run again later")
    return sha256


def _published(root: Root, folder: str, made_of: str) -> ExternalSet | None:
    """Return a set that is there as a whole."""
    if root.storage.size(f"{folder}/set.json") is None:
        return None
    try:
        record = json.loads(root.storage.read(f"{folder}/set.json"))
        objects = {role: ObjectRef(**reference) for role, reference in record["objects"].items()}
        found = ExternalSet(sha256=record["sha256"], count=record["count"], objects=objects)
    except (ValueError, TypeError, KeyError) as error:
        raise IntegrityError(
            f"{root.url}: {folder}/set.json is damaged; delete it and run again"
        ) from error
    if found.sha256 != made_of:
        raise IntegrityError(f"{root.url}: {folder}/set.json belongs to another set; delete it")
    whole = all(root.storage.size(item.name) == item.size for item in objects.values())
    return found if whole else None


def _record(found: ExternalSet) -> dict[str, object]:
    return {
        "sha256": found.sha256,
        "count": found.count,
        "objects": {role: item.as_dict() for role, item in found.objects.items()},
    }


def _publish(
    root: Root,
    settings: Settings,
    sets: tuple[TextSetSettings, ...],
    spec: SignatureSpec | None,
    folder: str,
    made_of: str,
) -> ExternalSet:
    with root.workspace() as workspace:
        kept, names, ids = _gather(settings, sets, spec, workspace / "shingles")
        objects = write_run(root, folder, kept, {} if spec is None else spec.metadata)
    table = pa.Table.from_arrays([pa.array(names), pa.array(ids)], schema=ITEMS)
    objects["items"] = root.publish_table(f"{folder}/items.parquet", ITEMS, table)
    logger.info("unique: %d external documents to compare with", len(ids))
    return ExternalSet(sha256=made_of, count=len(ids), objects=objects)


def _gather(
    settings: Settings,
    sets: tuple[TextSetSettings, ...],
    spec: SignatureSpec | None,
    spool: Path,
) -> tuple[KeptDocuments, list[str], list[str]]:
    """Return all documents, the set of each and its id; shingles are mapped from `spool`."""
    names: list[str] = []
    ids: list[str] = []
    hashes = [np.empty((0, 32), np.uint8)]
    keys = [np.empty((0, 0 if spec is None else spec.bands), np.uint64)]
    sizes = [np.empty(0, np.int64)]
    with spool.open("wb") as file:
        for items in _batches(read_text_sets(sets, settings)):
            names += [item.set_name for item in items]
            ids += [item.item_id for item in items]
            table = pa.Table.from_batches([signature_batch(_texts(items, spec), spec)])
            hashes.append(binary_rows(table["exact_hash"]).copy())
            if spec is None:
                sizes.append(np.zeros(len(items), np.int64))
                continue
            keys.append(band_keys(stored_signatures(table), spec))
            found = stored_sets(table)
            np.ascontiguousarray(found.values, np.uint32).tofile(file)
            sizes.append(found.sizes)
    offsets = np.append(0, np.cumsum(np.concatenate(sizes))).astype(np.int64)
    kept = KeptDocuments(
        parts=_parts(names),
        hashes=np.concatenate(hashes),
        keys=np.concatenate(keys) if spec is not None else np.empty((len(ids), 0), np.uint64),
        sets=ShingleSets(offsets, map_values(spool, int(offsets[-1]))),
        doc_ids=np.zeros((len(ids), DOC_ID_BYTES), np.uint8),
        rows=np.arange(len(ids)),
    )
    return kept, names, ids


def _batches(items: Iterator[TextItem]) -> Iterator[list[TextItem]]:
    batch: list[TextItem] = []
    size = 0
    for item in items:
        batch.append(item)
        size += len(item.text)
        if len(batch) == _BATCH_ITEMS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _texts(items: list[TextItem], spec: SignatureSpec | None) -> pa.RecordBatch:
    texts = pa.array([item.text for item in items], pa.large_string())
    languages = [item.language for item in items]
    unknown = [at for at, language in enumerate(languages) if language is None]
    if unknown and spec is not None and spec.characters == "language":
        found, _ = identify_languages(texts.take(pa.array(unknown)))
        for at, language in zip(unknown, found, strict=True):
            languages[at] = language
    columns = [
        pa.nulls(len(items), pa.binary(DOC_ID_BYTES)),
        pa.array(np.arange(len(items))),
        texts,
        pa.array(languages, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_TEXTS)


def _parts(names: list[str]) -> tuple[KeptPart, ...]:
    """Return one part for each set; the documents of a set stand together."""
    parts = []
    for name in dict.fromkeys(names):
        first = names.index(name)
        parts.append(
            KeptPart(
                source=SOURCE_PREFIX + name, part="external", first=first, count=names.count(name)
            )
        )
    return tuple(parts)
