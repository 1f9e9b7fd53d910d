"""Every rule that decides by a stored value, in the order of the pipeline, for one source."""

from __future__ import annotations

from typing import NamedTuple

from assets.cleaning.batch import PROSE_PROFILES
from assets.cleaning.language import ANY_LANGUAGE
from assets.cleaning.rule_groups.lines import LINE_GROUPS
from assets.cleaning.rule_groups.order import GROUPS
from assets.cleaning.steps.classifier import QUALITY_RULE
from assets.cleaning.steps.languages import LANGUAGE_SCORE
from assets.cleaning.steps.perplexity import PERCENTILE_RULE, PERPLEXITY_RULE
from assets.cleaning.steps.urls import URL_SOFT_WORDS
from assets.document import CLEAN
from assets.settings.cleaning import CleaningSettings
from assets.settings.sources import SourceSettings


class JudgedRule(NamedTuple):
    """One comparison of a stored value."""

    name: str
    """As in the ledger."""
    column: str
    """A column of `CLEAN`, or else a field of `SIGNALS`."""
    threshold: float | None
    """None where the rule or its group is off."""
    is_least: bool

    @property
    def is_signal(self) -> bool:
        """Whether `column` is a field of `SIGNALS`."""
        return self.column not in CLEAN.names


def judged_rules(source: SourceSettings, cleaning: CleaningSettings) -> tuple[JudgedRule, ...]:
    """Return the rules that the profile of a source knows, those that are off among them."""
    is_prose = source.profile in PROSE_PROFILES
    rules: list[JudgedRule] = []
    if source.profile != "none":
        urls = cleaning.rules.urls
        most = urls.max_soft_words if urls.enabled else None
        rules.append(JudgedRule(URL_SOFT_WORDS, URL_SOFT_WORDS, most, is_least=False))
    # Thresholds by label are no single comparison.
    if is_prose and ANY_LANGUAGE not in source.languages and not cleaning.language.thresholds:
        rules.append(
            JudgedRule(LANGUAGE_SCORE, LANGUAGE_SCORE, cleaning.language_threshold, is_least=True)
        )
    for group in (*LINE_GROUPS, *GROUPS):
        if source.profile not in group.profiles:
            continue
        settings = getattr(cleaning.rules, group.name)
        rules += [
            JudgedRule(
                rule.name, rule.signal, rule.threshold if settings.enabled else None, rule.is_least
            )
            for rule in group.rules(settings)
        ]
    return (*rules, *_model_rules(cleaning)) if is_prose else tuple(rules)


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
