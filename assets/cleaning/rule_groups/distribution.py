"""The rule about texts whose words are unlike the corpus's (Llama 3)."""

from __future__ import annotations

from assets.cleaning.models.distribution import divergences, frozen_distribution
from assets.cleaning.rule_groups.group import Measured, RuleGroup
from assets.cleaning.rules import Rule, Signal
from assets.cleaning.signals import SYMBOL_WORDS, WORDS
from assets.errors import ConfigurationError
from assets.settings.rules import DistributionRules


def distribution_signals(measured: Measured, settings: DistributionRules) -> dict[str, Signal]:
    """Return the divergence of each text that has words."""
    assert settings.model is not None
    if measured.root_url is None:
        raise ConfigurationError(
            "a distribution by hash lies in a root: give clean_table the root_url of it"
        )
    corpus = frozen_distribution(measured.root_url, settings.model)
    values = divergences(measured.split(), measured.index, corpus)
    counts = measured.counts()
    has_words = counts[:, WORDS] + counts[:, SYMBOL_WORDS] > 0
    return {"word_divergence": Signal(values, has_words & measured.spaced)}


def distribution_rules(settings: DistributionRules) -> tuple[Rule, ...]:
    """Return the one rule."""
    return (Rule("unlike_the_corpus", "word_divergence", settings.max_divergence, is_least=False),)


GROUP = RuleGroup("distribution", ("web", "text"), distribution_signals, distribution_rules)
