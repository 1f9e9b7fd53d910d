"""Figures that should make somebody look: they warn, and stop nothing.

========================  ======================================================================
`characters_per_token`    below 1.5 the tokenizer cuts the texts to pieces, above 8 they repeat or
                          are not text
`fertility`               tokens per word of a language, twice or half of what is usual for it
`utilization`             below 90 % of a plan's positions hold tokens, the rest is padding
`rule_share`              one rule drops more than half of a source
========================  ======================================================================

A figure of very little data says nothing and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

CHECKS = {
    "characters_per_token": "a token is worth 1.5 to 8 characters in every source",
    "fertility": "tokens per word of a language are at most twice and at least half the usual",
    "utilization": "at least 90 % of the positions of the current plan hold tokens",
    "rule_share": "no rule drops more than half of a source",
}
LEAST_CHARACTERS, MOST_CHARACTERS = 1.5, 8.0
LEAST_UTILIZATION = 0.9
MOST_RULE_SHARE = 0.5
FAR = 2.0
"""Factor between a fertility and the usual one from which on it is far."""
MAX_SHOWN = 50
_BOUNDS = ("value", "least", "most")
MIN_TOKENS, MIN_DOCUMENTS = 1_000, 20
"""Less is not judged."""

# Tokens per word at white space of running text under vocabularies of 50,000 to 100,000 that were
# trained mostly on English; measured on handbooks and declarations in these languages.
USUAL_FERTILITY = {
    "ar": 2.8, "bg": 3.0, "bn": 6.0, "ca": 1.9, "cs": 2.8, "da": 2.1, "de": 2.0, "el": 4.5,
    "en": 1.35, "es": 1.7, "et": 2.9, "fa": 2.8, "fi": 3.1, "fr": 1.75, "he": 4.0, "hi": 4.3,
    "hr": 2.5, "hu": 3.0, "id": 2.1, "it": 1.9, "ko": 3.6, "lt": 3.1, "lv": 3.2, "nl": 1.9,
    "no": 2.1, "pl": 2.5, "pt": 1.8, "ro": 2.2, "ru": 2.9, "sk": 2.8, "sl": 2.5, "sr": 3.0,
    "sv": 2.2, "tr": 2.8, "uk": 3.3, "vi": 2.4,
}  # fmt: skip


def quality_rows(
    tokens: Iterable[Mapping[str, Any]],
    languages: Iterable[Mapping[str, Any]],
    plans: Iterable[Mapping[str, Any]],
    losses: Iterable[Mapping[str, Any]],
) -> Iterator[Row]:
    """Yield a row per figure that is judged; `warns` tells which should be looked at.

    Args:
        tokens: rows of `source_token_statistics`.
        languages: rows of `language_statistics`.
        plans: rows of `plans`.
        losses: rows of `losses`.
    """
    for row in tokens:
        value = row["characters_per_token"]
        if row["tokens"] >= MIN_TOKENS and value is not None:
            yield _judged(
                "characters_per_token", row["source"], value, LEAST_CHARACTERS, MOST_CHARACTERS
            )
    yield from _fertilities(languages)
    for row in plans:
        value = row["utilization"]
        if row["current"] and value is not None:
            yield _judged("utilization", row["plan_id"], value, LEAST_UTILIZATION, None)
    for row in losses:
        if row["is_loss"] and row["stage_documents"] >= MIN_DOCUMENTS:
            what = f"{row['source']}, {row['stage']}, {row['rule']}"
            yield _judged("rule_share", what, row["share_of_stage"], None, MOST_RULE_SHARE)


def _fertilities(languages: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    for row in languages:
        usual = USUAL_FERTILITY.get(row["language"] or "")
        value = row["tokens_per_word"]
        if usual is not None and value is not None and row["tokens"] >= MIN_TOKENS:
            what = f"{row['source']}, {row['language']}"
            yield _judged("fertility", what, value, usual / FAR, usual * FAR)


@dataclass(frozen=True, kw_only=True, slots=True)
class QualityCheck:
    """One kind of figure over the whole root; it warns if any of them does."""

    name: str
    passed: bool
    facts: Mapping[str, Mapping[str, float | None]]
    """Value and bounds of what warns, by what it is of."""
    message: str


def quality_checks(rows: Iterable[Row]) -> tuple[QualityCheck, ...]:
    """Return the verdicts of `CHECKS` on the rows of `quality_rows`."""
    found: dict[str, list[Row]] = {name: [] for name in CHECKS}
    for row in rows:
        if row["warns"]:
            found[row["check"]].append(row)
    return tuple(
        QualityCheck(
            name=name,
            passed=not warned,
            facts={row["what"]: {key: row[key] for key in _BOUNDS} for row in warned[:MAX_SHOWN]},
            message="; ".join(map(warning, warned[:MAX_SHOWN])),
        )
        for name, warned in found.items()
    )


def warning(row: Row) -> str:
    """Return what is said of a row that warns: the figure and the bound it is beyond."""
    is_low = row["least"] is not None and row["value"] < row["least"]
    bound = f"below {row['least']:.3g}" if is_low else f"above {row['most']:.3g}"
    return f"{row['check']} of {row['what']} is {row['value']:.3g}, {bound}"


def _judged(check: str, what: str, value: float, least: float | None, most: float | None) -> Row:
    is_low = least is not None and value < least
    is_high = most is not None and value > most
    return {
        "check": check,
        "what": what,
        "value": value,
        "least": least,
        "most": most,
        "warns": is_low or is_high,
    }
