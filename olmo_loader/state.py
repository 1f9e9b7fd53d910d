"""Where a training run is in its data: a few numbers that say everything, as JSON.

A state describes the last batch handed out, never what was read ahead. Position is (epoch,
instances) in one object, over all ranks, so it does not depend on ranks, threads or batch size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import StateError
from olmo_loader.file_list import check_brief

STATE_VERSION = 2
_LATER_FIELDS = frozenset({"balance_attention", "files"})
"""Not in states that the first release wrote; their defaults say so."""


_MOST_TOKENS = 1 << 63
"""They are counted in int64."""
_TYPES: dict[str, tuple[type, ...]] = {
    "fingerprint": (str,),
    "plan": (str, NoneType),
    "shuffle": (bool,),
    "global_batch_size": (int, NoneType),
    "world_size": (int, NoneType),
    "balance_attention": (bool,),
    "tokens_per_source": (dict,),
    "files": (list, dict, NoneType),
}
"""What a field of JSON is; a whole number where it is not named here."""
_AT_LEAST = {"epoch": 0, "global_batch_size": 1, "world_size": 1}


@dataclass(frozen=True, kw_only=True)
class LoaderState:
    """A position in the data, and the data it is a position in."""

    fingerprint: str
    """Of the plan, or of the list of files."""
    plan: str | None
    """Id of the plan, None for a list of files."""
    takedown: int
    """Number of the last takedown record that was applied; for information."""
    sequence_length: int
    seed: int
    shuffle: bool
    epoch: int
    instances: int
    """Positions of the order consumed in this epoch, by all ranks together."""
    total_size: int
    """Positions of an epoch, padded or trimmed to the ranks of the first start."""
    steps: int = 0
    """Batches handed out since the run's start; for information."""
    last_begin: int = 0
    """Where the last batch handed out begins; it ends at ``instances``."""
    global_batch_size: int | None = None
    """Of the run that made the state; for information."""
    world_size: int | None = None
    """Of the run that made the state; for information."""
    balance_attention: bool = False
    """Of the run that made the state: whether ranks share batches by attention cost."""
    num_files: int = 0
    """Shards or files, for messages."""
    num_instances: int = 0
    """Positions of an epoch before padding."""
    tokens_per_source: dict[str, int] = field(default_factory=dict)
    """Consumed since the run's start, by all ranks, padding repeats included."""
    files: Any = None
    """What `olmo_loader.file_list` makes of them, or a function that returns it; for messages."""
    version: int = STATE_VERSION

    def to_json(self) -> dict[str, Any]:
        """Return the state as a dict of JSON values, below 10 kB for some hundred sources."""
        files = self.files() if callable(self.files) else self.files
        return {**vars(self), "files": files, "tokens_per_source": dict(self.tokens_per_source)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LoaderState:
        """Read what `to_json` returned.

        Raises:
            StateError: a field is missing, unknown or no such value, or another version wrote it.
        """
        if value.get("version") != STATE_VERSION:
            raise StateError(
                f"a state of version {value.get('version')}, this reads {STATE_VERSION}"
            )
        known = {item.name for item in fields(cls)}
        differing = (value.keys() ^ known) - (_LATER_FIELDS - value.keys())
        if differing:
            raise StateError(f"not a loader state: {sorted(differing)} differ")
        for name, given in value.items():
            # A bool is an int to isinstance, and is no number.
            lowest = _AT_LEAST.get(name)
            if type(given) not in _TYPES.get(name, (int,)) or (
                lowest is not None and given is not None and given < lowest
            ):
                raise StateError(f"not a loader state: {name} is {given!r}")
        check_brief(value.get("files"))
        for source, tokens in value["tokens_per_source"].items():
            if type(tokens) is not int or not 0 <= tokens < _MOST_TOKENS:
                raise StateError(
                    f"not a loader state: tokens_per_source of {source!r} is {tokens!r}"
                )
        return cls(**value)

    def check_same_data(self, other: LoaderState, details: Sequence[str] = ()) -> None:
        """Raise StateError, saying what differs, unless ``other`` is a state of the same data.

        Args:
            other: the state of a run that would start now.
            details: what else is known about the difference, for instance file by file.
        """
        names = ("sequence_length", "plan", "seed", "shuffle", "fingerprint")
        different = [
            f"{name} was {getattr(self, name)}, is {getattr(other, name)}"
            for name in names
            if getattr(self, name) != getattr(other, name)
        ]
        if not different:
            return
        different += [
            f"{name} was {getattr(self, name)}, is {getattr(other, name)}"
            for name in ("num_files", "num_instances")
            if getattr(self, name) != getattr(other, name)
        ]
        hint = ""
        if self.sequence_length != other.sequence_length:
            read = self.epoch * self.num_instances + self.instances
            hint = "; files without a plan keep their length: begin another run for another one"
            if self.plan is not None:
                hint = f"; {sequence_length_hint(other.sequence_length, consumed=read)}"
        raise StateError(
            f"the state belongs to other data: {'; '.join([*different, *details])}{hint}"
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """A state that moves on batch by batch, and is spelt out only when somebody asks for it.

    Each batch keeps the one after it, so an instance never changes.
    """

    start: LoaderState
    """Where the run of batches began."""
    sources: tuple[str, ...]
    """Names of the sources that are counted."""
    counts: NDArray[np.int64]
    """Tokens by source since the run's start, int64 ``(sources,)``."""
    instances: int
    """As in `LoaderState`, and the next two."""
    last_begin: int
    steps: int

    @classmethod
    def of(cls, start: LoaderState, sources: tuple[str, ...] = ()) -> Progress:
        """Begin at a state."""
        counts = [start.tokens_per_source.get(name, 0) for name in sources]
        place = (start.instances, start.last_begin, start.steps)
        return cls(start, sources, np.array(counts, np.int64), *place)

    def after(self, end: int, counts: NDArray[np.int64]) -> Progress:
        """Return the progress after one more batch.

        Args:
            end: position of the order after it.
            counts: its tokens by source, int64 ``(sources,)``.
        """
        summed = self.counts + counts
        return Progress(self.start, self.sources, summed, end, self.instances, self.steps + 1)

    @property
    def state(self) -> LoaderState:
        """All of it."""
        counts = dict(zip(self.sources, self.counts.tolist(), strict=True))
        return replace(
            self.start,
            instances=self.instances,
            last_begin=self.last_begin,
            steps=self.steps,
            tokens_per_source=self.start.tokens_per_source | counts,
        )


def sequence_length_hint(wanted: int, root: str = "ROOT", consumed: int | None = None) -> str:
    """Return what to type for instances of another length from where a run is.

    Args:
        wanted: tokens per instance.
        root: of the data set.
        consumed: instances that the run has read, if that is known.
    """
    number = "N" if consumed is None else consumed
    explained = ", N: the instances that the run has read, 0 before it begins"
    return (
        "another sequence length is another plan, made by: "
        f"olmo-data plan extend {root} --consumed {number} --sequence-length {wanted}"
        f"{explained if consumed is None else ''}"
    )
