"""Which files a state is a position in, small enough to travel with it, and how others differ.

Up to `LISTED_BYTES` of JSON the list itself: ``[name, tokens]`` per file, and 16 hex digits of its
sha256 per shard of a plan. Longer lists become hashes of up to `GROUPS` equal runs of files, so
that a difference is still placed to within a few files::

    {"count": 10000, "run": 128, "hashes": ["1f0c9a3e", ...]}
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import StateError
from olmo_loader.overriding import override
from olmo_loader.records import canonical_json

LISTED_BYTES = 4096
GROUPS = 128
SHOWN = 20
"""Differences that a message spells out."""
_HASH_DIGITS, _SHA_DIGITS = 8, 16
_SHORTEST_ENTRY_BYTES = 8

FileList = list[list[Any]]


class Brief:
    """A brief list of files that is made when somebody asks for it, and then travels as it is.

    Args:
        make: returns it, see `brief_shards`.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __call__(self) -> Any:
        """Return the list."""
        return self._make()

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self(),)


def _made(value: Any) -> Brief:
    """What a pickled `Brief` becomes elsewhere."""
    return Brief(partial(_same, value))


def _same(value: Any) -> Any:
    return value


def brief_shards(
    names: NDArray[np.bytes_], tokens: NDArray[np.int64], hashes: NDArray[np.bytes_]
) -> Any:
    """Return the shards of a plan as a state carries them.

    Args:
        names: of the shards, in plan order, bytes ``(shards,)``.
        tokens: int64 ``(shards,)``.
        hashes: sha256 of their ids as hex digits, bytes ``(shards,)``.
    """
    if len(names) * _SHORTEST_ENTRY_BYTES <= LISTED_BYTES:
        columns = (names.tolist(), tokens.tolist(), hashes.tolist())
        listed = [
            [name.decode(), count, digest.decode()[:_SHA_DIGITS]]
            for name, count, digest in zip(*columns, strict=True)
        ]
        if len(canonical_json(listed)) <= LISTED_BYTES:
            return listed
    return _runs(np.ascontiguousarray(hashes))


def brief_files(names: Sequence[str], tokens: NDArray[np.int64]) -> Any:
    """Return plain files as a state carries them; see `brief_shards`."""
    listed = [list(pair) for pair in zip(names, tokens.tolist(), strict=True)]
    if len(canonical_json(listed)) <= LISTED_BYTES:
        return listed
    lines = [hashlib.sha256(canonical_json(entry)).digest() for entry in listed]
    return _runs(np.array(lines, "V32"))


def _runs(rows: NDArray[Any]) -> dict[str, Any]:
    # A power of two, so that a list that grew a little is still cut in the same places.
    run = 1 << (-(-len(rows) // GROUPS) - 1).bit_length()
    hashes = [
        hashlib.sha256(rows[begin : begin + run].tobytes()).hexdigest()[:_HASH_DIGITS]
        for begin in range(0, len(rows), run)
    ]
    return {"count": len(rows), "run": run, "hashes": hashes}


def check_brief(brief: Any) -> None:
    """Look at what came back with a state.

    Raises:
        StateError: it is neither None nor such as `brief_shards` and `brief_files` return.
    """
    if isinstance(brief, list):
        sound = all(isinstance(entry, list) and entry for entry in brief)
    elif isinstance(brief, dict):
        numbers = [brief.get("count"), brief.get("run")]
        sound = all(type(number) is int and number > 0 for number in numbers)
        sound = sound and isinstance(brief.get("hashes"), list)
    else:
        sound = brief is None
    if not sound:
        raise StateError(f"not a loader state: files is {str(brief)[:200]}")


def explain_brief(old: Any, new: Any, names: Sequence[str]) -> list[str]:
    """Say how the files of a state differ from those that are there.

    Args:
        old: what `brief_shards` or `brief_files` returned when the state was made; None says
            nothing, as in states of earlier versions.
        new: the same of the files that are there.
        names: of these.
    """
    if isinstance(old, list) and isinstance(new, list):
        return explain_files(old, new)
    if isinstance(old, list):
        return [f"the state is of {len(old)} files, here are {len(names)}"]
    if not isinstance(old, dict):
        return []
    if not isinstance(new, dict):
        return [f"the state is of {old['count']} files, here are {len(names)}"]
    if old["count"] != new["count"]:
        return _first_difference(old, new, names)
    pairs = zip(old["hashes"], new["hashes"], strict=True)
    places = [number for number, (before, after) in enumerate(pairs) if before != after]
    return _cut([_run_of(number, new, names) for number in places], "runs of files")


def _first_difference(old: Any, new: Any, names: Sequence[str]) -> list[str]:
    said = [f"there were {old['count']} files, there are {new['count']}"]
    if old["run"] != new["run"]:
        return said
    pairs = zip(old["hashes"], new["hashes"], strict=False)
    first = next((at for at, (before, after) in enumerate(pairs) if before != after), None)
    if first is None:
        return [*said, f"the first {min(old['count'], new['count'])} are the same"]
    return [*said, f"from here on: {_run_of(first, new, names)}"]


def _run_of(number: int, brief: dict[str, Any], names: Sequence[str]) -> str:
    begin = number * brief["run"]
    last = min(begin + brief["run"], len(names)) - 1
    return f"one of files {begin}..{last} ({names[begin]} .. {names[last]}) differs"


def explain_files(old: Sequence[Any] | None, new: Sequence[Any] | None) -> list[str]:
    """Say which entries of two lists of files differ, at most `SHOWN` of them.

    Args:
        old: entries that begin with the file's name; None is empty.
        new: likewise.
    """
    old, new = old or [], new or []
    if len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        parts = [
            f"file {number} was {before}, is {after}"
            for number, (before, after) in pairs
            if before != after
        ]
        return _cut(parts, "files")
    before, after = (Counter(map(repr, entries)) for entries in (old, new))
    gone, added = before - after, after - before
    parts = [f"{entry} is gone" for entry in gone.elements()]
    parts += [f"{entry} is new" for entry in added.elements()]
    return _cut(parts, "files")


def _cut(parts: list[str], what: str) -> list[str]:
    if len(parts) > SHOWN:
        return [*parts[:SHOWN], f"and {len(parts) - SHOWN} more {what}"]
    return parts
