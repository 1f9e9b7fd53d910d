"""The plots of document lengths and the most frequent tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assets.report_page.charts import histogram
from assets.report_page.figures import Figures
from assets.report_page.markup import details, escape, percent
from assets.stage import add_statistics

MAX_PLOTS = 24
"""Sources, and languages, whose lengths are drawn one by one."""
UNITS = {"documents": "bytes", "clean": "bytes", "tokens": "tokens"}
_WIDE = 11
"""Bars from which on a plot takes the whole line."""


def length_plots(figures: Figures) -> str:
    """Return the plots: of every stage over all sources, of sources and languages."""
    stages = [
        (f"all sources, {stage}", stage, lengths)
        for (stage, source), lengths in figures.lengths.items()
        if not source and lengths
    ]
    if not stages:
        return ""
    last = stages[-1][1]
    sources = [
        (source, stage, lengths)
        for (stage, source), lengths in figures.lengths.items()
        if source and stage == last and lengths
    ]
    languages = [(name, last, lengths) for name, lengths in _by_language(figures, last).items()]
    note = (
        '<p class="soft">A bar stands for documents whose length is from its number up to twice '
        "that.</p>"
    )
    parts = [note, _plots(stages)]
    for title, plots in (("By source", sources), ("By language", languages)):
        if len(plots) > 1:
            left = len(plots) - MAX_PLOTS
            more = f'<p class="soft">{left} more are not drawn.</p>' if left > 0 else ""
            parts.append(details(f"{title}, {last}", _plots(plots[:MAX_PLOTS]) + more))
    return "".join(parts)


def _by_language(figures: Figures, stage: str) -> dict[str, Mapping[str, int]]:
    """Return the lengths of every language over all sources, the most documents first."""
    found: dict[str, dict[str, Any]] = {}
    for row in figures.rows["language_statistics"]:
        if row["stage"] == stage and row["lengths"]:
            name = row["language"] or "not asked"
            found[name] = add_statistics(found.get(name, {}), row["lengths"])
    return dict(sorted(found.items(), key=lambda item: (-sum(item[1].values()), item[0])))


def _plots(plots: list[tuple[str, str, Mapping[str, int]]]) -> str:
    cards = []
    for title, stage, lengths in plots:
        picture = histogram(lengths, unit=UNITS[stage], title=title)
        powers = [int(key).bit_length() for key in lengths]
        kind = "card wide" if max(powers) - min(powers) >= _WIDE else "card"
        cards.append(
            f'<div class="{kind}"><h3>{escape(title)}</h3><div class="plot">{picture}</div></div>'
        )
    return f'<div class="plots">{"".join(cards)}</div>'


def top_tokens(figures: Figures) -> str:
    """Return the most frequent tokens of every source, and of every language."""
    sources = [
        (row["source"], row["tokens"], row["top_tokens"])
        for row in figures.rows["source_token_statistics"]
    ]
    languages = [
        (f"{row['language'] or 'not asked'}, {row['source']}", row["tokens"], row["top_tokens"])
        for row in figures.rows["language_statistics"]
        if row.get("top_tokens")
    ]
    shown = "".join(_chips(*item) for item in sources)
    if len(languages) > len(sources):
        shown += details("By language and source", "".join(_chips(*item) for item in languages))
    return shown


def _chips(name: str, tokens: int, found: list[dict[str, Any]]) -> str:
    chips = "".join(
        f"<span><code>{escape(item['text'])}</code>"
        f"<small>{percent(item['count'] / max(tokens, 1))}</small></span>"
        for item in found
    )
    shown = f'<p class="chips">{chips}</p>' if chips else '<p class="soft">no tokens</p>'
    return f"<h3>{escape(name)}</h3>{shown}"
