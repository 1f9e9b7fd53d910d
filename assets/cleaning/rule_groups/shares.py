"""Shares of words and characters that prose has few of: all caps, special, encoded data."""

from __future__ import annotations

from assets.cleaning.encoded import count_encoded
from assets.cleaning.rule_groups.group import Measured, RuleGroup
from assets.cleaning.rules import Rule, Signal
from assets.cleaning.signals import (
    CAPS_LETTERS,
    CAPS_WORDS,
    CHARACTERS,
    MARKS,
    SPECIAL,
    SYMBOL_WORDS,
    WORDS,
    ratio,
)
from assets.settings.rules import ShareRules


def share_signals(measured: Measured, settings: ShareRules) -> dict[str, Signal]:
    """Return the shares; those of encoded data only where a rule asks for one of them."""
    counts, everywhere = measured.counts(settings.word_splitter), measured.everywhere
    caps, special = counts[:, CAPS_WORDS], counts[:, SPECIAL]
    if settings.counting == "plain":
        caps, special = caps + counts[:, CAPS_LETTERS], special + counts[:, MARKS]
    words, characters = counts[:, WORDS] + counts[:, SYMBOL_WORDS], counts[:, CHARACTERS]
    signals = {
        "caps_word_ratio": Signal(ratio(caps, words), measured.spaced),
        "special_character_ratio": Signal(ratio(special, characters), everywhere),
    }
    if settings.max_base64_ratio is not None or settings.max_hex_ratio is not None:
        encoded = count_encoded(measured.texts, measured.index)
        signals["base64_ratio"] = Signal(ratio(encoded[:, 0], characters), everywhere)
        signals["hex_ratio"] = Signal(ratio(encoded[:, 1], characters), everywhere)
    return signals


def share_rules(settings: ShareRules) -> tuple[Rule, ...]:
    """Return the rules in their order."""
    return tuple(
        Rule(name, signal, threshold, is_least=False)
        for name, signal, threshold in (
            ("too_many_caps_words", "caps_word_ratio", settings.max_caps_word_ratio),
            (
                "too_many_special_characters",
                "special_character_ratio",
                settings.max_special_character_ratio,
            ),
            ("too_much_base64", "base64_ratio", settings.max_base64_ratio),
            ("too_much_hex", "hex_ratio", settings.max_hex_ratio),
        )
    )


GROUP = RuleGroup("shares", ("web", "text", "code"), share_signals, share_rules)
