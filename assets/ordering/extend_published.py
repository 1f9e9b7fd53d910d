"""Extend a plan of a published data set, check the result, and make it the current plan."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from assets.errors import ConfigurationError, IntegrityError, RootError
from assets.ordering.extend import Extension, extend_plan, settings_digest
from assets.ordering.plan_checks import check_mixed_order, check_plan_provenance
from assets.ordering.plan_files import BuiltPlan
from assets.ordering.plan_prefix import prefix_order
from assets.ordering.published import (
    Published,
    in_dataset,
    open_plan,
    read_published,
    read_shard_index,
    read_takedown_log,
)
from assets.ordering.published_shards import check_shards_of
from assets.ordering.shares import SourceWeights
from assets.pins import check_pins
from assets.root import Root
from assets.settings.ordering import MixtureSettings
from assets.settings.schema import Settings
from olmo_loader.dataset_file import DATASET_FILE
from olmo_loader.plan import Plan
from olmo_loader.plan_identity import MIXTURE

CHUNK = 1 << 22


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtendReport:
    """An extension and what it goes on from."""

    parent: Plan
    plan: Plan
    is_new: bool
    """It was made by this call."""


def extend_published(
    root: Root,
    settings: Settings,
    *,
    consumed: int,
    mixture: MixtureSettings | None = None,
    sequence_length: int | None = None,
    plan: str | None = None,
) -> ExtendReport:
    """Extend a plan to the published snapshot and make the extension current.

    Args:
        root: the data set's root.
        settings: weights and repetition caps of its sources; the mixture, if none is given.
        consumed: positions that the run has read, over all epochs.
        mixture: from there on; None: the configured one if `ordering.order` is mixture, else a
            shuffled parent goes on shuffled.
        sequence_length: from there on; None: as before.
        plan: the plan to extend; None: the current one.

    Raises:
        ConfigurationError: nothing is published, there is no such plan, or see `extend_plan`.
        PinnedRootError: the settings would change what is published.
        IntegrityError: the extension is not what it should be, or a shard of the snapshot is not
            whole; nothing has changed then.
        RootError: another run published meanwhile.
    """
    check_pins(root, settings)
    published = read_published(root)
    if published is None:
        raise ConfigurationError(f"{root.url}: no data set has been published yet")
    parent = open_plan(root, _wanted(root, published, plan))
    built = _build(root, settings, published, parent, consumed, mixture, sequence_length)
    _check(parent, built.plan, consumed)
    check_shards_of(root, built.plan, published)
    file = published.file
    plan_id = built.plan.plan_id
    plans = file.plans if plan_id in file.plans else (*file.plans, plan_id)
    data = dataclasses.replace(file, plan=plan_id, plans=plans).to_bytes()
    if not root.storage.replace(in_dataset(DATASET_FILE), data, expected=published.version):
        raise RootError(
            f"{root.url}: another run published meanwhile; the extension {plan_id} is made, run "
            "the command again to make it current"
        )
    return ExtendReport(parent=parent, plan=built.plan, is_new=built.is_new)


def _wanted(root: Root, published: Published, plan: str | None) -> str:
    wanted = published.file.plan if plan is None else plan
    if wanted not in published.file.plans:
        known = ", ".join(published.file.plans)
        raise ConfigurationError(f"{root.url} has no plan {wanted!r}; it has {known}")
    return wanted


def _build(
    root: Root,
    settings: Settings,
    published: Published,
    parent: Plan,
    consumed: int,
    mixture: MixtureSettings | None,
    sequence_length: int | None,
) -> BuiltPlan:
    if mixture is None and (
        settings.ordering.order == "mixture" or parent.record["order"] == MIXTURE
    ):
        mixture = settings.ordering.mixture or MixtureSettings()
    takedown = published.file.takedown
    log = read_takedown_log(root).records if takedown is not None else ()
    snapshot = published.file.snapshot
    index = read_shard_index(root).log
    assert index is not None, "read with its log"
    # Weights that hold in the snapshot: later records belong to the next publication.
    records = index.shards(snapshot.seq)
    return extend_plan(
        root,
        parent,
        records,
        snapshot,
        Extension(
            consumed=consumed,
            mixture=mixture,
            sequence_length=sequence_length,
            weights=SourceWeights.of(settings.sources),
            takedown=takedown,
            takedowns=[item for item in log if takedown and item["seq"] <= takedown.seq],
            settings_digest=settings_digest(settings),
        ),
        {source.name: source.licence for source in settings.sources},
    )


def _check(parent: Plan, plan: Plan, consumed: int) -> None:
    """Prove the extension before anybody sees it: its prefix, its order, its provenance."""
    order = plan.open_order()
    for start in range(0, consumed, CHUNK):
        end = min(start + CHUNK, consumed)
        if not np.array_equal(order[start:end], prefix_order(parent, start, end)):
            raise IntegrityError(
                f"{plan.folder}: positions {start:,d} to {end:,d} are not those of plan "
                f"{parent.plan_id}"
            )
    check_mixed_order(plan)
    check_plan_provenance(plan)
