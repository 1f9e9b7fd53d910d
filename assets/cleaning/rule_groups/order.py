"""The groups of rules in their order: cheap ones first."""

from assets.cleaning.rule_groups import (
    bad_words,
    characters,
    code,
    distribution,
    fineweb,
    gopher_quality,
    gopher_repetition,
    paragraphs,
    shares,
)

GROUPS = (
    gopher_quality.GROUP,
    code.GROUP,
    shares.GROUP,
    characters.GROUP,
    fineweb.GROUP,
    paragraphs.GROUP,
    bad_words.GROUP,
    distribution.GROUP,
    gopher_repetition.GROUP,
)
