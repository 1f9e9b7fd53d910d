"""Which group - stratum and split - each kept document of a source belongs to.

The stratum is what the source's `strata` says of the document's clean columns. The split is
`validation` for the held-out share: documents are held out by a hash of their cleaned text and a
seed, so that equal texts are always on the same side, whatever landed when, and else `train`.

::

    models/groups/<source>.json    what decides the groups of a source, for good

Like the tokenizer it is frozen when it is first used: every shard of the source depends on it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.canonical import canonical_json
from assets.dedup.unique import read_unique
from assets.document import CLEAN
from assets.errors import ConfigurationError, IntegrityError, PinnedRootError
from assets.expression import Evaluator, library_versions, parse_expression
from assets.root import Root
from assets.settings.schema import Settings
from assets.settings.sources import SourceSettings
from assets.tokenizing.kept_parts import KeptTask
from assets.tokenizing.token_parts import fixed_binary_rows
from olmo_loader.shard_index import TRAIN_SPLIT

HELD_OUT_SPLIT = "validation"
NO_STRATUM = "none"
"""Stratum of a document for which the expression is null."""
STRATUM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
MAX_STRATA = 256
"""Strata of one part; each of them becomes shards of its own."""
Hashes = np.ndarray[Any, np.dtype[np.uint64]]
NOTHING = -1
"""A bound that holds nothing out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupRules:
    """What decides the groups of a source, as frozen."""

    strata: str | None
    fraction: float
    documents: int | None
    seed: int
    bound: int
    """A document is held out if its hash (`holdout_hashes`) is at most this."""
    generation: int | None
    """The only generation that is held out from; None: all."""

    def of_generation(self, generation: int) -> Grouping:
        """Return what decides the groups of one generation's documents."""
        is_meant = self.generation in (None, generation)
        return Grouping(
            strata=self.strata, seed=self.seed, bound=self.bound if is_meant else NOTHING
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Grouping:
    """What decides the groups of the documents of one part."""

    strata: str | None
    seed: int
    bound: int

    def inputs(self) -> dict[str, Any]:
        """Return what decides the result, for fingerprints."""
        versions = library_versions() if self.strata is not None else {}
        return {**dataclasses.asdict(self), **versions}


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of some documents."""

    strata: pa.Array
    """string (documents,); all null where the source has no strata."""
    splits: pa.Array
    """string (documents,)."""

    def take(self, start: int, rows: np.ndarray[Any, Any]) -> Groups:
        """Return the groups of the documents `start + rows`."""
        wanted = pa.array(start + rows)
        return Groups(self.strata.take(wanted), self.splits.take(wanted))


class GroupFinder:
    """Finds the groups of the documents of one part."""

    def __init__(self, grouping: Grouping, source: str) -> None:
        self._grouping, self._source = grouping, source
        self._where = f"sources[{source}].strata"
        self._seen: set[str | None] = set()
        self._evaluator: Evaluator | None = None
        self.columns: tuple[str, ...] = ("text_hash",)
        """Columns of `clean/` that `find` needs."""
        if grouping.strata is not None:
            expression = parse_expression(grouping.strata, CLEAN.names, self._where)
            self._evaluator = Evaluator(expression)
            self.columns = ("text_hash", *expression.columns)

    def find(self, batch: pa.RecordBatch) -> Groups:
        """Return the groups of the rows of a batch, whose texts are kept.

        Raises:
            ConfigurationError: a stratum that cannot be a name, or too many of them.
        """
        hashes = fixed_binary_rows(batch.column("text_hash"))
        is_held_out = _held_out(hashes, self._grouping.seed, self._grouping.bound)
        splits = pc.if_else(pa.array(is_held_out), HELD_OUT_SPLIT, TRAIN_SPLIT)
        if self._evaluator is None:
            return Groups(pa.nulls(batch.num_rows, pa.string()), splits)
        strata = self._evaluator.evaluate(batch, self._where).fill_null(NO_STRATUM)
        self._check(pc.unique(strata).to_pylist())
        return Groups(strata, splits)

    def _check(self, names: Sequence[str]) -> None:
        for name in names:
            if STRATUM.fullmatch(name) is None:
                raise ConfigurationError(
                    f"{self._where}: {self._grouping.strata!r} gives {name!r}, which cannot be the "
                    f"name of a stratum ({STRATUM.pattern}); map it to one with CASE or "
                    "regexp_replace"
                )
        self._seen.update(names)
        if len(self._seen) > MAX_STRATA:
            raise ConfigurationError(
                f"{self._where}: {self._grouping.strata!r} gives more than {MAX_STRATA} strata in "
                "one part, and each becomes shards of its own; make fewer of them with CASE"
            )


def holdout_hashes(text_hashes: np.ndarray[Any, Any], seed: int) -> Hashes:
    """Return uint64 (documents,): evenly spread, a function of text hash and seed alone.

    Args:
        text_hashes: uint8 (documents, 32).
        seed: another one holds other documents out.
    """
    first = np.ascontiguousarray(text_hashes[:, :8]).view("<u8")[:, 0].astype(np.uint64)
    return _mix(first ^ _mix(np.array([seed], np.int64).view(np.uint64)))


def _mix(values: Hashes) -> Hashes:
    """Return the finalizer of splitmix64 of each value; arithmetic is modulo 2**64."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _held_out(text_hashes: np.ndarray[Any, Any], seed: int, bound: int) -> np.ndarray[Any, Any]:
    if bound < 0:
        return np.zeros(len(text_hashes), bool)
    return holdout_hashes(text_hashes, seed) <= np.uint64(bound)


def group_rules(root: Root, settings: Settings, kept: Iterable[KeptTask]) -> dict[str, GroupRules]:
    """Return the frozen rules of every source that has groups, freezing those that are new.

    Args:
        root: the root.
        settings: of its configuration; a source that left it keeps its rules.
        kept: tasks of the complete generations.

    Raises:
        PinnedRootError: a source is configured to have other groups than its frozen ones.
        ConfigurationError: as many documents are to be held out as there are.
        IntegrityError: a record is damaged.
    """
    tasks = list(kept)
    configured = {source.name: source for source in settings.sources}
    found: dict[str, GroupRules] = {}
    for name in sorted({task.source for task in tasks}):
        frozen, source = _read(root, name), configured.get(name)
        if frozen is not None:
            if source is not None:
                _check_same(root, source, frozen)
            found[name] = frozen
        elif source is not None and has_groups(source):
            made = _make(root, source, [task for task in tasks if task.source == name])
            if made is not None:
                found[name] = _freeze(root, name, made)
    return found


def check_groups(root: Root, settings: Settings, kept: Iterable[KeptTask]) -> None:
    """Check that the rules of every source that has groups are frozen as they were made.

    Args:
        root: the root.
        settings: of its configuration.
        kept: tasks of the complete generations.

    Raises:
        IntegrityError: a record is missing or damaged.
        PinnedRootError: a source is configured to have other groups than its frozen ones.
    """
    tasks = list(kept)
    for source in filter(has_groups, settings.sources):
        frozen = _read(root, source.name)
        if frozen is not None:
            _check_same(root, source, frozen)
        own = [task for task in tasks if task.source == source.name]
        made = _make(root, source, own) if own else None
        if made is not None and frozen != made:
            found = "missing" if frozen is None else f"damaged: {frozen}"
            raise IntegrityError(
                f"{_record_name(source.name)}: {found}; what the root holds gives {made}"
            )


def has_groups(source: SourceSettings) -> bool:
    """Tell whether a source is divided into strata, or has documents held out."""
    return source.strata is not None or source.held_out is not None


def train_only(groups: Groups, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that training may see."""
    return rows.filter(pc.equal(groups.splits, TRAIN_SPLIT))


def _record_name(source: str) -> str:
    return f"models/groups/{source}.json"


def _read(root: Root, source: str) -> GroupRules | None:
    try:
        data = root.storage.read(_record_name(source))
    except FileNotFoundError:
        return None
    try:
        return GroupRules(**json.loads(data))
    except (ValueError, TypeError) as error:
        raise IntegrityError(f"{root.url}: {_record_name(source)} is damaged: {error}") from error


def _freeze(root: Root, source: str, rules: GroupRules) -> GroupRules:
    if root.storage.create(_record_name(source), canonical_json(dataclasses.asdict(rules))):
        return rules
    held = _read(root, source)
    assert held is not None, "a record that could not be created exists"
    return held


def _check_same(root: Root, source: SourceSettings, frozen: GroupRules) -> None:
    wanted = _asked(source)
    held = {name: getattr(frozen, name) for name in wanted}
    if held != wanted:
        different = ", ".join(
            f"{name} {wanted[name]!r} (held: {held[name]!r})"
            for name in wanted
            if wanted[name] != held[name]
        )
        raise PinnedRootError(
            f"{root.url}: the groups of {source.name} are frozen, and the configuration says "
            f"{different}; set strata and holdout back, or start another root with --root"
        )


def _asked(source: SourceSettings) -> dict[str, Any]:
    holdout = source.held_out
    return {
        "strata": source.strata,
        "fraction": 0.0 if holdout is None else holdout.fraction,
        "documents": None if holdout is None else holdout.documents,
        "seed": 0 if holdout is None else holdout.seed,
    }


def _make(root: Root, source: SourceSettings, tasks: Sequence[KeptTask]) -> GroupRules | None:
    """Return a source's rules; None if a number of documents is asked for and none are kept yet."""
    asked = _asked(source)
    if asked["documents"] is None:
        bound = int(asked["fraction"] * 2**64) - 1
        return GroupRules(**asked, bound=bound, generation=None)
    for number in sorted({task.generation for task in tasks}):
        first = [task for task in tasks if task.generation == number]
        hashes = _kept_hashes(root, first, asked["seed"])
        if len(hashes):
            bound = _bound_of(hashes, asked["documents"], source.name, number)
            return GroupRules(**asked, bound=bound, generation=number)
    return None


def _kept_hashes(root: Root, tasks: Iterable[KeptTask], seed: int) -> np.ndarray[Any, Any]:
    found = [np.zeros(0, np.uint64)]
    for part in (part for task in tasks for part in task.parts):
        found += [
            holdout_hashes(fixed_binary_rows(batch.column(0)), seed)
            for batch in read_unique(root, part.clean, part.unique, ["text_hash"])
        ]
    return np.concatenate(found)


def _bound_of(hashes: np.ndarray[Any, Any], documents: int, source: str, generation: int) -> int:
    if documents >= len(hashes):
        raise ConfigurationError(
            f"sources[{source}].holdout.documents: {documents:,d} are to be held out, but "
            f"generation {generation}, the first with documents of it, kept {len(hashes):,d}; "
            "nothing would be left to train on. Set it lower, or land more first"
        )
    return int(np.partition(hashes, documents - 1)[documents - 1])
