"""The groups of rules in their order: cheap ones first."""

from assets.cleaning.rule_groups import (
    code,
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
    fineweb.GROUP,
    paragraphs.GROUP,
    gopher_repetition.GROUP,
)
