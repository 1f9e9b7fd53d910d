"""C4's and RefinedWeb's line rules in plain Python: what the kernels must agree with."""

from __future__ import annotations

import re

from assets.cleaning.c4_lines import COUNTS as C4_COUNTS, POLICY_PHRASES
from assets.cleaning.terminal_marks import TERMINAL_MARKS
from assets.cleaning.web_lines import COUNTED, COUNTS as WEB_COUNTS
from assets.settings.rules import C4Rules, WebLineRules

_CITATION = re.compile(r"\[[0-9]*\]|\[edit\]|\[citation needed\]")
_ASCII_MARKS = "".join(mark for mark in TERMINAL_MARKS if mark.isascii())
_OTHER_MARKS = "".join(mark for mark in TERMINAL_MARKS if not mark.isascii())
_SENTENCE_END = re.compile(
    f"[{re.escape(_ASCII_MARKS)}][\"')\\]\u00bb\u2019\u201d{_ASCII_MARKS}]*$"
)


def ascii_lower(text: str) -> str:
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def plain_sentences(text: str) -> int:
    count = 0
    for word in text.split():
        pieces = re.split(f"(?<=[{_OTHER_MARKS}])", word)
        ends = len(pieces) - 1 + bool(_SENTENCE_END.search(pieces[-1]))
        count += ends
    last = text.rsplit(maxsplit=1)[-1] if text.split() else ""
    piece = re.split(f"[{_OTHER_MARKS}]", last)[-1]
    return count + bool(piece and not _SENTENCE_END.search(piece))


def plain_c4(text: str, rules: C4Rules) -> tuple[str, dict[str, int]]:
    """Return what `keep_c4_lines` returns for one text."""
    counts = dict.fromkeys(C4_COUNTS, 0)
    kept = []
    for given in text.splitlines():
        line = given.strip()
        words = line.split()
        if any(len(word) > rules.max_word_length for word in words):
            counts["c4_long_word"] += 1
            continue
        citations = 0
        if rules.remove_citations:
            line, citations = _CITATION.subn("", line)
        ends_well = line.endswith((".", "?", "!", '"', "'")) and not line.endswith("...")
        if rules.require_end_mark and not ends_well:
            counts["c4_no_end_mark"] += bool(words)
            continue
        if len(words) < rules.min_words_per_line:
            counts["c4_few_words"] += bool(words)
            continue
        lowered = ascii_lower(line)
        counts["lorem_ipsum_lines"] += "lorem ipsum" in lowered
        if rules.drop_javascript and "javascript" in lowered:
            counts["c4_javascript"] += 1
            continue
        counts["curly_bracket_lines"] += "{" in line
        if rules.drop_policy and any(phrase in lowered for phrase in POLICY_PHRASES):
            counts["c4_policy"] += 1
            continue
        counts["c4_citations"] += citations
        counts["sentences"] += plain_sentences(line)
        kept.append(line)
    return "\n".join(kept).strip(), counts


_COUNTER = re.compile(rf"\W*[0-9][0-9.,]*[kmb]?\s+(?:{'|'.join(COUNTED)})\W*", re.DOTALL)


def _reason(line: str, rules: WebLineRules) -> str | None:
    if not line:
        return None
    words, lowered = line.split(), ascii_lower(line)
    if sum(map(str.isupper, line)) / len(line) > rules.max_uppercase_ratio:
        return "line_uppercase"
    if sum(map(str.isdigit, line)) / len(line) > rules.max_digit_ratio:
        return "line_numeric"
    if rules.drop_counters and _COUNTER.fullmatch(lowered):
        return "line_counter"
    if len(words) < rules.min_words:
        return "line_short"
    found = (
        any(map(lowered.startswith, rules.start_phrases))
        or any(map(lowered.endswith, rules.end_phrases))
        or any(phrase in lowered for phrase in rules.phrases)
    )
    return "line_phrase" if found and len(words) <= rules.phrase_words else None


def plain_web_lines(text: str, rules: WebLineRules) -> tuple[str, dict[str, int]]:
    """Return what `drop_web_lines` returns for one text."""
    counts = dict.fromkeys(WEB_COUNTS, 0)
    kept = []
    for line in text.split("\n"):
        words = len(line.split())
        counts["words"] += words
        reason = _reason(line, rules)
        if reason is None:
            kept.append(line)
        else:
            counts[reason] += 1
            counts["removed_words"] += words
    lost = any(counts[name] for name in WEB_COUNTS[:5])
    return ("\n".join(kept).strip() if lost else text), counts
