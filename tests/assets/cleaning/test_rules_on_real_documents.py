"""Every rule agrees with its plain definition on the documents of the shared corpora."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import pytest

from assets.cleaning.rule_groups.described import described_rules
from assets.cleaning.terminal_marks import TERMINAL_MARKS
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.rules import (
    BadWordRules,
    C4Rules,
    CharacterRules,
    FineWebRules,
    GopherQualityRules,
    GopherRepetitionRules,
    ParagraphRules,
    ShareRules,
    WebLineRules,
)
from assets.settings.sources import SourceSettings
from assets.sources.formats.read import read_records
from assets.sources.formats.record import Found
from tests.assets.cleaning.given_documents import clean
from tests.assets.cleaning.plain_lines import plain_c4, plain_web_lines
from tests.assets.cleaning.plain_rules import GREATEST, LEAST, first_failure, rule_values
from tests.shared_data import shared_folder

RULES = CleaningRules(
    shares=ShareRules(enabled=True),
    characters=CharacterRules(enabled=True),
    fineweb=FineWebRules(enabled=True),
    paragraphs=ParagraphRules(enabled=True),
    gopher_repetition=GopherRepetitionRules(enabled=True),
)


def measuring(rules: CleaningRules) -> CleaningRules:
    """Return rules of which none drops anything: all values are measured."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(rules):
        group = getattr(rules, field.name)
        names = [
            item.name for item in dataclasses.fields(group) if item.name[:4] in ("min_", "max_")
        ]
        if group.enabled and field.name != "code":
            changed[field.name] = dataclasses.replace(group, **dict.fromkeys(names))
    return dataclasses.replace(rules, **changed)


def documents(every: int, limit: int) -> Iterator[str]:
    """Yield the texts of every so many files, cut to a length."""
    folders = [shared_folder("demo"), shared_folder("awkward")]
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    source = SourceSettings(name="test", paths=("*",))
    for path in files[::every]:
        opened = partial(io.BytesIO, path.read_bytes())
        for record in read_records(opened, source=source, landed_path=path.name):
            if isinstance(record, Found):
                yield record.text[:limit]


@cache
def real_texts(every: int, limit: int) -> tuple[str, ...]:
    """Return such texts as normalised, those that say something."""
    nothing = CleaningSettings(rules=CleaningRules(gopher_quality=OFF))
    rows, _ = clean([*documents(every, limit)], cleaning=nothing)
    return tuple(dict.fromkeys(row["text"] for row in rows if row["text"] is not None))


OFF = GopherQualityRules(enabled=False)
SOME = (9, 20_000)
ALL = (1, 1 << 40)
AMOUNTS = [SOME, pytest.param(ALL, marks=pytest.mark.deep)]


@pytest.mark.parametrize("amount", AMOUNTS, ids=["some", "all"])
@pytest.mark.parametrize("counting", ["careful", "plain"])
def test_values_and_verdicts_are_those_of_the_definitions(amount, counting):
    texts = real_texts(*amount)
    shares = ShareRules(enabled=True, counting=counting)
    rules = dataclasses.replace(RULES, shares=shares)
    measured, _ = clean(texts, profile="text", cleaning=CleaningSettings(rules=measuring(rules)))
    _, ledger = clean(texts, profile="text", cleaning=CleaningSettings(rules=rules))
    reasons = set()
    for text, row, decided in zip(texts, measured, ledger, strict=True):
        assert row["text"] == text
        values = {name: row["signals"][name] for name in GREATEST | LEAST}
        expected = rule_values(text, TERMINAL_MARKS, plain_shares=counting == "plain")
        asked = [name for name, value in values.items() if value is not None]
        assert {name: values[name] for name in asked} == pytest.approx(
            {name: expected[name] for name in asked}, abs=1e-12
        )
        assert set(values) - set(asked) <= NOT_OF_EVERY_LANGUAGE
        assert decided["rule"] == first_failure(expected, asked)
        reasons.add(decided["rule"])
    assert len(reasons) > 8


NOT_OF_EVERY_LANGUAGE = {
    "num_words", "mean_word_length", "hash_ratio", "ellipsis_ratio", "alpha_word_ratio",
    "num_stop_words", "caps_word_ratio", "newline_word_ratio",
    *(name for name in GREATEST if "gram" in name),
}  # fmt: skip
"""Words are not asked where they have no spaces between them, stop words of English alone."""


@pytest.mark.parametrize("amount", AMOUNTS, ids=["some", "all"])
@pytest.mark.parametrize("require_end_mark", [True, False])
def test_line_rules_leave_what_their_definitions_leave(amount, require_end_mark):
    c4 = C4Rules(enabled=True, require_end_mark=require_end_mark)
    lines = WebLineRules(enabled=True)
    rules = CleaningRules(gopher_quality=OFF, c4=c4, web_lines=lines)
    texts = real_texts(*amount)
    rows, ledger = clean(texts, profile="text", cleaning=CleaningSettings(rules=rules))
    for text, row, decided in zip(texts, rows, ledger, strict=True):
        left, counts = plain_web_lines(text, lines)
        removed = counts["removed_words"] / max(counts["words"], 1)
        if removed > 0.05:
            assert decided["rule"] == "too_many_removed_words"
            assert decided["value"] == pytest.approx(removed)
            continue
        if not left.strip():
            assert decided["rule"] == "empty"
            continue
        left, counts = plain_c4(left, c4)
        if counts["lorem_ipsum_lines"]:
            assert decided["rule"] == "c4_lorem_ipsum"
        elif counts["curly_bracket_lines"]:
            assert decided["rule"] == "c4_curly_bracket"
        elif counts["sentences"] < 5:
            assert decided["rule"] == "c4_too_few_sentences"
            assert decided["value"] == counts["sentences"]
        else:
            assert row["text"] == left


def test_every_rule_is_described():
    everything = dataclasses.replace(
        RULES,
        web_lines=WebLineRules(enabled=True),
        c4=C4Rules(enabled=True),
        bad_words=BadWordRules(enabled=True, files={"en": "none.txt"}),
    )
    for profile in ("web", "text", "code", "none"):
        source = SourceSettings(name="a", paths=("*",), profile=profile, languages=("en",))
        rules = [*described_rules(source, CleaningSettings(rules=everything))]
        assert len({rule.rule for rule in rules}) == len(rules) > 1
        for rule in rules:
            assert rule.definition
            assert rule.group or rule.rule == "empty"
            assert rule.is_on or rule.threshold is None or rule.value is None
            if rule.group in ("gopher_quality", "gopher_repetition", "shares", "c4"):
                assert rule.word_splitter
                assert rule.counting
