"""The shard index of a root: read it whole, append to it so that no document is ever added twice.

A record is created exclusively under the next number. Whoever loses that race reads what the
winner wrote: if it is the very shard that was to be added, the work is done; if it belongs to
another group, the next number is tried; anything else in the same group means that two runs cut
differently, and is refused.
"""

from __future__ import annotations

import difflib
from typing import Any

from assets.errors import ConfigurationError, PinnedRootError
from assets.root import Root
from assets.sharding.groups import Group
from olmo_loader.errors import LoaderError
from olmo_loader.records import sha256_hex
from olmo_loader.shard_index import (
    FIRST_SEQ,
    IndexLog,
    IndexSnapshot,
    add_record,
    check_same_kind,
    group_of,
    index_name,
    parse_index_record,
    read_log,
    weight_record,
)

DATASET = "dataset/"


class ShardIndex:
    """The records of a root's index, as far as they have been read."""

    def __init__(self, root: Root) -> None:
        """Read the index of `root`.

        Raises:
            olmo_loader.errors.IntegrityError: a record is missing, damaged or not chained.
        """
        self._root = root
        names = [name for name, _ in root.storage.list(f"{DATASET}index/")]
        self._raw = [(name, root.storage.read(name)) for name in names]
        self.log = IndexLog([], [])
        self.records: list[dict[str, Any]] = []
        """The shards with the weights that hold now, in order of number."""
        self._by_group: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        self._check()

    @property
    def snapshot(self) -> IndexSnapshot | None:
        """The index as it is now; None if it is empty."""
        return self.log.last

    def of_group(self, key: tuple[str, str, str]) -> list[dict[str, Any]]:
        """Return the records of a group (`Group.key`), in survivor order."""
        return self._by_group.get(key, [])

    def append(
        self, group: Group, header: dict[str, Any], shard: str, span: tuple[int, int]
    ) -> bool:
        """Add a shard; False if another run has added the same one.

        Args:
            group: the shard's group.
            header: what `ShardWriter.close` returned.
            shard: name relative to the data set.
            span: [from, to) in the group's order.

        Raises:
            PinnedRootError: the group's end is not `span[0]` and the shard is not in the index.
            olmo_loader.errors.IntegrityError: its ids are of another kind than those of the index.
        """
        check_same_kind(self.records, {**header, "shard": shard}, self._root.url)
        while True:
            mine = self.of_group(group.key)
            if (mine[-1]["to"] if mine else 0) != span[0]:
                self._require_same(mine, header, shard, span)
                return False
            previous = self._raw[-1][1] if self._raw else None
            data = add_record(header, seq=self._next_seq, shard=shard, span=span, previous=previous)
            if self._create(data):
                return True

    def set_weight(self, shard: str, weight: float, reason: str) -> bool:
        """Give a shard a weight, 0 to retire it; False if it has that weight already.

        Raises:
            ConfigurationError: the shard is not in the index, is retired, or the weight is no
                number from 0 on.
        """
        while True:
            held = {record["shard"]: record["weight"] for record in self.records}
            if shard not in held:
                close = difflib.get_close_matches(shard, held, n=1)
                hint = f"; the nearest is {close[0]}" if close else ""
                raise ConfigurationError(f"{self._root.url}: no shard {shard} in the index{hint}")
            if held[shard] == weight:
                return False
            if held[shard] == 0:
                raise ConfigurationError(f"{self._root.url}: {shard} is retired, for good")
            try:
                data = weight_record(
                    shard, weight, reason=reason, seq=self._next_seq, previous=self._raw[-1][1]
                )
            except LoaderError as error:
                raise ConfigurationError(str(error)) from error
            if self._create(data):
                return True

    @property
    def _next_seq(self) -> int:
        return len(self._raw) + FIRST_SEQ

    def _create(self, data: bytes) -> bool:
        """Append a record; False if another run took its number, whose records are then read."""
        name = f"{DATASET}{index_name(self._next_seq)}"
        is_mine = self._root.storage.create(name, data)
        if not is_mine:
            self._read_on()
            return False
        self._raw.append((name, data))
        record = parse_index_record(data, name)
        if record["op"] == "add":
            # Not the whole index again: adding a shard costs the same however many there are.
            self.log.records.append(record)
            self.log.hashes.append(sha256_hex(data))
            self._take_up(record)
        else:
            self._check()
        return True

    def _require_same(
        self,
        mine: list[dict[str, Any]],
        header: dict[str, Any],
        shard: str,
        span: tuple[int, int],
    ) -> None:
        wanted = (shard, *span, header["sha256"])
        for record in mine:
            if (record["shard"], record["from"], record["to"], record["sha256"]) == wanted:
                return
        last = mine[-1]["shard"] if mine else "no shard"
        raise PinnedRootError(
            f"{self._root.url}: {shard} with documents {span[0]:,d} to {span[1]:,d} does not "
            f"follow what the index holds of {header['source']}, which ends with {last}: another "
            "run cut the same documents under other settings. Run with the settings of the root"
        )

    def _read_on(self) -> None:
        """Read the records that others have appended."""
        while True:
            name = f"{DATASET}{index_name(len(self._raw) + FIRST_SEQ)}"
            try:
                self._raw.append((name, self._root.storage.read(name)))
            except FileNotFoundError:
                break
        self._check()

    def _check(self) -> None:
        self.log = read_log(self._raw)
        self.records, self._by_group = [], {}
        for record in self.log.shards():
            self._take_up(record)

    def _take_up(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        self._by_group.setdefault(group_of(record), []).append(record)
