"""The rule about characters outside the ranges of code points that a corpus is expected to use."""

from __future__ import annotations

from assets.cleaning.character_ranges import count_outside
from assets.cleaning.rule_groups.group import Measured, RuleGroup
from assets.cleaning.rules import Rule, Signal
from assets.cleaning.signals import CHARACTERS, ratio
from assets.settings.rules import CharacterRules


def character_signals(measured: Measured, settings: CharacterRules) -> dict[str, Signal]:
    """Return the share of characters outside."""
    outside = count_outside(measured.texts, measured.index, settings.code_points)
    values = ratio(outside, measured.counts()[:, CHARACTERS])
    return {"outside_range_ratio": Signal(values, measured.everywhere)}


def character_rules(settings: CharacterRules) -> tuple[Rule, ...]:
    """Return the one rule."""
    return (
        Rule(
            "too_many_characters_outside",
            "outside_range_ratio",
            settings.max_outside_ratio,
            is_least=False,
        ),
    )


GROUP = RuleGroup("characters", ("web", "text", "code"), character_signals, character_rules)
