"""Files of which more is lost than a row: which they are, and those that take a whole one's place.

A cut or emptied file that landed under the path of an older version would have its documents
withdrawn for good, though nobody took them back. That is an accident until somebody says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow.compute as pc
from typing_extensions import override

from assets.errors import LossLimitError
from assets.manifest import PartEntry
from assets.root import Root
from assets.sources.landing_log import LandingLog

FILE_RULES = (
    "bad_parquet",
    "bad_schema",
    "bad_warc",
    "changed_since_landing",
    "corrupt_stream",
    "decompression_bomb",
    "format_not_in_this_version",
    "missing_file",
    "too_many_records",
    "truncated",
    "unreadable_file",
)
"""Rules of the documents stage under which one ledger row may stand for many lost records."""
EMPTIED_RULES = ("empty_file", "bad_csv", "not_text")
"""Rules under which a whole file may be lost: where no place in the file is told, it is."""
MOST_NAMED = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class DamagedFile:
    """A row of the ledger that stands for a file or for all behind a place in it."""

    source: str
    landed_path: str
    rule: str
    position: int | None
    """Where it stands, in the unit of the format; None if the whole file is meant."""
    reason: str

    @override
    def __str__(self) -> str:
        """Return what is said about it, on one line."""
        return f"{self.source}: {self.landed_path!r}: {self.rule}: {self.reason}"


def count_damaged(entry: PartEntry) -> int:
    """Return how many rows of a part's ledger have one of `FILE_RULES`."""
    return sum(entry.statistics["quarantined"].get(rule, 0) for rule in FILE_RULES)


def read_damaged(
    root: Root, entry: PartEntry, rules: tuple[str, ...] = FILE_RULES, *, most: int | None = None
) -> Iterator[DamagedFile]:
    """Yield the rows of a part's ledger under some rules, of each rule at most `most`, in order."""
    ledger = root.read_table(entry.objects["ledger"], columns=["source", "rule", "detail"])
    for rule in rules:
        rows = ledger.filter(pc.equal(ledger["rule"], rule)).slice(0, most)
        for row in rows.to_pylist():
            told = json.loads(row["detail"])
            yield DamagedFile(
                source=row["source"],
                landed_path=told["landed_path"],
                rule=rule,
                position=told.get("position"),
                reason=told["reason"],
            )


def check_replaced(
    root: Root, log: LandingLog, entries: Iterable[PartEntry], sources: tuple[str, ...]
) -> None:
    """Check that no damaged file has taken the place of an earlier version.

    Only the versions that are landed now count: a file that was restored has landed again.

    Raises:
        LossLimitError: names the files, and what to do.
    """
    replacing = {
        (version.source, version.generation, version.path)
        for version in log.landed.values()
        if version.replaces is not None and version.source in sources
    }
    found = []
    for entry in entries:
        here = {
            (entry.source, entry.generation, span.landed_path) for span in entry.files
        } & replacing
        counts = entry.statistics["quarantined"] | entry.statistics["dropped"]
        rules = tuple(rule for rule in FILE_RULES + EMPTIED_RULES if counts.get(rule))
        if not (here and rules):
            continue
        for file in read_damaged(root, entry, rules):
            is_whole = file.rule in FILE_RULES or file.position is None
            if is_whole and (entry.source, entry.generation, file.landed_path) in here:
                found.append(str(file))
    if found:
        more = f"\n... and {len(found) - MOST_NAMED:,d} more" if len(found) > MOST_NAMED else ""
        raise LossLimitError(
            "files are damaged that take the place of earlier versions, whose documents would be "
            "withdrawn:\n" + "\n".join(found[:MOST_NAMED]) + more + "\nrestore them and run again; "
            "if they are meant so, set limits.damaged_replacements to accept"
        )
