"""Publish a data set as one whole: plan, takedowns, every check, and only then `dataset.json`.

::

    newest complete generation ─► plan (found or made) ─► checks ─► takedown log ─► dataset.json
                                                            │ one fails
                                                            └► nothing changes for anybody

What `dataset.json` names lies in the root before it is replaced, and it is replaced only if it is
still the one that was read; otherwise another run published meanwhile, and everything is looked at
again. With an equal snapshot and equal `ordering` the current plan stays.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assets.errors import IntegrityError, RootError, StageError
from assets.ordering.accounting import SourceAccount, check_accounts, count_accounts
from assets.ordering.checks import Check, require_all, run_checks
from assets.ordering.extend import settings_digest
from assets.ordering.held_out import check_held_out
from assets.ordering.ledger_checks import check_ledgers
from assets.ordering.order_checks import check_order
from assets.ordering.plan_checks import check_mixed_order, check_plan_provenance
from assets.ordering.plan_files import BuiltPlan, build_plan, is_plain
from assets.ordering.published import (
    Published,
    dataset_dir,
    in_dataset,
    open_plan,
    read_published,
)
from assets.ordering.shard_checks import check_shards
from assets.ordering.shares import SourceWeights
from assets.ordering.snapshot import PublishableGeneration, find_publishable
from assets.ordering.withdrawals import (
    TakedownPlan,
    append_takedowns,
    check_takedowns,
    plan_takedowns,
    read_withdrawn,
)
from assets.pins import check_pins, pins_to_publish
from assets.root import Root
from assets.settings.schema import Settings
from assets.sources.landing_log import LandingLog
from assets.storage.interface import digest
from assets.tokenizing.train import TokenizerPin, read_pin
from olmo_loader.dataset_file import DATASET_FILE, DatasetFile
from olmo_loader.plan import Plan
from olmo_loader.shard_index import IndexSnapshot

ATTEMPTS = 20
"""How often another run may publish first before this one gives up."""
CODE_VERSION = 3
"""Raised by hand when the same shards would make another plan or another dataset.json."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetReport:
    """What is published after a run, how it was proved, and what the run changed."""

    plan_id: str
    generation: int
    snapshot: IndexSnapshot
    sequence_length: int
    num_instances: int
    accounts: Mapping[str, SourceAccount]
    """By source: where all its tokens and documents are."""
    checks: tuple[Check, ...]
    takedown: IndexSnapshot | None
    digest: str
    """SHA-256 of dataset.json: the data version."""
    is_changed: bool
    """dataset.json was replaced."""
    is_new_plan: bool
    """The plan was made by this run."""
    tails: Mapping[str, Mapping[str, int]]
    """By group: what the plan did with the tails of shards; empty where it leaves them out."""
    waiting: tuple[str, ...]
    """Why a later generation is not published yet, one sentence each."""

    @property
    def tokens(self) -> dict[str, int]:
        """Tokens in training instances by source."""
        return {
            source: account.in_instances.tokens for source, account in sorted(self.accounts.items())
        }


def publish_dataset(root: Root, settings: Settings, log: LandingLog) -> DatasetReport:
    """Publish the newest generation that is complete down to its shards.

    Raises:
        PinnedRootError: the settings would change what is published.
        StageError: there is nothing to publish yet.
        ChecksFailedError: a check failed; nothing that was published has changed.
        RootError: other runs published first, again and again.
    """
    check_pins(root, settings)
    for _ in range(ATTEMPTS):
        report = _Publication(root, settings, log).publish()
        if report is not None:
            return report
        logger.info("another run published first; looking again")
    raise RootError(f"{root.url}: other runs published first {ATTEMPTS} times; run again")


class _Publication:
    """One attempt: everything is read at its start, nothing is visible before its end."""

    def __init__(self, root: Root, settings: Settings, log: LandingLog) -> None:
        self._root, self._settings, self._log = root, settings, log
        self._published: Published | None = read_published(root)
        self._found: PublishableGeneration = find_publishable(root, settings.sharding, log)
        self._tokenizer = _require_tokenizer(root)
        self._accounts: dict[str, SourceAccount] = {}
        held = None if self._published is None else self._published.file.generation
        if held is not None and self._found.number < held:
            raise IntegrityError(
                f"{root.url}: generation {held} is published, but only {self._found.number} is "
                f"complete: {'; '.join(self._found.waiting)}"
            )

    def publish(self) -> DatasetReport | None:
        """Publish; None if another run did so first."""
        found = self._found
        withdrawn = read_withdrawn(self._root, found.number)
        takedowns = plan_takedowns(self._root, withdrawn, found.records)
        built = self._build_plan(takedowns)
        checks = self._check(built, takedowns)
        if not append_takedowns(self._root, takedowns):
            return None
        data = self._dataset_file(built.plan.plan_id, takedowns.last).to_bytes()
        version = None if self._published is None else self._published.version
        is_changed = digest(data) != version
        if is_changed and not self._root.storage.replace(
            in_dataset(DATASET_FILE), data, expected=version
        ):
            return None
        return DatasetReport(
            plan_id=built.plan.plan_id,
            generation=found.number,
            snapshot=found.snapshot,
            sequence_length=built.plan.sequence_length,
            num_instances=built.plan.num_instances,
            accounts=self._accounts,
            checks=checks,
            takedown=takedowns.last,
            digest=digest(data),
            is_changed=is_changed,
            is_new_plan=built.is_new,
            tails=built.plan.record.get("tails_report", {}),
            waiting=found.waiting,
        )

    def _build_plan(self, takedowns: TakedownPlan) -> BuiltPlan:
        if not self._found.records:
            raise StageError(
                f"{self._root.url}: generation {self._found.number} kept no document at all; see "
                "what was lost where in the stage table"
            )
        current = self._current_extension()
        if current is not None:
            return BuiltPlan(plan=current, is_new=False)
        return build_plan(
            self._root,
            self._found.records,
            self._found.snapshot,
            self._settings.ordering,
            {source.name: source.licence for source in self._settings.sources},
            weights=SourceWeights.of(self._settings.sources),
            takedown=takedowns.last,
            takedowns=takedowns.records,
        )

    def _current_extension(self) -> Plan | None:
        """Return the current plan if it is an extension that still fits snapshot and settings.

        A fresh plan of equal shards and settings is the one its parent descends from, so it would
        take a run back to where it began.
        """
        if self._published is None or self._published.file.snapshot != self._found.snapshot:
            return None
        plan = open_plan(self._root, self._published.file.plan)
        is_current = plan.record.get("settings") == settings_digest(self._settings)
        return plan if plan.record["parent"] is not None and is_current else None

    def _check(self, built: BuiltPlan, takedowns: TakedownPlan) -> tuple[Check, ...]:
        root, found, plan = self._root, self._found, built.plan
        folder = dataset_dir(root)
        published_seq = 0 if self._published is None else self._published.file.snapshot.seq
        checks = run_checks(
            {
                "ledgers": lambda: check_ledgers(root, self._log, found.number),
                "accounting": lambda: self._account(built, takedowns),
                "shards": lambda: check_shards(
                    folder,
                    found.records,
                    read_after=published_seq,
                    processes=self._settings.engine.processes,
                ),
                "order": lambda: (check_order if is_plain(plan.record) else check_mixed_order)(
                    plan
                ),
                "provenance": lambda: check_plan_provenance(plan),
                "held_out": lambda: check_held_out(
                    folder, plan, found.records, read_after=published_seq
                ),
                "takedowns": lambda: check_takedowns(root, takedowns, found.index),
            }
        )
        require_all(checks, root.url)
        return checks

    def _account(self, built: BuiltPlan, takedowns: TakedownPlan) -> dict[str, Any]:
        plan = built.plan
        self._accounts = count_accounts(
            dataset_dir(self._root),
            token_parts=self._found.token_parts,
            records=self._found.records,
            sequence_length=plan.sequence_length,
            pending=self._found.pending,
            takedowns=takedowns.records,
            plan=None if is_plain(plan.record) else plan,
        )
        num_instances = plan.num_instances if is_plain(plan.record) else None
        check_accounts(self._accounts, num_instances, plan.sequence_length)
        return {source: account.as_dict() for source, account in sorted(self._accounts.items())}

    def _dataset_file(self, plan_id: str, takedown: IndexSnapshot | None) -> DatasetFile:
        held = None if self._published is None else self._published.file
        plans = () if held is None else held.plans
        landed = {
            version.source
            for generation in self._log.generations[: self._found.number]
            for version in generation.versions
        }
        return DatasetFile(
            generation=self._found.number,
            snapshot=self._found.snapshot,
            plan=plan_id,
            plans=plans if plan_id in plans else (*plans, plan_id),
            takedown=takedown,
            tokenizer=self._tokenizer.dataset_entry(),
            pins=pins_to_publish(
                self._settings,
                landed_sources=landed,
                tokenizer_sha256=self._tokenizer.sha256,
                published={} if held is None else held.pins,
            ),
        )


def _require_tokenizer(root: Root) -> TokenizerPin:
    pin = read_pin(root)
    if pin is None:
        raise StageError(f"{root.url} has no tokenizer yet; materialize the asset `tokenizer`")
    return pin
