"""Many files of token ids as one array of instances: arithmetic and reads in numpy, no torch.

An instance is ``sequence_length`` ids at a multiple of that in one file; a file's rest is left out.
Files keep their order, the same file may be listed several times.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import FilePool
from olmo_loader.document_lengths import DocumentLengths, lengths_from_boundaries
from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.overriding import override
from olmo_loader.shard_files import docs_between, open_docs
from olmo_loader.token_files import check_first_ids

_MAX_OPEN_DOCS = 256


@dataclass(frozen=True, kw_only=True)
class InstanceFiles:
    """The files of a data set and how they are cut."""

    paths: tuple[Path, ...]
    num_tokens: NDArray[np.int64]
    """Ids in each file, int64 ``(files,)``."""
    dtype: np.dtype[Any]
    """Little-endian type of the ids, the same in every file."""
    sequence_length: int
    label_mask_paths: tuple[Path, ...] | None = None
    """One byte per token, beside each file of ids."""
    num_docs: tuple[int, ...] | None = None
    """Records in each file's ``.docs.npy``, None when the files have none."""
    masked_spans: Mapping[int, NDArray[np.int64]] | None = None
    """Per file number, sorted disjoint token spans ``(spans, 2)`` nobody may learn from."""
    pad_token_id: int | None = None
    """What stands in masked spans."""
    described: bool = False
    """True when dtype and sizes come from a plan or headers; then no guess is needed."""


@dataclass(frozen=True)
class Instances:
    """What was read: some instances, in the order asked for."""

    index: NDArray[np.int64]
    """Global instance numbers ``(instances,)``."""
    ids: NDArray[np.int64]
    """``(instances, sequence_length)``, masked spans replaced by pad."""
    raw: NDArray[Any]
    """The ids as stored, before any masking, in their own dtype."""
    files: NDArray[np.int64]
    """File number of each instance."""
    starts: NDArray[np.int64]
    """First token of each instance inside its file."""
    label_mask: NDArray[np.bool_] | None
    """``(instances, sequence_length)``, False = no loss; None when nothing is masked anywhere."""


class InstanceReader:
    """Reads instances by global number. Safe from any thread, small to pickle."""

    def __init__(self, files: InstanceFiles) -> None:
        if files.sequence_length < 1:
            raise ConfigurationError(f"an instance has tokens, not {files.sequence_length}")
        if files.masked_spans and files.pad_token_id is None:
            raise ConfigurationError("masked spans need pad_token_id")
        self.files = files
        counts = files.num_tokens // files.sequence_length
        self.first_instances: NDArray[np.int64] = np.concatenate(([0], np.cumsum(counts)))
        """Global number of each file's first instance, int64 ``(files + 1,)``; last = number."""
        self._pool = FilePool()
        self._names = tuple(str(path) for path in files.paths)
        self._checked = [files.described] * len(files.paths)
        self._docs: dict[int, NDArray[Any]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return int(self.first_instances[-1])

    @property
    def masks_labels(self) -> bool:
        """True when every instance comes with a label mask."""
        return self.files.label_mask_paths is not None or bool(self.files.masked_spans)

    def locate(self, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return file number and first token inside it of each instance, int64 ``(instances,)``.

        Raises:
            IndexError: a number is not in ``[0, len)``.
        """
        if len(index) and not (index.min() >= 0 and index.max() < len(self)):
            wrong = int(index.max()) if index.max() >= len(self) else int(index.min())
            raise IndexError(f"{wrong} is out of bounds for dataset of size {len(self)}")
        files = np.searchsorted(self.first_instances, index, side="right") - 1
        return files, (index - self.first_instances[files]) * self.files.sequence_length

    def read(self, index: NDArray[np.int64]) -> Instances:
        """Read instances.

        Args:
            index: global instance numbers, int64 ``(instances,)``, in any order, repeats allowed.

        Raises:
            IndexError: see `locate`.
            ShortReadError: a file is shorter than when it was opened.
            IntegrityError: a file is not raw ids of the dtype.
        """
        files, starts = self.locate(index)
        raw = self._read_ids(files, starts)
        ids = raw.astype(np.int64)
        if raw.dtype.itemsize == 8 and (ids < 0).any():
            raise IntegrityError("an id above 2^63 - 1: these files are no uint64 token ids")
        mask = self._read_masks(files, starts) if self.masks_labels else None
        if mask is not None and self.files.masked_spans:
            self._mask_spans(ids, mask, files, starts)
        return Instances(index, ids, raw, files, starts, mask)

    def _read_ids(self, files: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[Any]:
        raw = np.empty((len(files), self.files.sequence_length), self.files.dtype)
        row_bytes, item, begin = raw.strides[0], raw.itemsize, 0
        buffer = raw.data.cast("B") if raw.size else memoryview(b"")
        names, checked, read_into = self._names, self._checked, self._pool.read_into
        for file, start in zip(files.tolist(), starts.tolist(), strict=True):
            if not checked[file]:
                check_first_ids(self.files.paths[file], self.files.dtype)
                checked[file] = True
            read_into(names[file], start * item, buffer[begin : begin + row_bytes])
            begin += row_bytes
        return raw

    def _read_masks(self, files: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
        mask = np.ones((len(files), self.files.sequence_length), bool)
        paths = self.files.label_mask_paths
        if paths is None:
            return mask
        for row, (file, start) in enumerate(zip(files.tolist(), starts.tolist(), strict=True)):
            data = self._pool.read(str(paths[file]), start, self.files.sequence_length)
            mask[row] = np.frombuffer(data, np.uint8) != 0
        return mask

    def _mask_spans(
        self,
        ids: NDArray[np.int64],
        mask: NDArray[np.bool_],
        files: NDArray[np.int64],
        starts: NDArray[np.int64],
    ) -> None:
        length = self.files.sequence_length
        all_spans, pad = self.files.masked_spans or {}, self.files.pad_token_id
        assert pad is not None
        for row, (file, start) in enumerate(zip(files.tolist(), starts.tolist(), strict=True)):
            spans = all_spans.get(file)
            if spans is None:
                continue
            first = int(np.searchsorted(spans[:, 1], start, side="right"))
            last = int(np.searchsorted(spans[:, 0], start + length, side="left"))
            for begin, end in spans[first:last].tolist():
                inside = slice(max(begin - start, 0), min(end - start, length))
                ids[row, inside] = pad
                mask[row, inside] = False

    def stored_lengths(self, instances: Instances) -> DocumentLengths:
        """Return the instances' document lengths from the shards' document records."""
        places = zip(instances.files.tolist(), instances.starts.tolist(), strict=True)
        return lengths_from_boundaries([self.documents_at(*place)[1] for place in places])

    def documents_at(self, file: int, start: int) -> tuple[int, NDArray[np.int64]]:
        """Return the documents of the instance at token ``start`` of a file.

        Returns:
            Number of the first document in the file, and int64 boundaries in tokens of the file.
        """
        end = start + self.files.sequence_length
        return docs_between(self.docs(file), start, end, int(self.files.num_tokens[file]))

    def docs(self, file: int) -> NDArray[Any]:
        """Return the document records of a file (`DOC_RECORD`), mapped."""
        if self.files.num_docs is None:
            raise ConfigurationError(
                f"{self.files.paths[file]} has no stored document boundaries: "
                'use doc_boundaries="eos"'
            )
        docs = self._docs.get(file)
        if docs is None:
            found = open_docs(self.files.paths[file], self.files.num_docs[file])
            with self._lock:
                docs = self._docs[file] = found.view(np.ndarray)
                if len(self._docs) > _MAX_OPEN_DOCS:
                    del self._docs[next(iter(self._docs))]
        return docs

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return InstanceReader, (self.files,)
