"""Every rule that decides by a stored value, in the order of the pipeline, for one source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from assets.cleaning import c4_lines, web_lines
from assets.cleaning.batch import PROSE_PROFILES
from assets.cleaning.language import ANY_LANGUAGE
from assets.cleaning.rule_groups.lines import LINE_GROUPS
from assets.cleaning.rule_groups.order import GROUPS
from assets.cleaning.steps.classifier import QUALITY_RULE
from assets.cleaning.steps.emptiness import EMPTY
from assets.cleaning.steps.languages import LANGUAGE, LANGUAGE_CHARACTERS, LANGUAGE_SCORE
from assets.cleaning.steps.perplexity import PERCENTILE_RULE, PERPLEXITY_RULE
from assets.cleaning.steps.personal_data import TOO_MANY
from assets.cleaning.steps.urls import (
    PROFILES as URL_PROFILES,
    URL_DOMAIN,
    URL_HARD_WORD,
    URL_SOFT_WORDS,
)
from assets.settings.cleaning import CleaningSettings
from assets.settings.sources import SourceSettings

LABEL_SIGN = ":"
_PLAIN = frozenset({LANGUAGE_SCORE, PERPLEXITY_RULE, TOO_MANY})
"""Rules that compare a column of `CLEAN`."""


class JudgedRule(NamedTuple):
    """One comparison of a stored value."""

    name: str
    """As in the ledger; `language_score:LABEL` where a language has a threshold of its own."""
    column: str
    """A field of `SIGNALS`; of `_PLAIN` rules a column of `CLEAN`."""
    threshold: float | None
    """None where the rule or its group is off."""
    is_least: bool
    label: str | None = None
    """The language whose documents alone are compared; None: all that no other rule of the same
    column names."""

    @property
    def is_signal(self) -> bool:
        """Whether `column` is a field of `SIGNALS`.

        Not told by the name: `num_words` is both, and they differ. The column counts at whitespace
        in every language, the signal as the settings say, and only where the rules are asked.
        """
        return self.ledger_name not in _PLAIN

    @property
    def ledger_name(self) -> str:
        """The rule as the ledger names it."""
        return self.name if self.label is None else self.name.partition(LABEL_SIGN)[0]


def judged_rules(
    source: SourceSettings, cleaning: CleaningSettings, asked: Iterable[str] = ()
) -> tuple[JudgedRule, ...]:
    """Return the rules that the profile of a source knows, those that are off among them.

    Args:
        source: with a built-in profile, as `Settings.cleaning_of` returns it.
        cleaning: how that source is cleaned.
        asked: names of rules; `language_score:LABEL` among them gives a language one of its own.
    """
    is_prose = source.profile in PROSE_PROFILES
    rules: list[JudgedRule] = []
    if source.profile != "none" or _asks(cleaning, "urls", (), source):
        urls = cleaning.rules.urls
        most = urls.max_soft_words if _asks(cleaning, "urls", URL_PROFILES, source) else None
        rules.append(JudgedRule(URL_SOFT_WORDS, URL_SOFT_WORDS, most, is_least=False))
    if is_prose:
        rules += _language_rules(source, cleaning, asked)
    for group in (*LINE_GROUPS, *GROUPS):
        is_asked = _asks(cleaning, group.name, group.profiles, source)
        if source.profile not in group.profiles and not is_asked:
            continue
        settings = getattr(cleaning.rules, group.name)
        rules += [
            JudgedRule(rule.name, rule.signal, rule.threshold if is_asked else None, rule.is_least)
            for rule in group.rules(settings)
        ]
    if is_prose:
        rules += _model_rules(cleaning)
    pii = cleaning.pii
    most = None if pii is None else pii.drop_above
    return (*rules, JudgedRule(TOO_MANY, "pii_replaced", most, is_least=False))


def why_not_judged(rule: str) -> str | None:
    """Return why no stored value can tell what another threshold of a rule would do.

    None for a rule that is not known.
    """
    if rule in (*web_lines.CHANGES, *c4_lines.CHANGES):
        return "it rewrites texts line by line, and what it would leave is not stored"
    if rule in (URL_DOMAIN, URL_HARD_WORD, LANGUAGE, EMPTY):
        return "it compares nothing with a threshold"
    if rule.partition(LABEL_SIGN)[0] == LANGUAGE_SCORE:
        return (
            "no source drops by it, or none by it alone: another threshold would also cut other "
            "paragraphs (`paragraphs: drop`) or ask the letters otherwise (`check_characters`), or "
            "the label is not one of the source's `languages`"
        )
    if rule == LANGUAGE_CHARACTERS:
        return "its values are not stored for kept documents"
    return None


def _asks(
    cleaning: CleaningSettings, group: str, profiles: tuple[str, ...], source: SourceSettings
) -> bool:
    return cleaning.rules.asks(group, profiles, source.profile)


def _language_rules(
    source: SourceSettings, cleaning: CleaningSettings, asked: Iterable[str]
) -> Iterator[JudgedRule]:
    """Yield the rule of each label that has a threshold of its own, and that of the others."""
    settings = cleaning.language
    if ANY_LANGUAGE in source.languages or settings.check_characters:
        return
    if settings.paragraphs == "drop":
        return
    prefix = LANGUAGE_SCORE + LABEL_SIGN
    named = {name.removeprefix(prefix) for name in asked if name.startswith(prefix)}
    for label in sorted((settings.thresholds.keys() | named) & set(source.languages)):
        threshold = settings.thresholds.get(label, cleaning.language_threshold)
        yield JudgedRule(prefix + label, LANGUAGE_SCORE, threshold, is_least=True, label=label)
    yield JudgedRule(LANGUAGE_SCORE, LANGUAGE_SCORE, cleaning.language_threshold, is_least=True)


def _model_rules(cleaning: CleaningSettings) -> tuple[JudgedRule, ...]:
    perplexity, quality = cleaning.perplexity, cleaning.quality
    above = None if perplexity is None else perplexity.drop_above
    most = None if perplexity is None else perplexity.max_perplexity
    least = None if quality is None else quality.min_score
    return (
        JudgedRule(PERCENTILE_RULE, "perplexity_percentile", above, is_least=False),
        JudgedRule(PERPLEXITY_RULE, "perplexity", most, is_least=False),
        JudgedRule(QUALITY_RULE, "quality", least, is_least=True),
    )
