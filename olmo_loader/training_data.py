"""What a training loader reads: a published plan, or plain files in OLMo's way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.file_list import brief_files, brief_shards
from olmo_loader.global_indices import ORDER_FILE, PERMUTATION, Order, build_order, order_dtype
from olmo_loader.held_out import open_held_out
from olmo_loader.lineage import shared_prefix
from olmo_loader.memmap_dataset import MemMapDataset
from olmo_loader.order_file import shared_order
from olmo_loader.overriding import override
from olmo_loader.packing import TableReader
from olmo_loader.plan import Plan
from olmo_loader.published import open_published
from olmo_loader.shard_columns import ShardColumns
from olmo_loader.state import sequence_length_hint

DatasetOrPaths = str | Path | Sequence[str | Path] | Mapping[str, Sequence[str | Path]]


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """A data set, its order, and which source each file belongs to."""

    dataset: MemMapDataset
    fingerprint: str
    plan: Plan | None
    takedown: int
    seed: int
    shuffle: bool
    sources: tuple[str, ...]
    source_of_file: NDArray[np.int64]

    @property
    def num_positions(self) -> int:
        """Positions of the order of an epoch, before padding to ranks."""
        return len(self.dataset) if self.plan is None else self.plan.num_positions

    @property
    def is_one_pass(self) -> bool:
        """True when there is one epoch only."""
        return self.plan is not None and self.plan.is_one_pass

    def order(self, epoch: int, work_dir: Path | None = None) -> Order:
        """Return the unpadded order of an epoch.

        Args:
            epoch: from 0; a plan's epoch 0 is mapped from the plan.
            work_dir: where other orders are written once and mapped by all processes of a host;
                None builds them in memory.
        """
        if self.plan is not None and (epoch == 0 or self.plan.is_one_pass):
            return self.plan.build_order(epoch)
        if work_dir is None:
            return self._build_order(epoch)
        facts = {
            "count": self.num_positions,
            "dtype": order_dtype(self.num_positions).name,
            "dataset": {"fingerprint": self.fingerprint, "num_instances": len(self.dataset)},
            "seed": self.seed,
            "epoch": epoch,
            "shuffle": self.shuffle,
            "algorithm": PERMUTATION,
        }
        return shared_order(work_dir, facts, partial(self._build_order, epoch))

    def _build_order(self, epoch: int) -> Order:
        return build_order(len(self.dataset), self.seed, epoch, shuffle=self.shuffle)

    def list_files(self) -> list[list[Any]]:
        """Return name, tokens and (of a plan) sha256 of each file, for messages about changes."""
        if self.plan is not None:
            shards = self.plan.columns
            hashes = [name.decode() for name in shards.sha256.tolist()]
            triples = zip(self.file_names, shards.n_tokens.tolist(), hashes, strict=True)
            return [list(triple) for triple in triples]
        counts = self.dataset.reader.files.num_tokens.tolist()
        return [list(pair) for pair in zip(self.file_names, counts, strict=True)]

    @cached_property
    def brief(self) -> Any:
        """The files as a state carries them, see `olmo_loader.file_list`."""
        if self.plan is not None:
            shards = self.plan.columns
            return brief_shards(shards.shard, shards.n_tokens, shards.sha256)
        return brief_files(self.file_names, self.dataset.reader.files.num_tokens)

    @property
    def file_names(self) -> list[str]:
        """Names of the plan's shards, or of plain files without their folders."""
        if self.plan is not None:
            return [name.decode() for name in self.plan.columns.shard.tolist()]
        return [Path(path).name for path in self.dataset.paths]

    def prefix_shared_with(self, ancestor: str | None) -> int | None:
        """Return how many first positions this plan shares with an ancestor, None if it is none."""
        if self.plan is None or ancestor is None:
            return None
        return shared_prefix(self.plan.folder.parents[1], self.plan.plan_id, ancestor)

    @property
    def length_changes(self) -> tuple[int, ...]:
        """Positions at which another sequence length begins: no batch goes across them."""
        return () if self.plan is None else self.plan.length_changes

    def count_tokens(
        self, index: NDArray[np.int64], batch_of: NDArray[np.int64], num_batches: int
    ) -> NDArray[np.int64]:
        """Return tokens by batch and source, without padding: int64 ``(batches, sources)``.

        Args:
            index: instances of all the batches.
            batch_of: number of each one's batch, from 0.
            num_batches: of them.

        Raises:
            IntegrityError: the order names an instance that there is not.
        """
        reader, count = self.dataset.reader, len(self.sources)
        if len(index) and index.max() >= len(reader):
            where = ORDER_FILE if self.plan is None else self.plan.folder / ORDER_FILE
            raise IntegrityError(
                f"{where}, or the order of a later epoch in work_dir, names instance {index.max()} "
                f"of {len(reader)}: it is damaged, python -m olmo_loader verify says which"
            )
        first, groups = batch_of * count, num_batches * count
        if isinstance(reader, TableReader):
            found = reader.tokens_by(self.source_of_file, index, groups, first)
        else:
            files = reader.first_instances.searchsorted(index, side="right") - 1
            found = np.bincount(self.source_of_file[files] + first, minlength=groups)
            found *= self.dataset.chunk_size
        return found.reshape(num_batches, count)


class ShardMetadata(Sequence[Mapping[str, Any]]):
    """Path and label (the source) of each shard, made when an item is asked for."""

    def __init__(self, shards: ShardColumns) -> None:
        self._shards = shards

    @override
    def __len__(self) -> int:
        return len(self._shards)

    @overload
    def __getitem__(self, number: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, number: slice) -> ShardMetadata: ...
    @override
    def __getitem__(self, number: int | slice) -> Mapping[str, Any] | ShardMetadata:
        if isinstance(number, slice):
            return ShardMetadata(self._shards.take(np.arange(len(self))[number]))
        shards = self._shards
        return {"path": shards.shard[number].decode(), "label": shards.source[number].decode()}


def open_plan(
    folder: str | Path,
    plan_id: str | None,
    *,
    doc_boundaries: str | None,
    fixed: Mapping[str, Any],
    options: Mapping[str, Any],
) -> TrainingData:
    """Open a plan of a published data set.

    Args:
        folder: ``ROOT/dataset``.
        plan_id: None opens the current plan.
        doc_boundaries: None means ``stored``.
        fixed: arguments that the plan decides; given ones must agree with it.
        options: passed on to `MemMapDataset`.

    Raises:
        ConfigurationError: an argument in ``fixed`` contradicts the plan.
    """
    published = open_published(folder, plan_id, options.get("reading"))
    plan = published.plan
    decided = {
        "sequence_length": plan.sequence_length,
        "dtype": plan.dtype,
        "seed": plan.seed,
        "shuffle": True,
        "eos_token_id": published.file.tokenizer["eos_token_id"],
        "pad_token_id": published.file.tokenizer["pad_token_id"],
        "label_mask_paths": None,
    }
    _check_fixed(folder, plan, decided, fixed)
    dataset = MemMapDataset(
        *published.paths,
        chunk_size=plan.sequence_length,
        memmap_dtype=plan.dtype,
        metadata=ShardMetadata(plan.columns.take(plan.file_shards)),
        eos_token_id=decided["eos_token_id"],
        pad_token_id=decided["pad_token_id"],
        doc_boundaries=doc_boundaries or "stored",
        reader=published.reader,
        **options,
    )
    return TrainingData(
        dataset=dataset,
        fingerprint=plan.fingerprint,
        plan=plan,
        takedown=published.takedown,
        seed=plan.seed,
        shuffle=True,
        sources=published.sources,
        source_of_file=published.source_of_file,
    )


def _check_fixed(
    folder: str | Path, plan: Plan, decided: Mapping[str, Any], fixed: Mapping[str, Any]
) -> None:
    for name, value in fixed.items():
        if value is not None and value != decided[name]:
            hint = ""
            if name == "sequence_length":
                root = str(folder).rstrip("/").rpartition("/")[0] or "."
                hint = f"; {sequence_length_hint(value, root)}"
            raise ConfigurationError(
                f"plan {plan.plan_id} fixes {name}: it is {decided[name]}, not {value}{hint}"
            )


def open_evaluation(
    folder: str | Path,
    plan_id: str | None,
    split: str | None,
    *,
    doc_boundaries: str | None,
    fixed: Mapping[str, Any],
    options: Mapping[str, Any],
) -> MemMapDataset:
    """Open the held-out shards of a published data set; see `olmo_loader.held_out`.

    Raises:
        ConfigurationError: ``fixed`` names more than a sequence length: the shards say the rest.
    """
    given = [name for name in fixed if name != "sequence_length" and fixed[name] is not None]
    if given:
        raise ConfigurationError(f"the data set says {', '.join(given)}: leave it out")
    held = open_held_out(
        folder,
        plan_id,
        split=split,
        sequence_length=fixed["sequence_length"],
        reading=options.get("reading"),
    )
    return MemMapDataset(
        *held.reader.files.paths,
        chunk_size=held.reader.files.sequence_length,
        memmap_dtype=held.reader.files.dtype,
        metadata=ShardMetadata(held.shards),
        eos_token_id=held.file.tokenizer["eos_token_id"],
        pad_token_id=held.file.tokenizer["pad_token_id"],
        doc_boundaries=doc_boundaries or "stored",
        reader=held.reader,
        **options,
    )


def open_files(
    paths: Sequence[str | Path] | Mapping[str, Sequence[str | Path]],
    *,
    doc_boundaries: str | None,
    fixed: Mapping[str, Any],
    options: Mapping[str, Any],
) -> TrainingData:
    """Open plain files: a list, or lists per label, which are read in sorted order of labels.

    Args:
        paths: metadata are ``{"path": ...}`` for a list, ``{"label": ...}`` for a mapping.
        doc_boundaries: None means ``eos``.
        fixed: see `open_plan`; here they decide, ``sequence_length`` must be given.
        options: passed on to `MemMapDataset`.
    """
    dataset, labels = open_labelled(
        paths, doc_boundaries=doc_boundaries, fixed=fixed, options=options
    )
    sources = tuple(sorted(set(labels)))
    return TrainingData(
        dataset=dataset,
        fingerprint=dataset.fingerprint,
        plan=None,
        takedown=0,
        seed=fixed["seed"] or 0,
        shuffle=fixed["shuffle"] is not False,
        sources=sources,
        source_of_file=np.array([sources.index(label) for label in labels], np.int64),
    )


def open_labelled(
    paths: Sequence[str | Path] | Mapping[str, Sequence[str | Path]],
    *,
    doc_boundaries: str | None,
    fixed: Mapping[str, Any],
    options: Mapping[str, Any],
) -> tuple[MemMapDataset, list[str]]:
    """Open plain files; return them as a data set, and each file's label ("" in a list)."""
    if fixed["sequence_length"] is None:
        raise ConfigurationError("plain files need sequence_length: nothing in them says it")
    if isinstance(paths, Mapping):
        pairs = [(label, path) for label in sorted(paths) for path in paths[label]]
        metadata = [{"label": label} for label, _ in pairs]
        labels = [label for label, _ in pairs]
    else:
        pairs = [("", path) for path in paths]
        metadata = [{"path": str(path)} for _, path in pairs]
        labels = [""] * len(pairs)
    dataset = MemMapDataset(
        *(path for _, path in pairs),
        chunk_size=fixed["sequence_length"],
        memmap_dtype=np.uint16 if fixed["dtype"] is None else fixed["dtype"],
        metadata=metadata,
        eos_token_id=fixed["eos_token_id"],
        pad_token_id=fixed["pad_token_id"],
        label_mask_paths=fixed["label_mask_paths"],
        doc_boundaries=doc_boundaries or "eos",
        **options,
    )
    return dataset, labels
