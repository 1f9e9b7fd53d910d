"""The texts that a generation has kept so far, read as often as they are needed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.dedup.arrivals import ArrivedGeneration
from assets.dedup.decide import KEPT, Decisions
from assets.root import Root


class KeptTexts:
    """The texts that a generation has kept so far, in the order of arrivals."""

    def __init__(self, root: Root, arrived: ArrivedGeneration, decisions: Decisions) -> None:
        self._root, self._parts, self._rule = root, arrived.parts, decisions.rule
        self._sizes: list[np.ndarray] | None = None
        self.stored_bytes = sum(part.clean.objects["data"].size for part in arrived.parts)

    def read(self) -> Iterator[pa.Array]:
        """Yield them row group by row group."""
        sizes = [np.empty(0, np.int64)]
        yield pa.array([], pa.large_string())
        for part in self._parts:
            rows = part.rows[self._rule[part.arrivals] == KEPT]
            first = 0
            for batch in self._root.read_batches(part.clean.objects["data"], ["text"]):
                here = rows[(rows >= first) & (rows < first + batch.num_rows)] - first
                first += batch.num_rows
                if len(here):
                    texts = batch["text"].take(pa.array(here))
                    sizes.append(np.asarray(pc.binary_length(texts), np.int64))
                    yield texts
        self._sizes = sizes

    def sizes(self) -> np.ndarray:
        """Return the bytes of each, int64; known once they were read to the end."""
        return np.concatenate(self.batch_sizes())

    def batch_sizes(self) -> list[np.ndarray]:
        """Return the bytes of each, int64, batch by batch as `read` yields them."""
        if self._sizes is None:
            for _ in self.read():
                pass
        assert self._sizes is not None
        return self._sizes
