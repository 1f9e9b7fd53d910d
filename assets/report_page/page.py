"""The page: one HTML file without scripts, fonts or pictures from anywhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from assets.catalog.quality import CHECKS
from assets.report_page.charts import bars
from assets.report_page.figures import Figures
from assets.report_page.markup import escape, number, percent, short
from assets.report_page.meanings import meaning_of
from assets.report_page.plots import length_plots, top_tokens
from assets.report_page.samples import KEPT, Sample
from assets.report_page.style import STYLE
from assets.report_page.tables import language_tables, loss_table, source_tables, stage_table

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
        "losses": loss_table(figures),
        "sources": source_tables(figures),
        "languages": language_tables(figures),
        "lengths": length_plots(figures),
        "tokens": top_tokens(figures),
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
    if not figures.stage_documents():
        return '<div class="card">Nothing has landed yet.</div>\n'
    if not figures.rows["quality_checks"]:
        return '<div class="card">There is too little yet to be judged.</div>\n'
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
    drawn = f'<p class="soft">{note}</p><div class="card">{chart}</div>'
    return drawn + stage_table(figures) + masked


def _samples(samples: Sequence[Sample]) -> str:
    note = (
        '<p class="soft">A few documents of every rule, chosen by their ids: the beginning of each '
        "as it came into the stage that took it (of a page, what can be seen), or as it stays. "
        "Personal data is masked.</p>"
    )
    parts = [
        _sample_group(stage, rule, list(group))
        for (stage, rule), group in groupby(samples, key=lambda one: (one.stage, one.rule))
    ]
    return note + "".join(parts) if parts else ""


def _sample_group(stage: str, rule: str, samples: list[Sample]) -> str:
    what = "kept unchanged" if rule == KEPT else samples[0].decision
    meaning = meaning_of(rule)
    said = f'<p class="soft">{escape(meaning)}</p>' if meaning else ""
    shown = said + "".join(_sample_lines(samples))
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
