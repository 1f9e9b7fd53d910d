"""`build_train_dataloader` and `build_eval_dataloader`: from a data set to one rank's batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from olmo_loader import distributed
from olmo_loader.arguments import (
    check_flags,
    check_folder,
    check_global_batch,
    check_kind,
    check_paths,
    check_ranks,
    check_state,
    check_whole,
    check_wholes,
)
from olmo_loader.batch_ahead import Ahead
from olmo_loader.data_place import ReadingOptions
from olmo_loader.errors import ConfigurationError, UnknownPlanError
from olmo_loader.eval_loader import EvalLoader
from olmo_loader.instance_filter import InstanceFilterConfig
from olmo_loader.locations import is_remote
from olmo_loader.order_file import guard_work_dir
from olmo_loader.reading_ahead import LOCAL_TIMEOUT_S, AheadLimits
from olmo_loader.run_folder import DEFAULT_RUN
from olmo_loader.run_records import Records
from olmo_loader.train_loader import Shape, TrainLoader
from olmo_loader.training_data import (
    DatasetOrPaths,
    TrainingData,
    open_evaluation,
    open_files,
    open_labelled,
    open_plan,
)

DEFAULT_THREADS = 2
DEFAULT_PREFETCH = 4


def build_train_dataloader(
    dataset_or_paths: DatasetOrPaths,
    *,
    global_batch_size: int,
    plan: str | None = None,
    sequence_length: int | None = None,
    dtype: Any = None,
    seed: int | None = None,
    shuffle: bool | None = None,
    epoch: int = 0,
    world_size: int | None = None,
    rank: int | None = None,
    drop_last: bool = False,
    balance_attention: bool = False,
    doc_boundaries: str | None = None,
    generate_doc_lengths: bool = False,
    generate_attention_mask: bool = False,
    include_instance_metadata: bool = False,
    eos_token_id: int | None = None,
    pad_token_id: int | None = None,
    label_mask_paths: Sequence[str | Path] | None = None,
    instance_filter_config: InstanceFilterConfig | None = None,
    num_threads: int = DEFAULT_THREADS,
    num_workers: int | str = 0,
    prefetch_batches: int = DEFAULT_PREFETCH,
    prefetch_bytes: int = AheadLimits.max_bytes,
    timeout_s: float | None = None,
    reading: ReadingOptions | None = None,
    work_dir: str | Path | None = None,
    save_overwrite: bool | None = None,
    run: str = DEFAULT_RUN,
    save_state_every: int | None = None,
    keep_states: int = 3,
    audit: bool = True,
    state: Mapping[str, Any] | None = None,
) -> TrainLoader:
    """Return the loader of one rank.

    Args:
        dataset_or_paths: folder of a published data set (``ROOT/dataset``), or plain token files: a
            list of paths, or lists of paths per label.
        global_batch_size: instances per step over all ranks; a multiple of ``world_size``.
        plan: id of a plan; None means the current one, or the one that ``state`` names. With a
            state, a plan that continues the state's is entered at the same position.
        sequence_length: tokens per instance; needed for plain files, a plan fixes it.
        dtype: of plain files, uint16 by default; a plan fixes it.
        seed: of the order, 0 by default; a plan fixes it.
        shuffle: of plain files; a plan fixes it.
        epoch: where to start without a state.
        world_size: number of ranks, by default torch.distributed's, or torchrun's environment.
        rank: this one's number, likewise.
        drop_last: leave out the last batch of an epoch when it is not full.
        balance_attention: of a packed plan: ranks share each batch so that attention masked by
            document costs each about as much. Which instances are in a step stays as it is.
        doc_boundaries: ``stored`` (default of a published data set) or ``eos`` (of plain files).
        generate_doc_lengths: batches get ``doc_lens`` and ``max_doc_lens``.
        generate_attention_mask: batches get ``attention_mask``.
        include_instance_metadata: batches get ``metadata``.
        eos_token_id: of plain files; a plan fixes it.
        pad_token_id: likewise.
        label_mask_paths: of plain files, one byte per token.
        instance_filter_config: batches get ``instance_mask``.
        num_threads: threads that read ahead; 0 reads when a batch is asked for.
        num_workers: processes that read instead of threads; ``auto`` takes some where a filter is
            computed live. Spawned: guard the main module with ``if __name__ == "__main__"``.
        prefetch_batches: batches ready or in work ahead of the trainer.
        prefetch_bytes: most bytes in them; one batch is always read.
        timeout_s: how long one batch may take before its thread or process counts as hung. None:
            30 s of local files, 5 minutes of remote ones, whose reads are tried again for longer.
        reading: when checksums are checked, files kept open, retries and caches of remote reads.
        work_dir: a folder on the host for what a run leaves: later epochs' orders, built once and
            mapped by all processes, states, the audit log. None keeps orders in memory.
        save_overwrite: False refuses a ``work_dir`` that is there already, as OLMo does (rank 0,
            without a state); nothing needs that here, so None is the default and never refuses.
        run: name of the run in ``work_dir``.
        save_state_every: write the state to ``work_dir/states/<run>`` every so many batches.
        keep_states: how many of them stay.
        audit: with a ``work_dir``, log which instances were read; see `olmo_loader.audit_log`.
        state: what ``batch.state`` or ``state_dict()`` was; see `TrainLoader.load_state_dict`.

    Raises:
        ConfigurationError: arguments that contradict each other or the plan, no data set, no data.
        BatchShapeError: ``global_batch_size`` does not divide by ``world_size``.
        IntegrityError: the data set is damaged.
        StateError: ``state`` belongs to other data.
    """
    if not isinstance(dataset_or_paths, str | Path):
        check_paths(dataset_or_paths)
    check_wholes(0, epoch=epoch, num_threads=num_threads)
    if sequence_length is not None:
        check_whole("sequence_length", sequence_length, 1)
    if seed is not None:
        check_whole("seed", seed, 0)
    _check_options(reading, instance_filter_config)
    check_state(state)
    check_folder("work_dir", work_dir)
    check_flags(
        shuffle=True if shuffle is None else shuffle,
        drop_last=drop_last,
        balance_attention=balance_attention,
        generate_doc_lengths=generate_doc_lengths,
        generate_attention_mask=generate_attention_mask,
        include_instance_metadata=include_instance_metadata,
        audit=audit,
    )
    shape = _shape(global_batch_size, world_size, rank)
    shape = replace(shape, drop_last=drop_last, balance_attention=balance_attention)
    if work_dir is not None and state is None and save_overwrite is not None:
        guard_work_dir(work_dir, rank=shape.rank, save_overwrite=save_overwrite)
    details: dict[str, Any] = {
        "doc_boundaries": doc_boundaries,
        "fixed": {
            "sequence_length": sequence_length,
            "dtype": dtype,
            "seed": seed,
            "shuffle": shuffle,
            "eos_token_id": eos_token_id,
            "pad_token_id": pad_token_id,
            "label_mask_paths": label_mask_paths,
        },
        "options": {
            "generate_doc_lengths": generate_doc_lengths,
            "generate_attention_mask": generate_attention_mask,
            "include_instance_metadata": include_instance_metadata,
            "instance_filter_config": instance_filter_config,
            "reading": reading,
        },
    }
    make = partial(
        TrainLoader,
        partial(_open, dataset_or_paths, details),
        shape,
        epoch=epoch,
        ahead=Ahead(
            num_threads=num_threads,
            num_workers=num_workers,
            limits=AheadLimits(
                batches=prefetch_batches,
                max_bytes=prefetch_bytes,
                timeout_s=_patience_s(dataset_or_paths) if timeout_s is None else timeout_s,
            ),
        ),
        records=Records(
            work_dir=None if work_dir is None else Path(work_dir),
            run=run,
            save_state_every=save_state_every,
            keep_states=keep_states,
            audit=audit,
        ),
    )
    if state is None:
        return make(plan=plan)
    loader = _opened_for(make, plan, state)
    loader.load_state_dict(state)
    return loader


def _patience_s(dataset_or_paths: DatasetOrPaths) -> float:
    """Return how long a batch may take: seconds where files are local."""
    if isinstance(dataset_or_paths, str | Path):
        remote = is_remote(dataset_or_paths)
    else:  # all of one kind, as opening them checks
        lists = dataset_or_paths.values() if isinstance(dataset_or_paths, Mapping) else None
        files = dataset_or_paths if lists is None else next(iter(lists), ())
        remote = any(is_remote(path) for path in list(files)[:1])
    return AheadLimits.timeout_s if remote else LOCAL_TIMEOUT_S


def _opened_for(
    make: Callable[..., TrainLoader], plan: str | None, state: Mapping[str, Any]
) -> TrainLoader:
    """Return the loader of the plan that was asked for, or else of the one that ``state`` names."""
    if plan is not None:
        return make(plan=plan)
    try:
        return make(plan=state.get("plan"))
    except UnknownPlanError:  # loading the state will say how the current plan's files differ
        return make(plan=None)


def _shape(global_batch_size: int, world_size: int | None, rank: int | None) -> Shape:
    world, number = _ranks(world_size, rank)
    check_global_batch(global_batch_size, world)
    return Shape(
        global_batch_size=global_batch_size, world_size=world, rank=number, drop_last=False
    )


def _ranks(world_size: int | None, rank: int | None) -> tuple[int, int]:
    """Return number of ranks and this one's, asking torch and the environment for what is None."""
    world = distributed.world_size() if world_size is None else world_size
    number = distributed.global_rank() if rank is None else rank
    check_ranks(world, number)
    return world, number


def _check_options(
    reading: ReadingOptions | None, instance_filter_config: InstanceFilterConfig | None
) -> None:
    check_kind("reading", reading, ReadingOptions, "an olmo_loader.data_place.ReadingOptions")
    hint = "an olmo_loader.InstanceFilterConfig"
    check_kind("instance_filter_config", instance_filter_config, InstanceFilterConfig, hint)


def _open(
    dataset_or_paths: DatasetOrPaths, details: Mapping[str, Any], plan: str | None
) -> TrainingData:
    if isinstance(dataset_or_paths, str | Path):
        return open_plan(dataset_or_paths, plan, **details)
    if plan is not None:
        raise ConfigurationError("plain files have no plan: give the folder of a data set")
    return open_files(dataset_or_paths, **details)


def build_eval_dataloader(
    dataset_or_paths: DatasetOrPaths,
    *,
    batch_size: int,
    split: str | None = None,
    plan: str | None = None,
    sequence_length: int | None = None,
    dtype: Any = None,
    shuffle: bool = True,
    seed: int = 0,
    drop_last: bool = False,
    world_size: int | None = None,
    rank: int | None = None,
    doc_boundaries: str | None = None,
    generate_doc_lengths: bool = False,
    generate_attention_mask: bool = False,
    eos_token_id: int | None = None,
    pad_token_id: int | None = None,
    label_mask_paths: Sequence[str | Path] | None = None,
    instance_filter_config: InstanceFilterConfig | None = None,
    num_threads: int = DEFAULT_THREADS,
    prefetch_batches: int = DEFAULT_PREFETCH,
    timeout_s: float | None = None,
    reading: ReadingOptions | None = None,
) -> EvalLoader:
    """Return one rank's loader for evaluation, in the order of OLMo's (``DistributedSampler``).

    Batches have ``metadata``: ``{"path", "label"}`` of the shard, the label being the source, for a
    published data set; for plain files ``{"path"}`` of a list, ``{"label"}`` of a mapping. Group
    the loss by it: ``examples/train_tiny.py`` does.

    Args:
        dataset_or_paths: folder of a published data set, of which the held-out shards are read and
            never a training shard, or plain files as in `build_train_dataloader`.
        batch_size: instances per batch of this rank.
        split: name of a held-out split; None reads all of them.
        plan: whose snapshot of the index counts; None means the current plan.
        sequence_length: tokens per instance; None means the plan's.
        dtype: of plain files, uint16 by default.
        shuffle: False keeps the order of the files.
        seed: of the permutation, which is torch's and not that of training.
        drop_last: cut to a multiple of the ranks; ``batch_size`` is then at most what a rank has.
        world_size: number of ranks, by default torch.distributed's, or torchrun's environment.
        rank: this one's number, likewise.
        doc_boundaries: see `build_train_dataloader`; so are the remaining ones.
        generate_doc_lengths: batches get ``doc_lens`` and ``max_doc_lens``.
        generate_attention_mask: batches get ``attention_mask``.
        eos_token_id: of plain files.
        pad_token_id: of plain files.
        label_mask_paths: of plain files.
        instance_filter_config: batches get ``instance_mask``.
        num_threads: threads that read ahead.
        prefetch_batches: batches ready or in work ahead.
        timeout_s: see `build_train_dataloader`.
        reading: see `build_train_dataloader`.

    Raises:
        ConfigurationError: no held-out split, no instance, arguments that contradict each other.
        IntegrityError: the data set is damaged.
    """
    check_wholes(0, num_threads=num_threads, seed=seed)
    check_flags(
        shuffle=shuffle,
        drop_last=drop_last,
        generate_doc_lengths=generate_doc_lengths,
        generate_attention_mask=generate_attention_mask,
    )
    check_wholes(1, batch_size=batch_size, prefetch_batches=prefetch_batches)
    if sequence_length is not None:
        check_whole("sequence_length", sequence_length, 1)
    _check_options(reading, instance_filter_config)
    world_size, rank = _ranks(world_size, rank)
    options: dict[str, Any] = {
        "generate_doc_lengths": generate_doc_lengths,
        "generate_attention_mask": generate_attention_mask,
        "include_instance_metadata": True,
        "instance_filter_config": instance_filter_config,
        "reading": reading,
    }
    fixed = {
        "sequence_length": sequence_length,
        "dtype": dtype,
        "eos_token_id": eos_token_id,
        "pad_token_id": pad_token_id,
        "label_mask_paths": label_mask_paths,
    }
    if isinstance(dataset_or_paths, str | Path):
        dataset = open_evaluation(
            dataset_or_paths,
            plan,
            split,
            doc_boundaries=doc_boundaries,
            fixed=fixed,
            options=options,
        )
    elif plan is not None or split is not None:
        raise ConfigurationError("plain files have no plan and no split: give a data set's folder")
    else:
        check_paths(dataset_or_paths)
        dataset, _ = open_labelled(
            dataset_or_paths, doc_boundaries=doc_boundaries, fixed=fixed, options=options
        )
    return EvalLoader(
        dataset,
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        drop_last=drop_last,
        world_size=world_size,
        rank=rank,
        num_threads=num_threads,
        limits=AheadLimits(
            batches=prefetch_batches,
            timeout_s=_patience_s(dataset_or_paths) if timeout_s is None else timeout_s,
        ),
    )
