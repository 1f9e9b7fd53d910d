"""One document's cluster: who was dropped for whom, how similar they are, and where they differ.

A cluster is a kept document and all that were dropped in its favour. It is read from the ledgers:
one column of every part, then the rows that match. Texts shown are clean texts, personal data
already replaced; they are the only texts read here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.dedup.decide import EXTERNAL_EXACT, EXTERNAL_NEAR
from assets.dedup.decided import RULES
from assets.dedup.generation import STAGE
from assets.errors import ConfigurationError
from assets.manifest import Manifest, PartEntry
from assets.root import Root

_COLUMNS = ["doc_id", "row", "decision", "rule", "similarity", "survivor_id", "detail"]
_EXTERNAL = (RULES[EXTERNAL_EXACT], RULES[EXTERNAL_NEAR])
_CONTEXT_WORDS = 8
MAX_DIFF_WORDS = 20_000
"""Longer texts are compared in their first words only; a difference of all would take minutes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One document of a cluster."""

    doc_id: bytes
    source: str
    generation: int
    part: str
    row: int
    decision: str
    rule: str | None
    similarity: float | None
    """As it was decided; null for the kept one."""
    detail: str | None
    """JSON, as in the ledger."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A kept document and what was dropped in its favour, in the order of generations."""

    kept: Member | None
    """Null if the ledger names a survivor that is in no part, or none of this root."""
    dropped: tuple[Member, ...]
    num_dropped: int
    """All of them; `dropped` may be cut."""
    external: str | None = None
    """The external document that they were dropped for: its set and id, as JSON."""


class ClusterFinder:
    """Finds clusters in one root; manifests are read once."""

    def __init__(self, root: Root) -> None:
        self._root = root
        entries = Manifest.load(root, STAGE).entries()
        self._unique = [entry for entry in entries if entry.source]
        self._clean = {
            (entry.source, entry.part): entry for entry in Manifest.load(root, "clean").entries()
        }

    def find(self, doc_id: bytes, *, limit: int = 100) -> Cluster:
        """Return the cluster that a document belongs to, at most `limit` of its dropped members.

        Raises:
            ConfigurationError: the document did not reach `unique`.
        """
        member, survivor = self._member(doc_id)
        if member.rule in _EXTERNAL:
            members = [found for found, _ in self._rows_of_all("detail", member.detail)]
            return Cluster(
                kept=None,
                dropped=tuple(members[:limit]),
                num_dropped=len(members),
                external=member.detail,
            )
        kept_id = doc_id if survivor is None else survivor
        kept = member if survivor is None else self._kept(kept_id)
        dropped = list(self._dropped_for(kept_id))
        return Cluster(kept=kept, dropped=tuple(dropped[:limit]), num_dropped=len(dropped))

    def text(self, member: Member) -> str:
        """Return a member's clean text."""
        clean = self._clean[member.source, member.part]
        (row,) = self._root.read_rows(clean.objects["data"], [member.row], ["text"])
        return str(row["text"])

    def _kept(self, doc_id: bytes) -> Member | None:
        try:
            return self._member(doc_id)[0]
        except ConfigurationError:
            return None

    def _member(self, doc_id: bytes) -> tuple[Member, bytes | None]:
        for entry in self._unique:
            if doc_id[:8].hex() not in {span.file_id for span in entry.files}:
                continue
            for row in self._rows(entry, "doc_id", doc_id):
                return row
        raise ConfigurationError(
            f"{self._root.url}: {doc_id.hex()} did not reach `unique`; "
            f"`olmo-data explain {doc_id.hex()}` says what became of it"
        )

    def _dropped_for(self, doc_id: bytes) -> Iterator[Member]:
        for member, _ in self._rows_of_all("survivor_id", doc_id):
            yield member

    def _rows_of_all(
        self, column: str, value: bytes | str | None
    ) -> Iterator[tuple[Member, bytes | None]]:
        for entry in self._unique:
            yield from self._rows(entry, column, value)

    def _rows(
        self, entry: PartEntry, column: str, value: bytes | str | None
    ) -> Iterator[tuple[Member, bytes | None]]:
        found = self._root.read_table(entry.objects["ledger"], [column])[column]
        matches = pc.equal(found, pa.scalar(value, found.type))
        at = np.flatnonzero(np.asarray(pc.fill_null(matches, fill_value=False)))
        if not len(at):
            return
        for row in self._root.read_rows(entry.objects["ledger"], at.tolist(), _COLUMNS):
            yield (
                Member(
                    doc_id=row["doc_id"],
                    source=entry.source,
                    generation=entry.generation,
                    part=entry.part,
                    row=row["row"],
                    decision=row["decision"],
                    rule=row["rule"],
                    similarity=row["similarity"],
                    detail=row["detail"],
                ),
                row["survivor_id"],
            )


def text_difference(kept: str, dropped: str) -> list[str]:
    """Return the places where two texts differ, as lines of `-` kept and `+` dropped words.

    Words are separated by white space; equal runs are shortened to a few words around a difference.
    """
    left, right = kept.split()[:MAX_DIFF_WORDS], dropped.split()[:MAX_DIFF_WORDS]
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=True)
    lines = []
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal":
            lines.append("  " + _shortened(left[i:i_end]))
            continue
        lines += ["- " + " ".join(left[i:i_end])] if i < i_end else []
        lines += ["+ " + " ".join(right[j:j_end])] if j < j_end else []
    return lines


def _shortened(words: list[str]) -> str:
    if len(words) <= 2 * _CONTEXT_WORDS + 3:
        return " ".join(words)
    left_out = len(words) - 2 * _CONTEXT_WORDS
    head, tail = " ".join(words[:_CONTEXT_WORDS]), " ".join(words[-_CONTEXT_WORDS:])
    return f"{head} [... {left_out:,d} words ...] {tail}"
