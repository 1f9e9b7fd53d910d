"""The shard format from the writer's side: `ShardWriter` streams a shard and its sidecars.

The bytes themselves are described in `olmo_loader.shard_files`, whose reading side is offered here
too, so that one import serves whoever makes shards. Memory does not grow with the shard.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from olmo_loader.checksum import CRC_BLOCK_BYTES, BlockChecksums
from olmo_loader.container import (
    CONTAINER,
    CONTAINER_SUFFIX,
    LAYOUTS,
    RAW,
    is_container,
    write_container,
)
from olmo_loader.dolma_table import DolmaTable
from olmo_loader.dtypes import check_token_dtype
from olmo_loader.errors import ConfigurationError
from olmo_loader.label_mask_file import LabelMaskFile
from olmo_loader.records import canonical_json, seal
from olmo_loader.shard_files import (
    CRC_SUFFIX,
    CSV_SUFFIX,
    DOC_RECORD,
    DOCS_SUFFIX,
    HEADER_SUFFIX,
    MASK_SUFFIX,
    SHARD_FORMAT,
    SHARD_VERSION,
    SIDECAR_SUFFIXES,
    TOKENS_SUFFIX,
    ShardHeader,
    docs_between,
    open_docs,
    open_ids,
    read_header,
    sha256_file,
    sidecar_path,
)

__all__ = [
    "CONTAINER_SUFFIX",
    "CRC_SUFFIX",
    "CSV_SUFFIX",
    "DOCS_SUFFIX",
    "DOC_RECORD",
    "HEADER_SUFFIX",
    "MASK_SUFFIX",
    "SIDECAR_SUFFIXES",
    "TOKENS_SUFFIX",
    "ShardHeader",
    "ShardWriter",
    "docs_between",
    "is_container",
    "open_docs",
    "open_ids",
    "read_header",
    "sha256_file",
    "sidecar_path",
]


class ShardWriter:
    """Streams one shard into ``folder``; the files get their names in `close`, the header last.

    Used as a context manager it closes on success and leaves no file after an error. The caller
    cuts: how many tokens a shard gets, and whether a document may run on into the next one, is not
        decided here.

    Example::

        with ShardWriter(folder, "00000-0123456789abcdef", dtype="uint16", ...) as writer:
            writer.append(ids, doc_starts, doc_ids, landed_paths, positions)
        writer.header["sha256"]
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        *,
        dtype: Any,
        vocab_size: int,
        eos_token_id: int,
        pad_token_id: int,
        bos_policy: str,
        tokenizer_sha256: str,
        source: str,
        generation: int,
        stratum: str | None,
        split: str,
        layout: str = RAW,
    ) -> None:
        self.dtype = check_token_dtype(dtype, vocab_size)
        for name, token_id in (("eos", eos_token_id), ("pad", pad_token_id)):
            if not 0 <= token_id < vocab_size:
                raise ConfigurationError(
                    f"{name} token {token_id} is not in a vocabulary of {vocab_size}"
                )
        if layout not in LAYOUTS:
            raise ConfigurationError(f"layout {layout!r} is not one of {', '.join(LAYOUTS)}")
        self.header: dict[str, Any] = {}
        self._layout = layout
        self._fixed: dict[str, Any] = {
            "vocab_size": vocab_size,
            "eos_token_id": eos_token_id,
            "pad_token_id": pad_token_id,
            "bos_policy": bos_policy,
            "tokenizer_sha256": tokenizer_sha256,
            "source": source,
            "generation": generation,
            "stratum": stratum,
            "split": split,
        }
        self._folder, self._stem = Path(folder), stem
        self._folder.mkdir(parents=True, exist_ok=True)
        self._n_tokens, self._n_docs, self._max_id = 0, 0, -1
        self._digest, self._checksums = hashlib.sha256(), BlockChecksums()
        self._tokens = self._create(TOKENS_SUFFIX)
        self._docs = self._create(DOCS_SUFFIX)
        self._csv_file = self._create(CSV_SUFFIX)
        self._mask = LabelMaskFile(self._temporary(MASK_SUFFIX))
        self._table = DolmaTable(self._csv_file)

    @property
    def n_tokens(self) -> int:
        """Tokens appended so far."""
        return self._n_tokens

    @property
    def n_docs(self) -> int:
        """Documents begun so far."""
        return self._n_docs

    def append(
        self,
        ids: NDArray[Any],
        doc_starts: NDArray[Any],
        doc_ids: NDArray[Any],
        landed_paths: Sequence[str],
        positions: Sequence[int] | NDArray[Any],
        label_mask: NDArray[Any] | None = None,
    ) -> None:
        """Add tokens and the documents that begin among them.

        Args:
            ids: integers ``(tokens,)``, EOS included.
            doc_starts: integers ``(documents,)``, ascending, relative to ``ids``. Tokens before the
                first one continue the document that is open; the first tokens of a shard must begin
                one.
            doc_ids: uint8 ``(documents, 16)``.
            landed_paths: for the ``.csv.gz``, one per document.
            positions: integers, likewise; `dolma_table.NO_POSITION` is written empty.
            label_mask: 1, or 0 for a token that nobody should learn to write, ``(tokens,)``; None:
                all are 1.

        Raises:
            ConfigurationError: an id outside the vocabulary, starts out of order, lengths that
                differ, a mask that is none.
        """
        ids, starts = np.asarray(ids), np.asarray(doc_starts).astype(np.int64)
        self._check_documents(starts, len(ids), len(doc_ids), len(landed_paths), len(positions))
        self._mask.append(label_mask, len(ids))
        self._write_ids(ids)
        self._write_documents(
            starts,
            np.ascontiguousarray(doc_ids, np.uint8),
            landed_paths,
            np.asarray(positions, np.int64),
        )
        self._n_tokens += len(ids)
        self._n_docs += len(starts)

    def _check_documents(self, starts: NDArray[Any], n_ids: int, *lengths: int) -> None:
        if set(lengths) != {len(starts)}:
            raise ConfigurationError(
                f"{len(starts)} starts, but ids, paths, positions count {lengths}"
            )
        if len(starts) and not (
            starts[0] >= 0 and starts[-1] < n_ids and bool(np.all(starts[1:] > starts[:-1]))
        ):
            raise ConfigurationError(f"document starts must ascend within 0..{n_ids - 1}")
        if n_ids and self._n_tokens == 0 and (len(starts) == 0 or starts[0] != 0):
            raise ConfigurationError("the first tokens of a shard must begin a document")

    def _write_ids(self, ids: NDArray[Any]) -> None:
        if len(ids) == 0:
            return
        lowest, highest = 0 if ids.dtype.kind == "u" else int(ids.min()), int(ids.max())
        if lowest < 0 or highest >= self._fixed["vocab_size"]:
            wrong = highest if highest >= self._fixed["vocab_size"] else lowest
            raise ConfigurationError(
                f"{self._stem}: id {wrong} is outside the vocabulary of {self._fixed['vocab_size']}"
            )
        self._max_id = max(self._max_id, highest)
        data = np.ascontiguousarray(ids, self.dtype).data.cast("B")
        self._digest.update(data)
        self._checksums.update(data)
        self._tokens.write(data)

    def _write_documents(
        self,
        starts: NDArray[np.int64],
        doc_ids: NDArray[np.uint8],
        landed_paths: Sequence[str],
        positions: NDArray[np.int64],
    ) -> None:
        if len(starts) == 0:
            return
        records = np.empty(len(starts), DOC_RECORD)
        records["start"] = starts + self._n_tokens
        records["doc_id"] = doc_ids.reshape(-1, 16).view("V16")[:, 0]
        self._docs.write(records.tobytes())
        self._table.append(starts + self._n_tokens, doc_ids, landed_paths, positions)

    def close(self) -> dict[str, Any]:
        """Finish the shard and give its files their names.

        Returns:
            The header as written to ``.meta.json``, plus ``sidecars``: ``{suffix: {size,
            sha256}}``, which is what an index record needs.
        """
        self._table.close(self._n_tokens)
        with self._create(CRC_SUFFIX) as file:
            self._sync(file, self._checksums.finish().astype("<u4").tobytes())
        for stream in self._streams:
            self._sync(stream)
            stream.close()
        header = seal(self._describe())
        if self._layout == CONTAINER:
            self._write_container(header)
        else:
            with self._create(HEADER_SUFFIX) as file:
                self._sync(file, canonical_json(header))
        for suffix in self.suffixes:
            self._temporary(suffix).replace(self._folder / f"{self._stem}{suffix}")
        self.header = {**header, "sidecars": self._sidecars()}
        return self.header

    def abort(self) -> None:
        """Drop the unfinished shard: no file of it stays."""
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.close()
        for suffix in (TOKENS_SUFFIX, MASK_SUFFIX, CONTAINER_SUFFIX, *SIDECAR_SUFFIXES):
            self._temporary(suffix).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _describe(self) -> dict[str, Any]:
        return {
            "format": SHARD_FORMAT,
            "version": SHARD_VERSION,
            "layout": self._layout,
            "dtype": self.dtype.name,
            "n_tokens": self._n_tokens,
            "n_docs": self._n_docs,
            "size": self._n_tokens * self.dtype.itemsize,
            "max_id": self._max_id,
            "sha256": self._digest.hexdigest(),
            "crc": {"algorithm": "CRC32C", "block_bytes": CRC_BLOCK_BYTES},
            "docs": {"start": "<u8", "doc_id": "16 bytes"},
            **self._fixed,
        }

    def _write_container(self, header: dict[str, Any]) -> None:
        inside = (TOKENS_SUFFIX, DOCS_SUFFIX, CRC_SUFFIX)
        ids, docs, crcs = (self._temporary(suffix) for suffix in inside)
        path = self._temporary(CONTAINER_SUFFIX)
        write_container(path, header, (ids, docs, crcs))
        with path.open("rb+") as file:
            os.fsync(file.fileno())
        for part in (ids, docs, crcs):
            part.unlink()

    def _sidecars(self) -> dict[str, dict[str, Any]]:
        names = [suffix for suffix in self.suffixes if suffix != TOKENS_SUFFIX]
        paths = {suffix: self._folder / f"{self._stem}{suffix}" for suffix in names}
        return {
            suffix: {"size": path.stat().st_size, "sha256": sha256_file(path)}
            for suffix, path in paths.items()
        }

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of the shard's files, the one without which it does not exist last."""
        mask = () if self._mask.file is None else (MASK_SUFFIX,)
        if self._layout == CONTAINER:
            return (*mask, CSV_SUFFIX, CONTAINER_SUFFIX)
        return (TOKENS_SUFFIX, *mask, *SIDECAR_SUFFIXES)

    @property
    def _streams(self) -> tuple[BinaryIO, ...]:
        mask = self._mask.file
        return (self._tokens, self._docs, self._csv_file, *(() if mask is None else (mask,)))

    def _temporary(self, suffix: str) -> Path:
        return self._folder / f".{self._stem}{suffix}.tmp"

    def _create(self, suffix: str) -> BinaryIO:
        return self._temporary(suffix).open("wb")

    @staticmethod
    def _sync(file: BinaryIO, data: bytes = b"") -> None:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
