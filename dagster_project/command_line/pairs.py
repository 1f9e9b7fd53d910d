"""`olmo-data pairs DOC_ID`: a document's cluster of duplicates, and where its texts differ."""

from __future__ import annotations

import argparse

from assets.catalog.explain import parse_doc_id
from assets.data_platform import open_platform
from assets.dedup.pairs import Cluster, ClusterFinder, Member, text_difference
from dagster_project.command_line.terminal import escape, say

MAX_DIFFERENCE_LINES = 200


def execute(arguments: argparse.Namespace) -> int:
    """Print the kept document, those dropped in its favour, and the differences of one pair."""
    doc_id = parse_doc_id(arguments.doc_id)
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    finder = ClusterFinder(platform.root)
    cluster = finder.find(doc_id, limit=arguments.limit)
    if cluster.external is not None:
        say(f"Dropped for an external document: {escape(cluster.external, one_line=True)}")
    elif cluster.kept is None:
        say("The survivor is in no part of this root.")
    else:
        say(_line(cluster.kept))
    for member in cluster.dropped:
        say(_line(member))
    if cluster.num_dropped > len(cluster.dropped):
        say(f"... and {cluster.num_dropped - len(cluster.dropped):,d} more (--limit)")
    if not cluster.num_dropped:
        say("No document was dropped in its favour.")
    _say_difference(finder, cluster, doc_id)
    return 0


def _line(member: Member) -> str:
    similarity = "" if member.similarity is None else f"{member.similarity:.4f}"
    what = member.rule or member.decision
    where = f"{member.source}, generation {member.generation}, row {member.row:,d}"
    return f"{member.doc_id.hex()}  {similarity:>6}  {what:16}  {escape(where, one_line=True)}"


def _say_difference(finder: ClusterFinder, cluster: Cluster, doc_id: bytes) -> None:
    """Print where the document asked for, or else the first dropped one, differs from the kept."""
    asked = [member for member in cluster.dropped if member.doc_id == doc_id]
    other = next(iter(asked or cluster.dropped), None)
    if cluster.kept is None or other is None:
        return
    say(f"\n- {cluster.kept.doc_id.hex()} (kept)\n+ {other.doc_id.hex()} ({other.rule})")
    lines = text_difference(finder.text(cluster.kept), finder.text(other))
    for line in lines[:MAX_DIFFERENCE_LINES]:
        say(escape(line, one_line=True))
    if len(lines) > MAX_DIFFERENCE_LINES:
        say(f"... {len(lines) - MAX_DIFFERENCE_LINES:,d} more lines")
