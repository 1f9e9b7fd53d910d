"""What opening a plan needs of every shard, as columns: no Python object per shard."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.container import CONTAINER_SUFFIX
from olmo_loader.shard_files import MASK_SUFFIX
from olmo_loader.shard_index import TRAIN_SPLIT

NUMBERS = ("n_tokens", "n_docs", "size", "max_id", "vocab_size")
"""Fields of an index record that become int64 columns."""
STRINGS = ("shard", "source", "split", "dtype", "sha256", "stratum", "op")
"""Fields that become columns of UTF-8 bytes."""

Bytes = NDArray[np.bytes_]


@dataclass(frozen=True, kw_only=True)
class ShardColumns:
    """One entry per record, in the order of the records: int64, or UTF-8 bytes."""

    n_tokens: NDArray[np.int64]
    n_docs: NDArray[np.int64]
    size: NDArray[np.int64]
    max_id: NDArray[np.int64]
    vocab_size: NDArray[np.int64]
    shard: Bytes
    source: Bytes
    split: Bytes
    dtype: Bytes
    sha256: Bytes
    stratum: Bytes
    """Empty for none."""
    op: Bytes
    retired: NDArray[np.bool_]
    """True where the weight is 0."""
    masked: NDArray[np.bool_]
    """True where the record names a label mask."""
    packed: NDArray[np.bool_]
    """True where the shard lies in a ``.tok`` container."""

    def __len__(self) -> int:
        return len(self.size)

    def take(self, which: NDArray[Any]) -> ShardColumns:
        """Return some entries, by number or by truth."""
        return ShardColumns(**{item.name: getattr(self, item.name)[which] for item in fields(self)})

    def train(self, keep: Collection[str] = ()) -> NDArray[np.bool_]:
        """Return which shards a training plan numbers, see `plan_identity.train_records`."""
        train: NDArray[np.bool_] = self.split == TRAIN_SPLIT.encode()
        kept = np.array([name.encode() for name in keep], np.bytes_)
        return train & (~self.retired | np.isin(self.shard, kept))


def columns_of(records: Sequence[Mapping[str, Any]]) -> ShardColumns:
    """Return the columns of records that are there as dicts."""
    values: dict[str, Any] = {
        name: np.array([record[name] for record in records], np.int64) for name in NUMBERS
    }
    values |= {
        name: np.array([(record[name] or "").encode() for record in records], np.bytes_)
        for name in STRINGS
    }
    retired = [record["weight"] == 0 for record in records]
    masked = [MASK_SUFFIX in record["sidecars"] for record in records]
    packed = [CONTAINER_SUFFIX in record["sidecars"] for record in records]
    return ShardColumns(
        **values,
        retired=np.array(retired, bool),
        masked=np.array(masked, bool),
        packed=np.array(packed, bool),
    )
