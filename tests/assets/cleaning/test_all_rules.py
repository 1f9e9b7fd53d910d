"""Everything switched on: each document has one verdict of its own, whatever it is."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.cleaning.rule_groups.judged import judged_rules
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.repair import RepairSettings
from assets.settings.rules import (
    C4Rules,
    CharacterRules,
    CodeRules,
    FineWebRules,
    GopherQualityRules,
    GopherRepetitionRules,
    ParagraphRules,
    ShareRules,
    WebLineRules,
)
from assets.settings.sources import SourceSettings
from tests.assets.cleaning.given_documents import HTML, clean
from tests.assets.cleaning.hostile_texts import texts
from tests.assets.cleaning.test_pipeline import ENGLISH, GERMAN, PAGE
from tests.assets.cleaning.test_rule_groups import GOOD, OTHER

EVERYTHING = CleaningSettings(
    repair=RepairSettings(enabled=True, strip_urls=True),
    rules=CleaningRules(
        web_lines=WebLineRules(enabled=True),
        c4=C4Rules(enabled=True, require_end_mark=False),
        gopher_quality=GopherQualityRules(
            min_words=1,
            min_mean_word_length=0.0,
            stop_words="by_language",
            min_stop_words=0,
            word_splitter="signs",
        ),
        code=CodeRules(max_generated_markers=0, max_data_file_characters=9, max_digit_ratio=0.9),
        shares=ShareRules(enabled=True, max_base64_ratio=0.5, max_hex_ratio=0.5),
        fineweb=FineWebRules(enabled=True),
        paragraphs=ParagraphRules(enabled=True, min_third_longest_line=10),
        characters=CharacterRules(enabled=True),
        gopher_repetition=GopherRepetitionRules(enabled=True, counting="all"),
    ),
)
HOSTILE = [
    *("", " ", "\n", "...", "\u2026", "a" * 300_000, "\U0001f600 " * 68, "\x00" * 9, "{" * 5000),
    *("[1" * 5000, "0x" * 5000, "\u200b" * 5000, "\n" * 5000, "\u00c3\u00a9" * 5000, "a b " * 5000),
    *("1f " * 5000, "http://" * 2000, "\u0301" * 5000, "- \u2022\n" * 3000, "\ufeff\u00ad"),
]


@given(
    st.lists(
        st.one_of(texts, st.sampled_from([ENGLISH, GERMAN, PAGE, GOOD, OTHER, GOOD * 2])),
        max_size=5,
    ),
    st.sampled_from(["web", "text", "code", "none"]),
    st.sampled_from([HTML, None]),
)
@hypothesis_settings(deadline=None, max_examples=10)
def test_accounting_and_independence_of_neighbours(given_texts, profile, content_type):
    rows, ledger = clean(
        given_texts, profile=profile, content_type=content_type, cleaning=EVERYTHING
    )
    for text, row, decided in zip(given_texts, rows, ledger, strict=True):
        stays = decided["decision"] in ("kept", "modified")
        assert (row["text"] is not None) == stays
        assert decided["decision"] != "kept" or row["text"] == text
        assert profile in ("web", "text") or row["text"] in (None, text)
        (alone,), _ = clean([text], profile=profile, content_type=content_type, cleaning=EVERYTHING)
        neutral = {"doc_id": None, "row": None}
        assert {**alone, **neutral} == {**row, **neutral}


@pytest.mark.parametrize("profile", ["text", "code"])
def test_hostile_texts_have_a_reason_each(profile):
    rows, ledger = clean(HOSTILE, profile=profile, cleaning=EVERYTHING)
    assert len(rows) == len(HOSTILE)
    known = {rule.name for rule in judged_rules(_source(profile), EVERYTHING)}
    for decided in ledger:
        if decided["decision"] == "dropped":
            assert decided["rule"] in known | {"empty"}


def _source(profile) -> SourceSettings:
    return SourceSettings(name="test", paths=("*",), profile=profile)


def test_kept_documents_have_what_their_rules_measured():
    passing = dataclasses.replace(
        EVERYTHING.rules,
        paragraphs=ParagraphRules(),
        gopher_repetition=GopherRepetitionRules(enabled=True),
    )
    settings = dataclasses.replace(EVERYTHING, rules=passing)
    rows, ledger = clean([GOOD + " \u00a0" + GERMAN[:0]], profile="text", cleaning=settings)
    assert ledger[0]["decision"] == "modified"
    signals = rows[0]["signals"]
    for rule in judged_rules(_source("text"), settings):
        if rule.threshold is not None and rule.is_signal and rule.name != "url_soft_words":
            assert signals[rule.column] is not None, rule.name
