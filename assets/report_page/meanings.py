"""What the rules of every stage mean, in a sentence, for the page and the prompt."""

from __future__ import annotations

from assets.cleaning.rule_groups.definitions import DEFINITIONS
from assets.sources.formats.record import RULES

_OTHERS = {
    "no_main_text": "a page whose extraction leaves nothing",
    "exact_duplicate": "the same text as a document that is kept",
    "near_duplicate": "shingles as similar to those of a kept document as the threshold",
    "url_duplicate": "the url of a document that is kept",
    "empty_after_dedup": "nothing is left once repeated pieces are cut out",
    "exact_in_external": "the same text as in the set that it is compared with",
    "near_in_external": "nearly the same text as in the set that it is compared with",
    "contaminated": "holds an item of an evaluation set",
    "changed_since_landing": "the file is another one than the one that landed",
    "too_many_tokens": "more tokens than a document may have",
    "unbroken_run": "a run without a break that is too long to encode",
    "extracted": "a page was replaced by its main text",
    "normalised": "line endings, control characters or white space at line ends",
    "repaired": "mojibake, invisible characters, spaces or Unicode form",
    "pii_masked": "personal data was masked",
    "web_lines": "boilerplate lines were taken out",
    "c4": "lines that are no sentences were taken out",
    "paragraphs_dropped": "paragraphs in other languages were taken out",
    "split": "a long document became several",
}


def meaning_of(rule: str) -> str:
    """Return the sentence of a rule; empty for one that has none."""
    if rule in DEFINITIONS:
        return DEFINITIONS[rule]
    return RULES[rule].meaning if rule in RULES else _OTHERS.get(rule, "")
