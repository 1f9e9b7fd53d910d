"""Every document leaves with one row and one reason, whatever it was."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, strategies as st

from assets.cleaning.pipeline import clean_table
from assets.document import count_decisions
from assets.settings.cleaning import (
    CleaningRules,
    CleaningSettings,
    CodeRules,
    GopherQualityRules,
)
from assets.settings.extraction import PageLimits
from assets.settings.sources import SourceSettings
from tests.assets.cleaning.given_documents import HTML, clean, documents_of
from tests.assets.cleaning.hostile_texts import texts

ENGLISH = (
    "The weather in the north of the country will be cold and wet this week, with some snow on the"
    " hills. People who have to travel should leave early and take care of the roads, which are"
    " narrow and that will be full of ice in the morning. It is going to be warmer in the south."
)
GERMAN = (
    "Das Wetter im Norden des Landes bleibt in dieser Woche kalt und nass, auf den Bergen liegt"
    " noch Schnee. Wer fahren muss, sollte fr\u00fch aufbrechen und vorsichtig fahren, denn die"
    " Stra\u00dfen sind schmal und am Morgen oft vereist. Im S\u00fcden wird es dagegen w\u00e4rmer"
    " und trocken, und am Wochenende scheint dort sogar die Sonne \u00fcber den T\u00e4lern."
)
PAGE = f"<html><body><nav><a href=/>Home</a></nav><article><p>{ENGLISH}</p></article></body></html>"


def test_kept_and_modified():
    rows, ledger = clean([ENGLISH, ENGLISH + " \r\n", GERMAN])
    assert [row["text"] for row in rows] == [ENGLISH, ENGLISH + "\n", GERMAN]
    assert [(row["decision"], row["rule"]) for row in ledger] == [
        ("kept", None),
        ("modified", "normalised"),
        ("kept", None),
    ]
    assert json.loads(ledger[1]["detail"]) == {"line_endings": 1, "trailing": 1}
    assert [row["language"] for row in rows] == ["en", "en", "de"]
    assert rows[0]["text_hash"] == hashlib.sha256(ENGLISH.encode()).digest()
    assert rows[0]["num_words"] == len(ENGLISH.split())
    signals = rows[0]["signals"]
    assert signals["num_words"] == len(ENGLISH.split())
    assert signals["num_stop_words"] == 8
    assert signals["longest_line"] is signals["quality"] is None
    assert rows[2]["signals"]["num_stop_words"] is None
    assert rows[0]["metadata"] == '{"n": 1}'


@pytest.mark.parametrize("profile", ["web", "text", "code", "none"])
def test_empty_texts(profile):
    empty = ["", " ", "\n", "...", "\u2026", "\u00a0\u200b", "\x00"]
    rows, ledger = clean(empty, profile=profile)
    assert {(row["decision"], row["rule"]) for row in ledger} == {("dropped", "empty")}
    for row in rows:
        assert row["text"] is row["text_hash"] is row["language"] is row["signals"] is None
        assert row["num_words"] is None


def test_languages_that_are_wanted():
    given_texts = [ENGLISH, GERMAN, "a" * 300_000]
    rows, ledger = clean(given_texts, languages=("en",))
    assert [row["rule"] for row in ledger] == [None, "language", "language_score"]
    assert json.loads(ledger[1]["detail"]) == {"language": "de"}
    assert ledger[1]["value"] == rows[1]["language_score"] > 0.65
    assert ledger[2]["value"] < ledger[2]["threshold"] == 0.65
    assert rows[1]["signals"] is None


def test_any_language_drops_none_for_it():
    rows, ledger = clean([ENGLISH, GERMAN, "a" * 300_000])
    assert [row["language"] for row in rows] == ["en", "de", "und"]
    assert [row["rule"] for row in ledger] == [None, None, "gopher_short_doc"]
    assert ledger[2]["value"] == 1
    assert ledger[2]["threshold"] == 50


def test_the_language_threshold_is_a_setting():
    strict = CleaningSettings(language_threshold=1.0)
    assert clean([ENGLISH], languages=("en",), cleaning=strict)[1][0]["rule"] == "language_score"


def test_pages_are_extracted_by_the_web_profile_only():
    rows, ledger = clean([PAGE], profile="web", content_type=HTML)
    assert rows[0]["text"] == ENGLISH
    assert (ledger[0]["decision"], ledger[0]["rule"]) == ("modified", "extracted")
    rows, ledger = clean([PAGE], profile="none", content_type=HTML)
    assert rows[0]["text"] == PAGE
    rows, ledger = clean([ENGLISH], profile="web", content_type="text/plain")
    assert (rows[0]["text"], ledger[0]["decision"]) == (ENGLISH, "kept")


def test_pages_that_are_refused():
    pages = [PAGE, "<p></p>", "<div>" * 400 + "x", "<br>" * 300, PAGE + "x" * 3000]
    limits = PageLimits(max_bytes=2500, max_depth=100, max_nodes=250)
    rows, ledger = clean(
        pages, profile="web", content_type=HTML, cleaning=CleaningSettings(page_limits=limits)
    )
    assert [(row["decision"], row["rule"], row["threshold"]) for row in ledger] == [
        ("modified", "extracted", None),
        ("dropped", "no_main_text", None),
        ("quarantined", "page_too_deep", 100),
        ("quarantined", "page_too_many_nodes", 250),
        ("quarantined", "page_too_large", 2500),
    ]
    assert [row["text"] is None for row in rows] == [False, True, True, True, True]


def test_code_is_not_touched():
    source = "\ufeffdef f(x):  \r\n\treturn x\x0c\r\n"
    rows, ledger = clean([source, "x" * 2000, "{};;x\n" * 20], profile="code")
    assert rows[0]["text"] == source
    assert [row["rule"] for row in ledger] == [
        None,
        "code_line_too_long",
        "code_too_few_alphanumeric",
    ]
    assert rows[0]["signals"]["longest_line"] == 13
    assert rows[0]["signals"]["num_words"] is None
    assert rows[1]["signals"]["longest_line"] == 2000
    assert rows[0]["language"] is None


def test_rules_can_be_switched_off():
    rules = CleaningRules(
        gopher_quality=GopherQualityRules(enabled=False), code=CodeRules(enabled=False)
    )
    settings = CleaningSettings(rules=rules)
    for profile in ("text", "code"):
        rows, ledger = clean(["short text"], profile=profile, cleaning=settings)
        assert ledger[0]["decision"] == "kept"
        assert rows[0]["signals"] is None
        assert rows[0]["num_words"] == 2


def test_no_documents():
    assert clean([], profile="web") == ([], [])


@given(
    st.lists(st.one_of(texts, st.just(ENGLISH), st.just(PAGE)), max_size=6),
    st.sampled_from(["web", "text", "code", "none"]),
    st.sampled_from([HTML, None]),
    st.sampled_from([("any",), ("en",)]),
)
def test_accounting_and_independence_of_neighbours(given_texts, profile, content_type, languages):
    rows, ledger = clean(
        given_texts, profile=profile, content_type=content_type, languages=languages
    )
    for text, row, decided in zip(given_texts, rows, ledger, strict=True):
        stays = decided["decision"] in ("kept", "modified")
        assert (row["text"] is not None) == stays
        assert (decided["rule"] is None) == (decided["decision"] == "kept")
        if decided["decision"] == "kept":
            assert row["text"] == text
        if stays:
            assert row["text_hash"] == hashlib.sha256(row["text"].encode()).digest()
        alone = clean([text], profile=profile, content_type=content_type, languages=languages)
        assert {**alone[0][0], "doc_id": None, "row": None} == {**row, "doc_id": None, "row": None}


def test_twice_gives_the_same_bytes():
    documents = documents_of([ENGLISH, GERMAN, "", "\x00x " * 60])
    source = SourceSettings(name="test", paths=("*",), profile="text")
    first = clean_table(documents, source=source, cleaning=CleaningSettings())
    second = clean_table(documents, source=source, cleaning=CleaningSettings())
    assert first[0].equals(second[0])
    assert first[1].equals(second[1])
    counts = count_decisions(first[1])
    assert counts["in"] == 4
