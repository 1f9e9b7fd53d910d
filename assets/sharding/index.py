"""The shard index of a root: read it whole, append to it so that no document is ever added twice.

A record is created exclusively under the next number. Whoever loses that race reads what the
winner wrote: if it is the very shard that was to be added, the work is done; if it belongs to
another group, the next number is tried; anything else in the same group means that two runs cut
differently, and is refused.
"""

from __future__ import annotations

from typing import Any

from assets.errors import PinnedRootError
from assets.root import Root
from assets.sharding.groups import Group
from olmo_loader.records import sha256_hex
from olmo_loader.shard_index import (
    FIRST_SEQ,
    IndexSnapshot,
    add_record,
    check_chain,
    group_of,
    index_name,
    parse_index_record,
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
        self.records: list[dict[str, Any]] = []
        self.snapshot: IndexSnapshot | None = None
        self._by_group: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        self._check()

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
        """
        while True:
            mine = self.of_group(group.key)
            if (mine[-1]["to"] if mine else 0) != span[0]:
                self._require_same(mine, header, shard, span)
                return False
            seq = len(self._raw) + FIRST_SEQ
            previous = self._raw[-1][1] if self._raw else None
            data = add_record(header, seq=seq, shard=shard, span=span, previous=previous)
            name = f"{DATASET}{index_name(seq)}"
            if self._root.storage.create(name, data):
                self._raw.append((name, data))
                self._take_up(parse_index_record(data, name))
                self.snapshot = IndexSnapshot(seq, sha256_hex(data))
                return True
            self._read_on()

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
        records, self.snapshot = check_chain(self._raw)
        self.records, self._by_group = [], {}
        for record in records:
            self._take_up(record)

    def _take_up(self, record: dict[str, Any]) -> None:
        self.records.append(record)
        self._by_group.setdefault(group_of(record), []).append(record)
