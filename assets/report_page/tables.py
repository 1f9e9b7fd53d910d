"""The tables of the page: losses, stages, sources, languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assets.report_page.figures import Figures
from assets.report_page.markup import details, escape, number, percent, table
from assets.report_page.meanings import meaning_of

_Row = Mapping[str, Any]
_AMOUNTS = {
    "documents": "documents", "characters": "characters", "bytes": "bytes", "words": "words",
    "tokens": "tokens",
}  # fmt: skip
_RATIOS = {
    "characters_per_token": "characters / token", "bytes_per_token": "bytes / token",
    "tokens_per_word": "tokens / word", "unique_tokens": "unique tokens",
}  # fmt: skip
_LENGTHS = {
    "mean_length": "mean", "min_length": "least", "p10_length": "10 %", "p50_length": "median",
    "p90_length": "90 %", "p99_length": "99 %", "max_length": "most",
}  # fmt: skip
_LANGUAGE_LENGTHS = {name: _LENGTHS[name] for name in _LENGTHS if name[:3] not in ("min", "max")}


def stage_table(figures: Figures) -> str:
    """Return what stayed after every stage, over all sources and by source."""
    rows = figures.rows["stage_totals"]
    columns = [("documents in", True), *((title, True) for title in _AMOUNTS.values())]
    names = ("documents_in", *_AMOUNTS)
    stages = list(dict.fromkeys(row["stage"] for row in rows))
    own = {stage: [row for row in rows if row["stage"] == stage] for stage in stages}
    sums = [
        (escape(stage), *(number(_sum(own[stage], name)) for name in names)) for stage in stages
    ]
    whole = table([("stage", False), *columns], sums)
    if len({row["source"] for row in rows}) < 2:
        return whole
    by_source = table(
        [("source", False), ("stage", False), *columns],
        (
            (
                escape(row["source"]),
                escape(row["stage"]),
                *(number(row.get(name)) for name in names),
            )
            for row in sorted(rows, key=lambda row: row["source"])
        ),
    )
    return whole + details("By source", by_source)


def _sum(rows: Sequence[_Row], name: str) -> int | None:
    values = [row.get(name) for row in rows]
    return None if None in values else sum(value for value in values if value is not None)


def loss_table(figures: Figures) -> str:
    """Return what each rule took, over all sources and by source."""
    rows = figures.rule_losses()
    unchanged = sum(row["documents"] for row in figures.rows["losses"] if not row["is_loss"])
    stays = (
        f'<p class="soft">{number(unchanged)} documents of changed files are as they were: their '
        "earlier versions stay, which is no loss.</p>"
        if unchanged
        else ""
    )
    if not rows:
        nothing = '<p class="soft">No document was lost.</p>' + stays
        return nothing if figures.stage_documents() else ""
    columns = [
        ("stage", False), ("rule", False), ("documents", True), ("of the stage", True),
        ("of all landed", True), ("bytes", True), ("words", True),
    ]  # fmt: skip
    cells = [
        (
            escape(row["stage"]),
            _rule(row),
            number(row["documents"]),
            percent(row["share_of_stage"]) + _bar(row["share_of_stage"]),
            percent(row["share_of_landed"]),
            number(row["bytes"]),
            number(row["words"]),
        )
        for row in rows
    ]
    note = (
        "The first rule that a document fails takes it. Bytes are of the text as it was decoded; "
        "words are known where they were counted before."
    )
    whole = f'<p class="soft">{note}</p>' + table(columns, cells)
    return whole + _losses_by_source(figures) + stays


def _rule(row: _Row) -> str:
    quarantined = "" if row["decision"] == "dropped" else ' <span class="soft">quarantined</span>'
    meaning = f"<small>{escape(meaning_of(row['rule']))}</small>"
    return f"<code>{escape(row['rule'])}</code>{quarantined}{meaning}"


def _losses_by_source(figures: Figures) -> str:
    rows = [row for row in figures.rows["losses"] if row["is_loss"]]
    if len({row["source"] for row in rows}) < 2:
        return ""
    columns = [
        ("source", False), ("stage", False), ("rule", False), ("documents", True),
        ("left", True), ("of the stage", True), ("bytes", True), ("words", True),
    ]  # fmt: skip
    cells = [
        (
            escape(row["source"]),
            escape(row["stage"]),
            f"<code>{escape(row['rule'])}</code>",
            number(row["documents"]),
            number(row["documents_left"]),
            percent(row["share_of_stage"]) + _bar(row["share_of_stage"]),
            number(row["bytes"]),
            number(row["words"]),
        )
        for row in sorted(rows, key=lambda row: row["source"])
    ]
    return details("By source", table(columns, cells))


def _bar(share: float) -> str:
    return f'<span class="share"><i style="width:{min(max(share, 0.0), 1.0):.1%}"></i></span>'


def source_tables(figures: Figures) -> str:
    """Return the token figures of every source, their lengths, and what the plan takes of them."""
    rows = figures.rows["source_token_statistics"]
    if not rows:
        return ""
    names = {**_AMOUNTS, **_RATIOS}
    amounts = table(
        [("source", False), *((title, True) for title in names.values()), ("of vocabulary", True)],
        (
            (
                escape(row["source"]),
                *(number(row[name]) for name in names),
                percent(row["vocabulary_use"]),
            )
            for row in rows
        ),
        caption="What is there, as tokens",
    )
    lengths = table(
        [("source", False), *((title, True) for title in _LENGTHS.values())],
        (
            (escape(row["source"]), *(number(row.get(name), digits=0) for name in _LENGTHS))
            for row in rows
        ),
        caption="Tokens per document",
    )
    return amounts + lengths + _plan_table(figures)


def _plan_table(figures: Figures) -> str:
    plan = figures.plan
    if plan is None:
        return ""
    rows = [row for row in figures.rows["plan_sources"] if row["plan_id"] == plan["plan_id"]]
    columns = [
        ("source", False), ("instances", True), ("tokens", True), ("target", True),
        ("of the plan", True), ("epochs", True),
    ]  # fmt: skip
    cells = [
        (
            escape(row["source"]),
            number(row["instances"]),
            number(row["tokens"]),
            percent(row["target_share"]),
            percent(row["planned_share"]) + _bar(row["planned_share"]),
            number(row["epochs"]),
        )
        for row in rows
    ]
    used = percent(plan["utilization"])
    return table(
        columns, cells, caption=f"In the current plan; {used} of its positions hold tokens"
    )


def language_tables(figures: Figures) -> str:
    """Return what stayed of every language and source: as tokens, and after cleaning."""
    rows = figures.rows["language_statistics"]
    as_tokens = [row for row in rows if row["stage"] == "tokens"]
    cleaned = [row for row in rows if row["stage"] == "clean"]
    parts = []
    if as_tokens:
        names = {**_AMOUNTS, **_RATIOS}
        parts.append(_languages(as_tokens, names, "What stayed, as tokens", vocabulary=True))
        title = "Tokens per document; of a histogram, so about"
        parts.append(_languages(as_tokens, _LANGUAGE_LENGTHS, title))
    if cleaned:
        names = {name: title for name, title in _AMOUNTS.items() if name != "tokens"}
        title = "What stayed after cleaning; lengths in bytes, about"
        after = _languages(cleaned, {**names, **_LANGUAGE_LENGTHS}, title)
        parts.append(details("After cleaning", after) if as_tokens else after)
    return "".join(parts)


def _languages(
    rows: Sequence[_Row], names: Mapping[str, str], caption: str, *, vocabulary: bool = False
) -> str:
    last = [("of vocabulary", True)] if vocabulary else []
    ordered = sorted(
        rows, key=lambda row: (-row["documents"], row["language"] or "", row["source"])
    )
    return table(
        [("language", False), ("source", False), *((n, True) for n in names.values()), *last],
        (
            (
                escape(row["language"] or "not asked"),
                escape(row["source"]),
                *(_figure(row, name) for name in names),
                *([percent(row.get("vocabulary_use"))] if vocabulary else []),
            )
            for row in ordered
        ),
        caption=caption,
    )


def _figure(row: _Row, name: str) -> str:
    return number(row.get(name), digits=0 if name.endswith("_length") else 2)
