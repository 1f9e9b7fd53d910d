"""Every rule that decides by a stored value, in the order of the pipeline, for one source."""

from __future__ import annotations

from typing import NamedTuple

from assets.cleaning.batch import PROSE_PROFILES
from assets.cleaning.language import ANY_LANGUAGE
from assets.cleaning.rule_groups.lines import LINE_GROUPS
from assets.cleaning.rule_groups.order import GROUPS
from assets.cleaning.steps.languages import LANGUAGE_SCORE
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
    rules: list[JudgedRule] = []
    asks_language = source.profile in PROSE_PROFILES and ANY_LANGUAGE not in source.languages
    # Thresholds by label are no single comparison.
    if asks_language and not cleaning.language.thresholds:
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
    return tuple(rules)
