"""Which documents hold items of evaluation sets.

An item of at least `ngram` words is a set of n-grams; a document's score is the share of them that
it holds, in any order and place. A shorter item, down to `min_words`, must stand in the document
word for word. N-grams of the frozen list of common ones count for nothing. The best item decides.

::

    models/decontamination/<sha>/{hashes,offsets,items,sizes}.npy, items.parquet

The index is made from the files that the configuration names and addressed by its content; what it
is made of enters the fingerprint of every signature. Memory of a worker: about 30 bytes for each
n-gram of the sets.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from assets.dedup.ngrams import best_items, draw_filter, item_ngrams
from assets.dedup.runs import load_small, save_array
from assets.dedup.shingles import word_table
from assets.dedup.text_sets import TextItem, read_text_sets
from assets.dedup.utf8 import frozen, utf8_buffer
from assets.errors import ConfigurationError
from assets.root import ObjectRef, Root
from assets.settings.dedup import DecontaminationSettings
from assets.settings.schema import Settings

CONTAMINATED = "contaminated"
ITEMS = pa.schema(
    [
        pa.field("set_name", pa.string(), nullable=False),
        pa.field("item_id", pa.string(), nullable=False),
        pa.field("ngrams", pa.int64(), nullable=False),
    ]
)
"""Items in the order of their numbers; `ngrams` 0: too short, or all of them common."""

_ARRAYS = ("hashes", "offsets", "items", "sizes", "has_length")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ContaminationIndex:
    """The n-grams of all items, and who has them."""

    hashes: np.ndarray
    """uint64, sorted, distinct."""
    offsets: np.ndarray
    """(n-grams + 1,) int64."""
    items: np.ndarray
    """int32: the items that have each n-gram."""
    sizes: np.ndarray
    """(items,) int64: distinct n-grams of each item."""
    has_length: np.ndarray
    """(ngram + 1,) bool: whether there are n-grams of so many words."""

    def best(self, texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Return each text's best item (int32, -1 for none) and its score (float64)."""
        data, starts = utf8_buffer(texts)
        arrays = (self.hashes, self.offsets, self.items, self.sizes)
        return best_items(
            data,
            starts,
            word_table(),
            frozen(self.has_length),
            draw_filter(self.hashes),
            *(frozen(array) for array in arrays),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedIndex:
    """An index in the root: its identity and its objects by role."""

    sha256: str
    objects: dict[str, ObjectRef]


def prepare_index(root: Root, settings: Settings) -> PublishedIndex | None:
    """Make and publish the index that the configuration asks for; null if it asks for none.

    Raises:
        ConfigurationError: a set cannot be read, or nothing of it can be found.
    """
    wanted = settings.dedup.decontaminate
    if wanted is None:
        return None
    items = list(read_text_sets(wanted.sets, settings))
    common = _common_ngrams(wanted, settings)
    index = build_index([item.text for item in items], wanted, common)
    table = _item_table(items, index)
    _say_sets(wanted, table)
    arrays = {name: getattr(index, name) for name in _ARRAYS}
    digest = hashlib.sha256()
    for name in _ARRAYS:
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    for column in ("set_name", "item_id"):
        digest.update("\0".join(table[column].to_pylist()).encode())
    folder = f"models/decontamination/{digest.hexdigest()[:16]}"
    objects = {
        name: root.publish(f"{folder}/{name}.npy", functools.partial(save_array, array))
        for name, array in arrays.items()
    }
    objects["table"] = root.publish_table(f"{folder}/items.parquet", ITEMS, table)
    return PublishedIndex(sha256=digest.hexdigest(), objects=objects)


def build_index(
    texts: Sequence[str], wanted: DecontaminationSettings, common: np.ndarray
) -> ContaminationIndex:
    """Return the index of items.

    Args:
        texts: text of each item.
        wanted: how items are compared.
        common: n-grams that count for nothing, sorted uint64.

    Raises:
        ConfigurationError: no item has an n-gram.
    """
    column = pa.array(texts, pa.large_string())
    found, lengths = item_ngrams(column, wanted.ngram, wanted.min_words)
    sets = [np.setdiff1d(hashes, common, assume_unique=True) for hashes in found]
    sizes = np.array([len(hashes) for hashes in sets], np.int64)
    if not sizes.sum():
        raise ConfigurationError(
            f"dedup.decontaminate: none of {len(texts):,d} items has {wanted.min_words} words"
        )
    hashes = np.concatenate(sets)
    owners = np.repeat(np.arange(len(sets)), sizes)
    order = np.lexsort((owners, hashes))
    distinct, counts = np.unique(hashes, return_counts=True)
    return ContaminationIndex(
        hashes=distinct,
        offsets=np.append(0, np.cumsum(counts)).astype(np.int64),
        items=owners[order].astype(np.int32),
        sizes=sizes,
        has_length=np.isin(np.arange(wanted.ngram + 1), lengths[lengths > 0]),
    )


@functools.lru_cache(maxsize=1)
def load_index(root_url: str, objects: tuple[tuple[str, ObjectRef], ...]) -> ContaminationIndex:
    """Return a published index; a worker keeps the last one.

    Raises:
        IntegrityError: an object is missing or damaged.
    """
    root, references = Root(root_url), dict(objects)
    return ContaminationIndex(**{name: load_small(root, references[name]) for name in _ARRAYS})


def _common_ngrams(wanted: DecontaminationSettings, settings: Settings) -> np.ndarray:
    if wanted.common_ngrams is None:
        return np.empty(0, np.uint64)
    path = Path(settings.base_dir) / wanted.common_ngrams
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"dedup.decontaminate.common_ngrams: {path}: {error}") from error
    hashes, _ = item_ngrams(pa.array(lines, pa.large_string()), wanted.ngram, 1)
    return np.unique(np.concatenate([np.empty(0, np.uint64), *hashes]))


def _item_table(items: Sequence[TextItem], index: ContaminationIndex) -> pa.Table:
    return pa.Table.from_arrays(
        [
            pa.array([item.set_name for item in items], pa.string()),
            pa.array([item.item_id for item in items], pa.string()),
            pa.array(index.sizes),
        ],
        schema=ITEMS,
    )


def _say_sets(wanted: DecontaminationSettings, table: pa.Table) -> None:
    names, ngrams = table["set_name"].to_pylist(), table["ngrams"].to_pylist()
    for item in wanted.sets:
        sizes = [size for name, size in zip(names, ngrams, strict=True) if name == item.name]
        logger.info(
            "unique: evaluation set %s: %d items, %d of them too short or too common to look for",
            item.name,
            len(sizes),
            sizes.count(0),
        )
