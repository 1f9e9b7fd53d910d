"""The page: one HTML file without scripts, fonts or pictures from anywhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from assets.catalog.quality import CHECKS
from assets.report_page.charts import bars, histogram
from assets.report_page.figures import Figures
from assets.report_page.markup import escape, number, percent, short, table
from assets.report_page.samples import KEPT, Sample
from assets.report_page.style import STYLE

MAX_PLOTS = 24
"""Sources whose lengths are drawn one by one."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_SECTIONS = {
    "stages": "From landing to training",
    "losses": "What each rule took",
    "sources": "Sources",
    "languages": "Languages",
    "lengths": "Lengths",
    "tokens": "Frequent tokens",
    "samples": "Samples",
}


def render_page(figures: Figures) -> str:
    """Return the page as HTML."""
    parts = {
        "stages": _stages(figures),
        "losses": _losses(figures),
        "sources": _sources(figures),
        "languages": _languages(figures),
        "lengths": _lengths(figures),
        "tokens": _top_tokens(figures),
        "samples": _samples(figures.samples),
    }
    links = "".join(
        f'<a href="#{name}">{title}</a>' for name, title in _SECTIONS.items() if parts[name]
    )
    body = "".join(
        f'<section id="{name}"><h2>{title}</h2>\n{parts[name]}</section>\n'
        for name, title in _SECTIONS.items()
        if parts[name]
    )
    title = f"Data report: {escape(figures.name)}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{title}</title><style>{STYLE}</style></head><body><main>\n"
        f"<h1>{title}</h1>\n{_subtitle(figures)}<nav>{links}</nav>\n"
        f"{_tiles(figures)}{_warnings(figures)}{body}</main></body></html>\n"
    )


def _subtitle(figures: Figures) -> str:
    plan = figures.plan
    if plan is None:
        return '<p class="soft">Nothing has been published yet.</p>\n'
    said = f"plan {plan['plan_id']}, generation {plan['generation']}, {plan['packing']} packing"
    return f'<p class="soft">{escape(said)}, sequences of {number(plan["sequence_length"])}</p>\n'


def _tiles(figures: Figures) -> str:
    stages = figures.stage_documents()
    tokens = sum(row["tokens"] for row in figures.rows["source_token_statistics"])
    tiles = []
    if stages:
        tiles.append((short(stages[0][1]), "records landed"))
        tiles.append((short(stages[-1][2]), f"documents after {stages[-1][0]}"))
        tiles.append((percent(1 - stages[-1][2] / max(stages[0][1], 1)), "of records lost"))
    if tokens:
        tiles.append((short(tokens), "tokens"))
    if figures.plan is not None:
        tiles.append((percent(figures.plan["utilization"]), "of positions hold tokens"))
    if figures.masked:
        tiles.append((short(sum(figures.masked.values())), "personal data masked"))
    shown = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(what)}</span></div>'
        for value, what in tiles
    )
    return f'<div class="tiles">{shown}</div>\n'


def _warnings(figures: Figures) -> str:
    if not figures.warnings:
        checked = "; ".join(CHECKS.values())
        return f'<div class="card">Nothing is out of the ordinary: {escape(checked)}.</div>\n'
    items = "".join(f"<li>{escape(text)}</li>" for text in figures.warnings)
    return f'<div class="card warn"><b>Look at these</b><ul>{items}</ul></div>\n'


def _stages(figures: Figures) -> str:
    rows: list[tuple[str, float, str]] = []
    for stage, entered, left in figures.stage_documents():
        if not rows:
            rows.append(("landed", entered, number(entered)))
        share = percent(left / entered if entered else None)
        rows.append((stage, left, f"{number(left)}  ({share})"))
    if not rows:
        return ""
    chart = bars(rows, title="documents after each stage")
    note = "Documents after each stage, and their share of what came into it."
    kinds = "".join(
        f"<li>{escape(kind)}: {number(count)}</li>" for kind, count in figures.masked.items()
    )
    masked = f"<h3>Personal data masked</h3><ul>{kinds}</ul>" if kinds else ""
    return f'<p class="soft">{note}</p><div class="card">{chart}</div>{masked}'


def _losses(figures: Figures) -> str:
    rows = figures.rule_losses()
    if not rows:
        return '<p class="soft">No document was lost.</p>'
    columns = [
        ("stage", False), ("rule", False), ("documents", True), ("of the stage", True),
        ("of all landed", True), ("bytes", True), ("words", True),
    ]  # fmt: skip
    cells = [
        (
            escape(row["stage"]),
            f"<code>{escape(row['rule'])}</code>"
            + (' <span class="soft">quarantined</span>' if row["decision"] != "dropped" else ""),
            number(row["documents"]),
            percent(row["share_of_stage"]) + _share(row["share_of_stage"]),
            percent(row["share_of_landed"]),
            number(row["bytes"]),
            number(row["words"]),
        )
        for row in rows
    ]
    note = (
        "The first rule that a document fails takes it. Bytes are of the text that came in; words "
        "are known where they were counted before."
    )
    return f'<p class="soft">{note}</p>' + table(columns, cells) + _losses_by_source(figures)


def _losses_by_source(figures: Figures) -> str:
    rows = figures.rows["losses"]
    if len({row["source"] for row in rows}) < 2:
        return ""
    columns = [
        ("source", False), ("stage", False), ("rule", False), ("documents", True),
        ("left", True), ("of the stage", True),
    ]  # fmt: skip
    cells = [
        (
            escape(row["source"]),
            escape(row["stage"]),
            f"<code>{escape(row['rule'])}</code>",
            number(row["documents"]),
            number(row["documents_left"]),
            percent(row["share_of_stage"]) + _share(row["share_of_stage"]),
        )
        for row in sorted(rows, key=lambda row: row["source"])
    ]
    return f"<details><summary>By source</summary><div>{table(columns, cells)}</div></details>"


def _share(share: float) -> str:
    return f'<span class="share"><i style="width:{min(max(share, 0.0), 1.0):.1%}"></i></span>'


def _sources(figures: Figures) -> str:
    rows = figures.rows["source_token_statistics"]
    amounts = table(
        [("source", False), *((name, True) for name in _AMOUNTS.values())],
        ((escape(row["source"]), *(number(row[key]) for key in _AMOUNTS)) for row in rows),
        caption="What is there, as tokens",
    )
    lengths = table(
        [("source", False), *((name, True) for name in _LENGTHS.values())],
        (
            (escape(row["source"]), *(number(row.get(key), digits=0) for key in _LENGTHS))
            for row in rows
        ),
        caption="Tokens per document",
    )
    return amounts + lengths if rows else ""


_AMOUNTS = {
    "documents": "documents", "characters": "characters", "words": "words", "tokens": "tokens",
    "characters_per_token": "characters/token", "bytes_per_token": "bytes/token",
    "tokens_per_word": "tokens/word", "unique_tokens": "unique tokens",
    "vocabulary_use": "vocabulary use",
}  # fmt: skip
_LENGTHS = {
    "mean_length": "mean", "min_length": "least", "p10_length": "10 %", "p50_length": "median",
    "p90_length": "90 %", "p99_length": "99 %", "max_length": "most",
}  # fmt: skip


def _languages(figures: Figures) -> str:
    rows = figures.rows["language_statistics"]
    stages = [stage for stage in ("tokens", "clean") if any(r["stage"] == stage for r in rows)]
    if not stages:
        return ""
    columns = [("language", False), ("source", False), *((n, True) for n in _LANGUAGE.values())]
    own = [row for row in rows if row["stage"] == stages[0]]
    own.sort(key=lambda row: (-row["documents"], row["language"] or "", row["source"]))
    cells = [
        (
            escape(row["language"] or "not asked"),
            escape(row["source"]),
            *(number(row[key]) for key in _LANGUAGE),
        )
        for row in own
    ]
    return table(columns, cells, caption=f"What stayed after {stages[0]}")


_LANGUAGE = {
    "documents": "documents", "characters": "characters", "words": "words", "tokens": "tokens",
    "characters_per_token": "characters/token", "tokens_per_word": "tokens/word",
}  # fmt: skip


def _lengths(figures: Figures) -> str:
    units = {"documents": "bytes", "clean": "bytes", "tokens": "tokens"}
    totals = [key for key in figures.lengths if not key[1] and figures.lengths[key]]
    last = totals[-1][0] if totals else ""
    sources = [key for key in figures.lengths if key[1] and key[0] == last and figures.lengths[key]]
    plots = []
    for stage, source in [*totals, *sources[:MAX_PLOTS]]:
        what = f"{source}, {stage}" if source else f"all sources, {stage}"
        picture = histogram(figures.lengths[stage, source], unit=units[stage], title=what)
        plots.append(f'<div class="card"><h3>{escape(what)}</h3>{picture}</div>')
    left = len(sources) - MAX_PLOTS
    note = f'<p class="soft">{left} more sources are not drawn.</p>' if left > 0 else ""
    return f'<div class="plots">{"".join(plots)}</div>{note}' if plots else ""


def _top_tokens(figures: Figures) -> str:
    parts = []
    for row in figures.rows["source_token_statistics"]:
        total = max(row["tokens"], 1)
        chips = "".join(
            f"<code>{escape(item['text'])}</code><small>{percent(item['count'] / total)} </small>"
            for item in row["top_tokens"]
        )
        parts.append(f'<h3>{escape(row["source"])}</h3><p class="chips">{chips}</p>')
    return "".join(parts)


def _samples(samples: Sequence[Sample]) -> str:
    note = (
        '<p class="soft">A few documents of every rule, chosen by their ids: the beginning of each '
        "as it came into the stage that took it, or as it stays. Personal data is masked.</p>"
    )
    parts = [
        _sample_group(stage, rule, list(group))
        for (stage, rule), group in groupby(samples, key=lambda one: (one.stage, one.rule))
    ]
    return note + "".join(parts) if parts else ""


def _sample_group(stage: str, rule: str, samples: list[Sample]) -> str:
    what = "kept unchanged" if rule == KEPT else samples[0].decision
    shown = "".join(_sample_lines(samples))
    return (
        f"<details><summary>{escape(stage)}: <code>{escape(rule)}</code> "
        f"<span>{escape(what)}</span></summary><div>{shown}</div></details>\n"
    )


def _sample_lines(samples: Iterable[Sample]) -> Iterator[str]:
    for sample in samples:
        facts = [sample.source, sample.doc_id, f"{number(sample.characters)} characters"]
        if sample.value is not None:
            bound = "" if sample.threshold is None else f" (limit {_plain(sample.threshold)})"
            facts.append(f"value {_plain(sample.value)}{bound}")
        yield f'<div class="where">{escape(", ".join(facts))}</div>'
        yield f'<pre dir="auto">{escape(sample.excerpt)}</pre>'


def _plain(value: Any) -> str:
    return f"{value:.4g}"
