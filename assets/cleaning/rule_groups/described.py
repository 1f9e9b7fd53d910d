"""Every rule of cleaning as it is configured for a source: definition, threshold, how it counts.

Rules are named as in the ledger, and come in the order of the pipeline. What rewrites a text line
by line is a rule too: its name stands in the detail of a modified document.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from assets.cleaning import c4_lines, web_lines
from assets.cleaning.batch import PROSE_PROFILES
from assets.cleaning.language import ANY_LANGUAGE
from assets.cleaning.rule_groups.definitions import DEFINITIONS
from assets.cleaning.rule_groups.judged import LABEL_SIGN, JudgedRule, judged_rules
from assets.cleaning.rule_groups.lines import LINE_GROUPS
from assets.cleaning.rule_groups.order import GROUPS
from assets.cleaning.steps.classifier import QUALITY_RULE
from assets.cleaning.steps.emptiness import EMPTY
from assets.cleaning.steps.languages import LANGUAGE, LANGUAGE_CHARACTERS, LANGUAGE_SCORE
from assets.cleaning.steps.perplexity import PERCENTILE_RULE, PERPLEXITY_RULE
from assets.cleaning.steps.personal_data import TOO_MANY
from assets.cleaning.steps.urls import PROFILES, URL_DOMAIN, URL_HARD_WORD, URL_SOFT_WORDS
from assets.settings.cleaning import CleaningSettings
from assets.settings.sources import SourceSettings

_LINE_THRESHOLDS = {
    "line_uppercase": ("max_uppercase_ratio", "above"),
    "line_numeric": ("max_digit_ratio", "above"),
    "line_short": ("min_words", "below"),
    "c4_long_word": ("max_word_length", "above"),
    "c4_few_words": ("min_words_per_line", "below"),
}
"""Rules about lines that compare something: their setting, and on which side a line goes."""
_LINE_SWITCHES = {
    "line_counter": "drop_counters",
    "c4_citations": "remove_citations",
    "c4_no_end_mark": "require_end_mark",
    "c4_javascript": "drop_javascript",
    "c4_policy": "drop_policy",
}
_COUNTING = ("counting", "stop_word_counting", "sentence_splitter")
"""Settings that say how a group counts."""
_GROUP_OF = {
    EMPTY: "",
    LANGUAGE: "language",
    LANGUAGE_SCORE: "language",
    LANGUAGE_CHARACTERS: "language",
    URL_DOMAIN: "urls",
    URL_HARD_WORD: "urls",
    URL_SOFT_WORDS: "urls",
    PERCENTILE_RULE: "perplexity",
    PERPLEXITY_RULE: "perplexity",
    QUALITY_RULE: "quality",
    TOO_MANY: "pii",
}
"""Group of the rules that no module of `rule_groups` has."""


class DescribedRule(NamedTuple):
    """One rule of one source."""

    source: str
    group: str
    """Its key under `cleaning.rules`, or the settings that it belongs to."""
    rule: str
    definition: str
    value: str | None
    """Column of `clean/`, or field of `signals`, that it compares; None: no value is stored."""
    fails: str | None
    """`below` or `above` the threshold; None: it compares nothing."""
    threshold: float | None
    is_on: bool
    word_splitter: str | None
    counting: str | None


def described_rules(source: SourceSettings, cleaning: CleaningSettings) -> Iterator[DescribedRule]:
    """Yield every rule of a source, those that are off among them.

    Args:
        source: with a built-in profile, as `Settings.cleaning_of` returns it.
        cleaning: how that source is cleaned.
    """
    judged = {rule.name: rule for rule in judged_rules(source, cleaning)}
    for name in _names(source, judged):
        plain = name.partition(LABEL_SIGN)[0]
        group = _GROUP_OF.get(plain) if plain in _GROUP_OF else _groups()[plain]
        settings = getattr(cleaning.rules, group or "", None)
        rule = judged.get(name)
        side, threshold, is_on = _compared(source, cleaning, name, rule, settings)
        yield DescribedRule(
            source=source.name,
            group=group or "",
            rule=name,
            definition=DEFINITIONS[plain],
            value=None if rule is None else rule.column,
            fails=side,
            threshold=threshold,
            is_on=is_on,
            word_splitter=getattr(settings, "word_splitter", None),
            counting=_counting(settings),
        )


def _names(source: SourceSettings, judged: dict[str, JudgedRule]) -> Iterator[str]:
    """Yield names in the order of the pipeline: rules without a stored value beside theirs."""
    is_prose = source.profile in PROSE_PROFILES
    if URL_SOFT_WORDS in judged:
        yield from (URL_DOMAIN, URL_HARD_WORD, URL_SOFT_WORDS)
    yield EMPTY
    if is_prose and ANY_LANGUAGE not in source.languages:
        yield LANGUAGE
        yield LANGUAGE_CHARACTERS
    lines: dict[str, tuple[str, ...]] = {
        "too_many_removed_words": web_lines.CHANGES,
        "c4_lorem_ipsum": c4_lines.CHANGES,
    }
    for name in judged:
        if name != URL_SOFT_WORDS:
            yield from lines.get(name, ())
            yield name


def _compared(
    source: SourceSettings,
    cleaning: CleaningSettings,
    name: str,
    rule: JudgedRule | None,
    settings: Any,
) -> tuple[str | None, float | None, bool]:
    """Return the side on which a rule fails, its threshold, and whether it is asked."""
    if rule is not None:
        side = "below" if rule.is_least else "above"
        return side, rule.threshold, rule.threshold is not None
    if name == LANGUAGE_CHARACTERS:
        asked = cleaning.language.check_characters
        return "above", cleaning.language_threshold if asked else None, asked
    if name in (EMPTY, LANGUAGE):
        return None, None, True
    if name in (URL_DOMAIN, URL_HARD_WORD):
        listed = settings.domains if name == URL_DOMAIN else settings.hard_words
        asked = cleaning.rules.asks("urls", PROFILES, source.profile)
        return None, None, asked and listed is not None
    group = next(group for group in LINE_GROUPS if name in group.changes)
    is_on = cleaning.rules.asks(group.name, group.profiles, source.profile)
    if name in _LINE_THRESHOLDS:
        setting, side = _LINE_THRESHOLDS[name]
        return side, float(getattr(settings, setting)), is_on
    switch = _LINE_SWITCHES.get(name)
    return None, None, is_on and (switch is None or getattr(settings, switch))


def _groups() -> dict[str, str]:
    """Return the group of every rule and of every line rule."""
    found = {name: group.name for group in LINE_GROUPS for name in group.changes}
    defaults = CleaningSettings().rules
    for group in (*LINE_GROUPS, *GROUPS):
        found |= {rule.name: group.name for rule in group.rules(getattr(defaults, group.name))}
    return found


def _counting(settings: Any) -> str | None:
    named = [getattr(settings, name) for name in _COUNTING if hasattr(settings, name)]
    return ", ".join(named) if named else None
