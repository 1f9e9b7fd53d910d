"""Which documents hold items of evaluation sets.

An item of at least `ngram` words is a set of n-grams; a document's score is the share of them that
it holds, in any order and place. A shorter item, down to `min_words`, must stand in the document
word for word. N-grams of the frozen list of common ones count for nothing. The best item decides.
With a tokenizer file, its tokens take the place of words.

::

    models/decontamination/<sha>/{hashes,offsets,items,sizes}.npy, items.parquet, tokenizer.json

The index is made from the files that the configuration names and addressed by its content; what it
is made of enters the fingerprint of every signature. Memory of a worker: about 30 bytes for each
n-gram of the sets.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from assets.dedup.ngrams import (
    UnitHashes,
    best_items,
    count_documents,
    draw_filter,
    id_hashes,
    item_ngrams,
    token_hashes,
    word_hashes,
)
from assets.dedup.stored_arrays import load_small, save_array
from assets.dedup.text_sets import TextItem, read_text_sets
from assets.dedup.utf8 import frozen
from assets.errors import ConfigurationError, StageError
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

_TOKENIZER = "tokenizer"
_PLANTED = 256
"""Items that are looked for in themselves before anything is decided."""
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
    tokenizer: Tokenizer | None = None
    """Null: units are words."""

    def units(self, texts: pa.Array) -> UnitHashes:
        """Return the units of texts: words, or tokens."""
        if self.tokenizer is None:
            return word_hashes(texts)
        return token_hashes(texts, self.tokenizer)

    def best(self, texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Return each text's best item (int32, -1 for none) and its score (float64)."""
        units = self.units(texts)
        arrays = (self.hashes, self.offsets, self.items, self.sizes)
        return best_items(
            units.offsets,
            units.values,
            frozen(self.has_length),
            draw_filter(self.hashes),
            *(frozen(array) for array in arrays),
        )

    def add_documents(self, texts: pa.Array, counts: np.ndarray) -> None:
        """Add to `counts` (int64) in how many of the texts each n-gram stands."""
        units = self.units(texts)
        count_documents(
            units.offsets,
            units.values,
            frozen(self.has_length),
            draw_filter(self.hashes),
            frozen(self.hashes),
            counts,
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
    items, index, tokenizer = read_index(wanted, settings, _common_ngrams(wanted, settings))
    table = _item_table(items, index)
    _say_sets(wanted, table)
    _check_finds_itself(items, index)
    arrays = {name: getattr(index, name) for name in _ARRAYS}
    digest = hashlib.sha256()
    for name in _ARRAYS:
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    for column in ("set_name", "item_id"):
        digest.update("\0".join(table[column].to_pylist()).encode())
    if tokenizer is not None:
        digest.update(tokenizer)
    folder = f"models/decontamination/{digest.hexdigest()[:16]}"
    objects = {
        name: root.publish(f"{folder}/{name}.npy", functools.partial(save_array, array))
        for name, array in arrays.items()
    }
    objects["table"] = root.publish_table(f"{folder}/items.parquet", ITEMS, table)
    if tokenizer is not None:
        objects[_TOKENIZER] = root.publish_bytes(f"{folder}/tokenizer.json", tokenizer)
    return PublishedIndex(sha256=digest.hexdigest(), objects=objects)


def _check_finds_itself(items: Sequence[TextItem], index: ContaminationIndex) -> None:
    """Look for some of the items in themselves: a search that finds nothing must not pass.

    Raises:
        StageError: an item is not found whole in its own text.
    """
    some = np.flatnonzero(index.sizes > 0)[:_PLANTED].tolist()
    texts = pa.array([f"before {items[at].text} after" for at in some], pa.large_string())
    _, scores = index.best(texts)
    if index.tokenizer is None and (scores < 1.0).any():
        missed = items[some[int(np.argmin(scores))]]
        raise StageError(
            f"dedup.decontaminate: item {missed.item_id} of {missed.set_name} is not found in its "
            f"own text (score {scores.min():.3f}); this is a bug, nothing was decided"
        )


def read_index(
    wanted: DecontaminationSettings, settings: Settings, common: np.ndarray
) -> tuple[list[TextItem], ContaminationIndex, bytes | None]:
    """Return the items, their index, and the bytes of the tokenizer file if one is named.

    Raises:
        ConfigurationError: a set or the tokenizer cannot be read, or no item has an n-gram.
    """
    items = list(read_text_sets(wanted.sets, settings))
    tokenizer = None if wanted.tokenizer is None else _read_tokenizer(wanted.tokenizer, settings)
    loaded = None if tokenizer is None else parse_tokenizer(tokenizer)
    return items, build_index([item.text for item in items], wanted, common, loaded), tokenizer


def build_index(
    texts: Sequence[str],
    wanted: DecontaminationSettings,
    common: np.ndarray,
    tokenizer: Tokenizer | None = None,
) -> ContaminationIndex:
    """Return the index of items.

    Args:
        texts: text of each item.
        wanted: how items are compared.
        common: n-grams that count for nothing, sorted uint64.
        tokenizer: what makes the units; null: words.

    Raises:
        ConfigurationError: no item has an n-gram.
    """
    column = pa.array(texts, pa.large_string())
    units = word_hashes(column) if tokenizer is None else token_hashes(column, tokenizer)
    found, lengths = item_ngrams(units, wanted.ngram, wanted.min_words)
    sets = [np.setdiff1d(hashes, common) for hashes in found]
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
        tokenizer=tokenizer,
    )


@functools.lru_cache(maxsize=1)
def load_index(root_url: str, objects: tuple[tuple[str, ObjectRef], ...]) -> ContaminationIndex:
    """Return a published index; a worker keeps the last one.

    Raises:
        IntegrityError: an object is missing or damaged.
    """
    root, references = Root(root_url), dict(objects)
    tokenizer = None
    if _TOKENIZER in references:
        tokenizer = parse_tokenizer(root.read_bytes(references[_TOKENIZER]))
    arrays = {name: load_small(root, references[name]) for name in _ARRAYS}
    return ContaminationIndex(**arrays, tokenizer=tokenizer)


def _read_tokenizer(name: str, settings: Settings) -> bytes:
    path = Path(settings.base_dir) / name
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"dedup.decontaminate.tokenizer: {path}: {error}") from error


def parse_tokenizer(data: bytes) -> Tokenizer:
    """Return the tokenizer of a tokenizer.json, without cutting or padding.

    Raises:
        ConfigurationError: the file is no tokenizer.
    """
    try:
        tokenizer = Tokenizer.from_str(data.decode())
    except Exception as error:
        # The library raises plain `Exception` for a file that it cannot read.
        raise ConfigurationError(
            f"dedup.decontaminate.tokenizer: the file is no tokenizer.json: {error}"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _common_ngrams(wanted: DecontaminationSettings, settings: Settings) -> np.ndarray:
    if wanted.common_ngrams is None:
        return np.empty(0, np.uint64)
    path = Path(settings.base_dir) / wanted.common_ngrams
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        if wanted.tokenizer is None:
            units = word_hashes(pa.array(lines, pa.large_string()))
        else:
            units = _listed_tokens(lines)
    except (OSError, ValueError, TypeError, OverflowError) as error:
        raise ConfigurationError(f"dedup.decontaminate.common_ngrams: {path}: {error}") from error
    hashes, _ = item_ngrams(units, wanted.ngram, 1)
    return np.unique(np.concatenate([np.empty(0, np.uint64), *hashes]))


def _listed_tokens(lines: Sequence[str]) -> UnitHashes:
    """Return the tokens of n-grams that are written as JSON lists of ids, one a line."""
    ids = [np.array(json.loads(line), np.uint64).reshape(-1) for line in lines if line.strip()]
    offsets = np.append(0, np.cumsum([len(each) for each in ids])).astype(np.int64)
    values = id_hashes(np.concatenate([np.empty(0, np.uint64), *ids]))
    return UnitHashes(frozen(offsets), frozen(values))


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
