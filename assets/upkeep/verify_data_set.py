"""Verify what is published: shards, the documents in them, plans, provenance, takedowns, accounts.

The bytes of the data set are checked by `olmo_loader.verify`, which a training environment can run
alone. Here is added what needs the root: index records that are not published yet, the documents of
shards against the token parts, provenance, withdrawals, and the accounting line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from assets.errors import IntegrityError
from assets.manifest import Manifest
from assets.ordering.accounting import check_accounts, count_accounts
from assets.ordering.held_out import check_held_out
from assets.ordering.ledger_checks import check_ledgers
from assets.ordering.order_checks import check_order
from assets.ordering.plan_checks import check_mixed_order, check_plan_provenance
from assets.ordering.plan_files import is_plain
from assets.ordering.published import (
    Published,
    dataset_dir,
    in_dataset,
    open_plan,
    read_published,
    read_shard_index,
    read_takedown_log,
)
from assets.ordering.shard_checks import check_document_ends, check_shard_sizes
from assets.ordering.snapshot import find_publishable
from assets.ordering.withdrawals import check_takedowns, plan_takedowns, read_withdrawn
from assets.root import Root
from assets.settings.tokens import ShardingSettings
from assets.sharding.groups import Group, build_groups
from assets.sources.landing_log import LandingLog
from assets.upkeep.finding import Finding, as_finding
from assets.upkeep.verify_parts import Progress
from olmo_loader.dataset_file import DATASET_FILE
from olmo_loader.plan import PLAN_FOLDER
from olmo_loader.shard_files import open_docs
from olmo_loader.shard_index import group_of
from olmo_loader.verify import verify_dataset
from olmo_loader.verify_shard import verify_shard


def verify_published(
    root: Root, log: LandingLog | None, *, full: bool, progress: Progress
) -> Iterator[Finding]:
    """Verify the data set of a root; `log` is None if the landing log is damaged."""
    findings: list[Finding] = []
    published: Published | None = None
    with as_finding("data set", DATASET_FILE, findings):
        published = read_published(root)
    index: Sequence[dict[str, Any]] = ()
    with as_finding("data set", "index", findings):
        index = read_shard_index(root).records
    yield from findings
    if published is not None and full:
        for fault in verify_dataset(dataset_dir(root), progress):
            yield _from_sentence(root, fault)
    if published is not None or not findings:
        yield from _find_stray_plans(root, published)
    yield from _verify_shards(root, index, published, full=full, progress=progress)
    if published is not None:
        yield from _verify_plans(root, published, full=full)
        yield from _verify_takedowns(root, published, index)
        if log is not None:
            findings = []
            with as_finding("ledgers", f"generation {published.file.generation}", findings):
                check_ledgers(root, log, published.file.generation)
            yield from findings


def verify_accounts(root: Root, settings: ShardingSettings, log: LandingLog) -> Iterator[Finding]:
    """Verify that shards hold the documents of the token parts in order, and the accounting line.

    Args:
        root: the root.
        settings: of the root, which decide the order of documents and what stays pending.
        log: the landing log.
    """
    findings: list[Finding] = []
    with as_finding("shards", "documents", findings):
        index = read_shard_index(root).records
        entries = Manifest.load(root, "tokens").entries()
        last = max((record["generation"] for record in index), default=0)
        for group in build_groups(entries, settings, last_generation=last):
            records = [record for record in index if group_of(record) == group.key]
            findings += _verify_group(root, group, records)
    with as_finding("data set", "accounting", findings):
        published = read_published(root)
        if published is not None:
            _check_accounts(root, settings, log, published)
    yield from findings


def _check_accounts(
    root: Root, settings: ShardingSettings, log: LandingLog, published: Published
) -> None:
    found = find_publishable(root, settings, log)
    if found.number < published.file.generation:
        raise IntegrityError(
            f"generation {published.file.generation} is published, {found.number} is complete: "
            f"{'; '.join(found.waiting)}"
        )
    if found.snapshot != published.file.snapshot:
        # A later generation is complete and not published yet: its accounts come with it.
        return
    plan = open_plan(root, published.file.plan)
    last = 0 if published.file.takedown is None else published.file.takedown.seq
    takedowns = [item for item in read_takedown_log(root).records if item["seq"] <= last]
    accounts = count_accounts(
        dataset_dir(root),
        token_parts=found.token_parts,
        records=found.records,
        sequence_length=plan.sequence_length,
        pending=found.pending,
        takedowns=takedowns,
        plan=None if is_plain(plan.record) else plan,
    )
    num_instances = plan.num_instances if is_plain(plan.record) else None
    check_accounts(accounts, num_instances, plan.sequence_length)


def _verify_group(root: Root, group: Group, records: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    """Compare the documents of a group's shards with the token parts: ids and lengths."""
    lengths = group.read_lengths(root, 0)
    for record in records:
        start, end = record["from"], record["to"]
        findings: list[Finding] = []
        with as_finding("shards", record["shard"], findings):
            docs = open_docs(dataset_dir(root) / record["shard"], record["n_docs"])
            expected = b"".join(group.doc_ids(root, start, end))
            if docs["doc_id"].tobytes() != expected:
                raise IntegrityError("its documents are not those of the token parts")
            sizes = np.diff(docs["start"].astype(np.int64), append=record["n_tokens"])
            if not np.array_equal(sizes, lengths[start:end]):
                raise IntegrityError("its documents are not as long as in the token parts")
        yield from findings


def _verify_shards(
    root: Root,
    index: Sequence[dict[str, Any]],
    published: Published | None,
    *,
    full: bool,
    progress: Progress,
) -> Iterator[Finding]:
    folder = dataset_dir(root)
    read = 0 if published is None else published.file.snapshot.seq
    for record in index:
        findings: list[Finding] = []
        with as_finding("shards", record["shard"], findings):
            if not full:
                check_shard_sizes(folder, record)
            elif record["seq"] > read:
                progress(f"shard {record['seq']}, not published yet: {record['shard']}")
                for fault in verify_shard(folder, record):
                    raise IntegrityError(fault)
            if full:
                check_document_ends(folder, record)
        yield from findings


def _find_stray_plans(root: Root, published: Published | None) -> Iterator[Finding]:
    """Name the plans that dataset.json does not name: nobody can open them."""
    prefix = in_dataset(f"{PLAN_FOLDER}/")
    found = {name.removeprefix(prefix).partition("/")[0] for name, _ in root.storage.list(prefix)}
    if published is None:
        if found:
            message = (
                f"missing, although there are plans ({', '.join(sorted(found))}): restore it from "
                "a copy of the data set, or have the next olmo-data run publish"
            )
            yield Finding(area="data set", name=DATASET_FILE, message=message)
        return
    for plan_id in sorted(found.difference(published.file.plans)):
        message = (
            f"no plan that {DATASET_FILE} names: left by a run that ended before it published, or "
            "given up; once it is a day old olmo-data gc --delete removes it"
        )
        yield Finding(area="data set", name=f"{PLAN_FOLDER}/{plan_id}", message=message)


def _verify_plans(root: Root, published: Published, *, full: bool) -> Iterator[Finding]:
    for plan_id in published.file.plans:
        findings: list[Finding] = []
        with as_finding("data set", f"plan {plan_id}", findings):
            plan = open_plan(root, plan_id)
            check_plan_provenance(plan)
            index = read_shard_index(root).records
            used = [item for item in index if item["seq"] <= plan.record["snapshot"]["seq"]]
            check_held_out(dataset_dir(root), plan, used)
            if not is_plain(plan.record):
                check_mixed_order(plan, rebuild=full)
            elif not full:
                check_order(plan)
        yield from findings


def _verify_takedowns(
    root: Root, published: Published, index: Sequence[dict[str, Any]]
) -> Iterator[Finding]:
    findings: list[Finding] = []
    with as_finding("takedowns", "takedowns", findings):
        withdrawn = read_withdrawn(root, published.file.generation)
        records = [item for item in index if item["seq"] <= published.file.snapshot.seq]
        plan = plan_takedowns(root, withdrawn, records)
        if plan.new:
            raise IntegrityError(
                f"{len(plan.new):,d} records are missing: withdrawn documents of the published "
                "shards are not in the log"
            )
        check_takedowns(root, plan, index)
    yield from findings


def _from_sentence(root: Root, fault: str) -> Finding:
    """Split `<file>: <what is wrong>`, the form of the loader's faults."""
    name, _, message = fault.removeprefix(f"{dataset_dir(root)}/").partition(": ")
    return Finding(area="data set", name=name, message=message or fault)
