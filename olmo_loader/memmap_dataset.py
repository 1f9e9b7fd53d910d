"""A map-style torch dataset over many files of token ids: OLMo's `MemMapDataset`, checked.

Parameter names, defaults, fields and dtypes are OLMo's. Where OLMo yields wrong data without a
word, this one raises:

- a file that became shorter is an error, not a short row that padding fills up;
- a file with a shard header beside it is read only as the header says; a file of ``numpy.save``, or
  uint32 ids read as uint16, is refused when it shows in the first ids;
- a label mask must have exactly one byte per token;
- ``a + b`` keeps every option or refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from olmo_loader.batch_reader import BatchReader, RawBatch
from olmo_loader.data_place import ReadingOptions
from olmo_loader.dtypes import check_file_dtype
from olmo_loader.errors import ConfigurationError
from olmo_loader.instance_filter import InstanceFilterConfig
from olmo_loader.instance_reader import InstanceFiles, InstanceReader, Places, widen
from olmo_loader.locations import file_name, open_ranges
from olmo_loader.overriding import override
from olmo_loader.records import canonical_json, sha256_hex
from olmo_loader.token_files import check_mask_sizes, count_tokens

Metadata = Mapping[str, Any]


class MemMapDataset(Dataset[dict[str, Any]]):
    """Instances of ``chunk_size`` tokens, numbered through all files in the order given.

    An item holds ``input_ids`` int64 ``(chunk_size,)`` and, when asked for: ``instance_mask`` bool
    (False = filtered), ``label_mask`` bool ``(chunk_size,)``, ``metadata`` dict, ``attention_mask``
    int64 (0 at every pad token), ``doc_lens`` int32 ``(documents,)``.

    Args:
        paths: files of raw token ids, all local or all urls; one given twice is read twice.
        chunk_size: tokens per instance; a file's rest is left out.
        memmap_dtype: type of the ids, an integer of any size.
        metadata: one dict for all files, or one per file.
        include_instance_metadata: put a copy of it into each item.
        generate_attention_mask: needs ``pad_token_id``.
        generate_doc_lengths: needs ``eos_token_id``.
        pad_token_id: also what collating pads with.
        eos_token_id: the separator of documents.
        label_mask_paths: files of one byte per token, False = no loss.
        instance_filter_config: None = no filter.
        doc_boundaries: ``eos`` takes every EOS token as an end (OLMo's bits), ``stored`` reads the
            shards' document records.
        reader: of a published data set, in place of opening ``paths``; see `olmo_loader.published`.
        reading: how ``paths`` are read: open files, retries and cache of remote ones.

    Raises:
        ConfigurationError: a ``ValueError``; texts as in OLMo.
    """

    def __init__(
        self,
        *paths: str | Path,
        chunk_size: int = 1024,
        memmap_dtype: Any = np.uint16,
        metadata: Sequence[Metadata] | Metadata | None = None,
        include_instance_metadata: bool = True,
        generate_attention_mask: bool = False,
        generate_doc_lengths: bool = False,
        pad_token_id: int | None = None,
        eos_token_id: int | None = None,
        label_mask_paths: Sequence[str | Path] | None = None,
        instance_filter_config: InstanceFilterConfig | None = None,
        doc_boundaries: str = "eos",
        reader: InstanceReader | None = None,
        reading: ReadingOptions | None = None,
    ) -> None:
        if not paths:
            raise ConfigurationError("At least one path is required")
        if generate_attention_mask and pad_token_id is None:
            raise ConfigurationError("'pad_token_id' is required for 'generate_attention_mask'")
        if generate_doc_lengths and eos_token_id is None and doc_boundaries == "eos":
            raise ConfigurationError("'eos_token_id' is required for 'generate_cu_doc_lengths'")
        if label_mask_paths is not None and len(label_mask_paths) != len(paths):
            raise ConfigurationError(
                "There must be the same number of 'label_mask_paths' as there are 'paths'"
            )
        if doc_boundaries not in {"eos", "stored"}:
            raise ConfigurationError(f"doc_boundaries is eos or stored, not {doc_boundaries}")
        self.paths = tuple(paths)
        self.chunk_size = chunk_size
        self.dtype = check_file_dtype(memmap_dtype)
        self.pad_token_id, self.eos_token_id = pad_token_id, eos_token_id
        self.label_mask_paths = None if label_mask_paths is None else tuple(label_mask_paths)
        self.instance_filter_config = instance_filter_config
        self.doc_boundaries = doc_boundaries
        self._metadata = _metadata_per_path(metadata, len(paths))
        self._include_instance_metadata = include_instance_metadata
        self._generate_attention_mask = generate_attention_mask
        self._generate_doc_lengths = generate_doc_lengths
        self._reader = reader
        self._reading = ReadingOptions() if reading is None else reading
        self._batches: BatchReader | None = None

    @property
    def reader(self) -> InstanceReader:
        """The reading side; the first use looks up every file's size.

        Raises:
            FileNotFoundError: a file does not exist.
            ConfigurationError, IntegrityError: see `olmo_loader.token_files`.
        """
        if self._reader is None:
            self._reader = self._open()
        return self._reader

    def _open(self) -> InstanceReader:
        paths = tuple(str(path) for path in self.paths)
        masks = None
        if self.label_mask_paths is not None:
            masks = tuple(str(path) for path in self.label_mask_paths)
        kinds = {name.partition("://")[0] for name in (*paths, *(masks or ())) if "://" in name}
        if len(kinds) > 1 or (
            kinds and not all("://" in name for name in (*paths, *(masks or ())))
        ):
            raise ConfigurationError(
                "the files of a data set are all local, or all on http, https or s3"
            )
        options = self._reading
        ranges = open_ranges(
            paths[0],
            max_open=options.max_open_shards,
            policy=options.retry,
            cache_dir=options.cache_dir,
            cache_bytes=options.cache_bytes,
        )
        num_tokens = count_tokens(ranges, paths, self.dtype)
        if masks is not None:
            check_mask_sizes(ranges, paths, masks, num_tokens)
        files = InstanceFiles(
            paths=paths,
            num_tokens=num_tokens,
            dtype=self.dtype,
            sequence_length=self.chunk_size,
            label_mask_paths=masks,
        )
        return InstanceReader(files, ranges)

    @property
    def max_seq_len(self) -> int:
        """Another name of ``chunk_size``."""
        return self.chunk_size

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """First and past-the-end instance of each file."""
        first = self.reader.first_instances.tolist()
        return list(pairwise(first))

    @property
    def fingerprint(self) -> str:
        """Sha256 over file names (not folders), token counts, dtype and chunk size."""
        names = [file_name(path) for path in self.paths]
        counts = self.reader.files.num_tokens.tolist()
        body = {
            "files": list(zip(names, counts, strict=True)),
            "dtype": self.dtype.name,
            "sequence_length": self.chunk_size,
        }
        return sha256_hex(canonical_json(body))

    @property
    def summary(self) -> str:
        """How many files there are, and how long the longest is, for messages."""
        tokens = self.reader.files.num_tokens
        longest = int(tokens.argmax())
        return (
            f"a data set of {len(tokens)} files for instances of {self.chunk_size} tokens (the "
            f"longest, {self.paths[longest]}, holds {tokens[longest]} {self.dtype.name} ids)"
        )

    def __len__(self) -> int:
        return len(self.reader)

    @override
    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return one item; negative numbers count from the end.

        Raises:
            IndexError: no such instance.
        """
        number = int(index)
        position = number + len(self) if number < 0 else number
        if not 0 <= position < len(self):
            raise IndexError(f"{number} is out of bounds for dataset of size {len(self)}")
        return self.read_items(np.array([position]))[0]

    def read_items(self, index: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return the items of these instances, read in one go: their ids are rows of one array.

        Args:
            index: global instance numbers, int64 ``(instances,)``.

        Raises:
            IndexError: no such instance.
        """
        batches, read = self.batches, self.reader.read(index)
        ids = read.ids
        items: list[dict[str, Any]] = [{"input_ids": torch.from_numpy(row)} for row in ids]
        if self.instance_filter_config is not None:
            _add(items, "instance_mask", batches.keep(read).tolist())
        if read.label_mask is not None:
            _add(items, "label_mask", map(torch.from_numpy, read.label_mask))
        if self._include_instance_metadata:
            metadata = (deepcopy(self._metadata[file]) for file in read.files.tolist())
            _add(items, "metadata", metadata)
        if self._generate_attention_mask:
            attended = (ids != self.pad_token_id).astype(np.int64)
            _add(items, "attention_mask", map(torch.from_numpy, attended))
        if self._generate_doc_lengths:
            rows = batches.lengths(read).rows
            _add(items, "doc_lens", (torch.from_numpy(row.copy()) for row in rows))
        return items

    @property
    def batches(self) -> BatchReader:
        """What reads whole batches, in numpy."""
        if self._batches is None:
            self._batches = BatchReader(
                reader=self.reader,
                eos_token_id=self.eos_token_id,
                doc_boundaries=self.doc_boundaries,
                generate_doc_lengths=self._generate_doc_lengths,
                instance_filter_config=self.instance_filter_config,
            )
        return self._batches

    @property
    def filters_live(self) -> bool:
        """True when every batch is put through the filter, instead of looking up its verdicts."""
        return self.instance_filter_config is not None and not self.batches.has_verdicts

    def read_batch(self, wanted: NDArray[np.int64] | Places) -> dict[str, Any]:
        """Return the batch of these instances: what `DataCollator` makes of the items, in one go.

        Args:
            wanted: global instance numbers, int64 ``(batch,)``, or what `BatchReader.place`
                returned for them.
        """
        index = wanted.index if isinstance(wanted, Places) else wanted
        return self.finish_batch(index, self.batches.read(wanted, reuse=True))

    def finish_batch(self, index: NDArray[np.int64], raw: RawBatch) -> dict[str, Any]:
        """Return the batch that ``raw`` becomes: ids widened, arrays as tensors, OLMo's keys.

        Args:
            index: the instances.
            raw: what `BatchReader.read` returned for them, here or in another process.
        """
        ids = widen(raw["ids"])
        batch: dict[str, Any] = {"input_ids": torch.from_numpy(ids)}
        if self._generate_attention_mask:
            batch["attention_mask"] = torch.from_numpy(ids != self.pad_token_id).float()
        if "label_mask" in raw:
            batch["label_mask"] = torch.from_numpy(raw["label_mask"])
        batch["index"] = torch.from_numpy(np.array(index, np.int64))
        if "instance_mask" in raw:
            batch["instance_mask"] = torch.from_numpy(raw["instance_mask"])
        if "doc_lens" in raw:
            batch["doc_lens"] = torch.from_numpy(raw["doc_lens"])
            batch["max_doc_lens"] = raw["max_doc_lens"].tolist()
        if self._include_instance_metadata:
            batch["metadata"] = [deepcopy(self._metadata[file]) for file in raw["files"].tolist()]
        return batch

    @override
    def __add__(self, other: Dataset[dict[str, Any]]) -> MemMapDataset:  # type: ignore[override]
        """Return both data sets' files in one, with every option kept.

        Raises:
            NotImplementedError: ``other`` is no `MemMapDataset`.
            ConfigurationError: an option differs. OLMo drops most of them here.
        """
        if not isinstance(other, MemMapDataset):
            raise NotImplementedError(
                f"a {type(other).__name__} cannot be added to a MemMapDataset"
            )
        mine, theirs = self._options(), other._options()
        different = sorted(key for key in mine if mine[key] != theirs[key])
        if different:
            raise ConfigurationError(f"the data sets differ in {', '.join(different)}")
        if (self.label_mask_paths is None) != (other.label_mask_paths is None):
            raise ConfigurationError("one of the data sets has label masks, the other has none")
        masks = (*(self.label_mask_paths or ()), *(other.label_mask_paths or ()))
        return MemMapDataset(
            *self.paths,
            *other.paths,
            metadata=[*self._metadata, *other._metadata],
            label_mask_paths=masks or None,
            **mine,
        )

    def _options(self) -> dict[str, Any]:
        if self._reader is not None and self._reader.files.described:
            raise ConfigurationError("a published data set is opened whole: add files, not plans")
        return {
            "chunk_size": self.chunk_size,
            "memmap_dtype": self.dtype,
            "include_instance_metadata": self._include_instance_metadata,
            "generate_attention_mask": self._generate_attention_mask,
            "generate_doc_lengths": self._generate_doc_lengths,
            "pad_token_id": self.pad_token_id,
            "eos_token_id": self.eos_token_id,
            "instance_filter_config": self.instance_filter_config,
            "doc_boundaries": self.doc_boundaries,
            "reading": self._reading,
        }


def _add(items: Sequence[dict[str, Any]], field: str, values: Iterable[Any]) -> None:
    for item, value in zip(items, values, strict=True):
        item[field] = value


def _metadata_per_path(
    metadata: Sequence[Metadata] | Metadata | None, num_paths: int
) -> Sequence[Metadata]:
    if metadata is None or isinstance(metadata, Mapping):
        return [metadata or {}] * num_paths
    if len(metadata) != num_paths:
        raise ConfigurationError(
            "'metadata' should have the same length as the number of file paths"
        )
    return metadata
