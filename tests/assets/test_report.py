"""What a report looks like to people."""

import base64
import re
import xml.etree.ElementTree as ET
from typing import Any

from assets.manifest import PartEntry
from assets.report import Table, as_table, describe, histogram_markdown, rule_table
from assets.stage import StageReport


def entry(source: str, part: str, **statistics) -> PartEntry:
    counts = {"in": 0, "kept": 0, "modified": 0, "dropped": {}, "quarantined": {}}
    return PartEntry(
        stage="clean",
        source=source,
        generation=1,
        task=part,
        part=part,
        fingerprint="f",
        objects={},
        rows=0,
        files=(),
        statistics=counts | statistics,
    )


REPORT = StageReport(
    stage="clean",
    digest="d",
    entries=(
        entry("a", "1", **{"in": 4, "kept": 2, "dropped": {"short": 1, "rude": 1}}, documents=2),
        entry("a", "2", **{"in": 4, "kept": 2, "dropped": {"short": 2}}, documents=2),
        entry("b", "1", **{"in": 2, "kept": 1, "quarantined": {"bad": 1}}, documents=1),
    ),
    num_done=3,
    waiting=("generation 2 waits for c",),
)


def test_figures_are_sums_over_parts_and_of_one_source_if_asked():
    shown = describe(REPORT)
    assert (shown["documents"], shown["in"], shown["dropped"]) == (5, 10, 4)
    assert (shown["dropped_share"], shown["quarantined_share"]) == (0.4, 0.1)
    assert (shown["tasks_done"], shown["waiting"]) == (3, "generation 2 waits for c")
    alone: Any = describe(REPORT, source="a")
    assert (alone["in"], alone["dropped_share"]) == (8, 0.5)
    assert [row["source"] for row in alone["by_source"].rows] == ["a"]


def test_rules_are_listed_by_source_largest_first():
    rows = rule_table(REPORT.by_source()).rows
    found = [(row["source"], row["rule"], row["documents"]) for row in rows]
    assert found == [("a", "short", 3), ("a", "rude", 1), ("b", "bad", 1)]


def test_an_empty_report_shows_no_tables():
    shown = describe(StageReport(stage="clean", digest="d", entries=()))
    assert not any(isinstance(value, Table) for value in shown.values())


def test_nested_numbers_become_rows_by_path():
    facts = {"a": {"in": {"n": 1, "m": 0}, "out": {"n": 0}}, "b": {"in": {"n": 2}}}
    assert as_table(facts, first="what").rows == (
        {"what": "a in", "n": 1, "m": 0},
        {"what": "b in", "n": 2},
    )


def test_a_histogram_is_a_picture_with_a_bar_for_every_power_of_two_between():
    text = histogram_markdown({"4": 2, "32": 1}, unit="<bytes>")
    data = re.sub(r"!\[.*\]\(data:image/svg\+xml;base64,(.*)\)", r"\1", text)
    picture = ET.fromstring(base64.b64decode(data))
    bars = [item for item in picture if item.get("fill") == "#4f43dd"]
    assert [float(bar.attrib["height"]) for bar in bars] == [130.0, 0.0, 0.0, 65.0]
    labels = [item.text for item in picture if item.tag.endswith("text")]
    assert {"4", "8", "16", "32"} <= set(labels)
