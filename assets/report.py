"""What a stage's report looks like to people: plain figures, tables and Markdown, no Dagster.

The asset pages of the web UI and the command line's table show what is put together here.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from assets.stage import StageReport, add_statistics

LENGTHS = "lengths"
"""Name of the statistic {"n": documents whose length is in [n, 2n)}, n a power of two."""
HEADLINES = ("documents", "tokens", "dropped_share", "quarantined_share")
"""Figures that are shown before everything else."""
COLUMNS = (
    "in",
    "kept",
    "modified",
    "dropped",
    "dropped_share",
    "quarantined",
    "documents",
    "tokens",
)
"""Figures that come first in the table of sources."""
MAX_TABLE_ROWS = 500

Record = dict[str, str | int | float | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows to be shown as a table; every row has the same keys."""

    rows: tuple[Record, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Markdown:
    """Text to be shown as Markdown."""

    text: str


Shown = int | float | str | Table | Markdown


class Report(Protocol):
    """What the reports of all stages have in common."""

    @property
    def digest(self) -> str:
        """Of what the stage holds: its data version."""
        ...

    @property
    def num_done(self) -> int:
        """Tasks done by the run."""
        ...

    @property
    def num_skipped(self) -> int:
        """Tasks that were committed before."""
        ...

    @property
    def num_taken_up(self) -> int:
        """Tasks that an earlier run finished and this one committed."""
        ...

    @property
    def waiting(self) -> tuple[str, ...]:
        """Why the stage could not do more yet, one sentence each."""
        ...


def describe(report: StageReport, *, source: str | None = None) -> dict[str, Shown]:
    """Return what is shown of a report, by name; of one source of it if `source` is given."""
    by_source = report.by_source()
    if source is not None:
        by_source = {name: counts for name, counts in by_source.items() if name == source}
    total: dict[str, Any] = {}
    for counts in by_source.values():
        total = add_statistics(total, counts)
    figures = _figures(total)
    shown: dict[str, Shown] = {name: figures[name] for name in HEADLINES if name in figures}
    if by_source:
        shown["by_source"] = source_table(by_source)
        shown["by_rule"] = rule_table(by_source)
    if lengths := total.get(LENGTHS):
        unit = "tokens" if report.stage == "tokens" else "bytes"
        shown["lengths"] = Markdown(text=histogram_markdown(lengths, unit=unit))
    shown |= work_done(report)
    shown |= {name: value for name, value in figures.items() if name not in shown}
    return shown | {name: value for name, value in report.facts.items() if _is_plain(value)}


def as_table(facts: Mapping[str, Any], *, first: str) -> Table:
    """Return nested numbers as a table: a row for each innermost mapping that is not all zeros.

    Args:
        facts: mappings of mappings of ... of numbers.
        first: name of the column that holds the row's path.
    """
    return Table(rows=tuple({first: path, **row} for path, row in _leaves(facts)))


def work_done(report: Report) -> dict[str, Shown]:
    """Return what a run did, and why it could not do more."""
    shown: dict[str, Shown] = {
        "tasks_done": report.num_done,
        "tasks_skipped": report.num_skipped,
        "tasks_taken_up": report.num_taken_up,
    }
    return shown | ({"waiting": "\n".join(report.waiting)} if report.waiting else {})


def source_table(by_source: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return one row per source: in, kept, modified, dropped, quarantined and the other figures."""
    rows = []
    for source, counts in by_source.items():
        figures = _figures(counts)
        first = {name: figures[name] for name in COLUMNS if name in figures}
        rows.append({"source": source, **first, **figures})
    return Table(rows=tuple(rows))


def rule_table(by_source: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return one row per source and rule that lost a document, largest first in each source."""
    rows: list[Record] = []
    for name, counts in by_source.items():
        found = [
            (decision, rule, count)
            for decision in ("dropped", "quarantined")
            for rule, count in counts.get(decision, {}).items()
        ]
        for decision, rule, count in sorted(found, key=lambda item: (-item[2], item[1])):
            share = _share(count, counts.get("in", 0))
            rows.append(
                {
                    "source": name,
                    "decision": decision,
                    "rule": rule,
                    "documents": count,
                    "share": share,
                }
            )
    return Table(rows=tuple(rows[:MAX_TABLE_ROWS]))


def histogram_markdown(lengths: Mapping[str, int], *, unit: str) -> str:
    """Return a histogram of document lengths as Markdown with an inline SVG picture.

    Args:
        lengths: {"n": number of documents whose length is in [n, 2n)}, n a power of two.
        unit: of the lengths.
    """
    powers = [int(key).bit_length() - 1 for key in lengths]
    bounds = [1 << power for power in range(min(powers), max(powers) + 1)]
    bars = [(_short(bound, base=1024), int(lengths.get(str(bound), 0))) for bound in bounds]
    picture = base64.b64encode(histogram_svg(bars, unit=unit).encode()).decode()
    return f"![documents by length in {unit}](data:image/svg+xml;base64,{picture})"


def histogram_svg(bars: Sequence[tuple[str, int]], *, unit: str) -> str:
    """Return a bar chart as SVG: one bar per (label, count)."""
    step, left, top, height = 44, 10, 34, 130
    width = left * 2 + step * max(len(bars), 6)
    highest = max((count for _, count in bars), default=0) or 1
    size = f'width="{width}" height="{top + height + 42}"'
    note = f"length from (a bar reaches to twice that), {html.escape(unit)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="10">',
        f'<rect {size} fill="#ffffff"/>',
        _label(left, 16, "documents by length", size=12, anchor="start"),
        _label(left, top + height + 34, note, anchor="start"),
    ]
    for index, (label, count) in enumerate(bars):
        bar = round(height * count / highest, 1)
        x, y = left + index * step, top + height - bar
        box = f'x="{x + 3}" y="{y}" width="{step - 6}" height="{bar}"'
        parts.append(f'<rect {box} fill="#4f43dd"/>')
        parts.append(_label(x + step / 2, y - 4, _short(count) if count else ""))
        parts.append(_label(x + step / 2, top + height + 14, html.escape(label)))
    parts.append("</svg>")
    return "".join(parts)


def _label(x: float, y: float, text: str, *, size: int = 10, anchor: str = "middle") -> str:
    place = f'x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="#231f1b">{text}</text>'


def _figures(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a source's statistics, nested ones as their sums."""
    shown = {
        name: value
        for name, value in counts.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    for decision in ("dropped", "quarantined"):
        if decision in counts:
            shown[decision] = sum(counts[decision].values())
            shown[f"{decision}_share"] = _share(shown[decision], counts.get("in", 0))
    return shown


def _leaves(facts: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Record]]:
    numbers: Record = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path} {name}".strip())
        else:
            numbers[name] = value
    if any(numbers.values()):
        yield path, numbers


def _share(part: Any, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _is_plain(value: object) -> bool:
    return isinstance(value, int | float | str | Table | Markdown)


def _short(number: int, base: int = 1000) -> str:
    value = float(number)
    for suffix in ("", "k", "M", "G"):
        if value < base:
            return f"{value:.3g}{suffix}"
        value /= base
    return f"{value:.3g}T"
