"""Line rules: literals, agreement with plain Python, and what the pipeline makes of them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from assets.cleaning.c4_lines import COUNTS as C4_COUNTS, keep_c4_lines
from assets.cleaning.text_column import text_array
from assets.cleaning.web_lines import COUNTS as WEB_COUNTS, drop_web_lines
from assets.errors import ConfigurationError
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.rules import C4Rules, WebLineRules
from tests.assets.cleaning.given_documents import clean
from tests.assets.cleaning.hostile_texts import texts
from tests.assets.cleaning.plain_lines import plain_c4, plain_web_lines
from tests.assets.cleaning.test_pipeline import ENGLISH
from tests.shared_data import shared_folder

C4 = C4Rules(enabled=True)
WEB = WebLineRules(enabled=True)
PIECES = [
    *("the", " ", " ", "\n", "\n", ".", "!", '"', "...", "[1]", "[", "]", "[edit]", "[Edit]", "[]"),
    *(
        "[citation needed]",
        "lorem ipsum",
        "Lorem Ipsum",
        "JavaScript",
        "{",
        "Use Cookies",
        "x" * 12,
    ),
    *(
        "\u3002",
        "\u2019",
        ")",
        "\r\n",
        "\u2028",
        "\x85",
        "\x1c",
        "3",
        "1.2K likes",
        "12 Views!",
        "ABC",
    ),
    *("_", "Sign-in ", " read more...", "items in cart", "\u00c9\u00c9", "\u0663", "\u00a0"),
]
lined = st.one_of(st.lists(st.sampled_from(PIECES), max_size=40).map("".join), texts)
c4_rules = st.builds(
    C4Rules,
    max_word_length=st.sampled_from([10, 1000]),
    remove_citations=st.booleans(),
    require_end_mark=st.booleans(),
    min_words_per_line=st.integers(0, 3),
    drop_javascript=st.booleans(),
    drop_policy=st.booleans(),
)


@given(st.lists(lined, max_size=4), c4_rules)
def test_c4_agrees_with_plain_python(given_texts, rules):
    found, counts = keep_c4_lines(text_array(given_texts), rules)
    found.validate(full=True)
    for text, result, row in zip(given_texts, found.to_pylist(), counts.tolist(), strict=True):
        assert (result, dict(zip(C4_COUNTS, row, strict=True))) == plain_c4(text, rules)


@given(st.lists(lined, max_size=4), st.integers(0, 3), st.booleans())
def test_web_lines_agree_with_plain_python(given_texts, min_words, drop_counters):
    rules = WebLineRules(min_words=min_words, drop_counters=drop_counters)
    found, counts = drop_web_lines(text_array(given_texts), rules)
    found.validate(full=True)
    for text, result, row in zip(given_texts, found.to_pylist(), counts.tolist(), strict=True):
        assert (result, dict(zip(WEB_COUNTS, row, strict=True))) == plain_web_lines(text, rules)


def test_real_texts_agree_with_plain_python():
    folder = shared_folder("demo")
    paths = sorted(folder.glob("docs/**/*.rst"))[:40] + sorted(folder.glob("wiki/*.txt"))[:2]
    real = [path.read_bytes().decode("utf-8", "replace")[:30_000] for path in paths]
    column = text_array(real)
    lenient = dataclasses.replace(C4, require_end_mark=False)
    for rules in (C4, lenient):
        found, counts = keep_c4_lines(column, rules)
        for text, result, row in zip(real, found.to_pylist(), counts.tolist(), strict=True):
            assert (result, dict(zip(C4_COUNTS, row, strict=True))) == plain_c4(text, rules)
    found, counts = drop_web_lines(column, WEB)
    for text, result, row in zip(real, found.to_pylist(), counts.tolist(), strict=True):
        assert (result, dict(zip(WEB_COUNTS, row, strict=True))) == plain_web_lines(text, WEB)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", 4),
        ('He said "Go." Then he left.', 2),
        ("Pi is 3.14 today.", 1),
        ("(It rains.) It stops.", 2),
        ("\u4eca\u5929\u5f88\u597d\u3002\u660e\u5929\u4e5f\u597d\u3002", 2),
        ("Wait... what?!", 2),
        ("- - no end", 1),
    ],
)
def test_sentences(text, sentences):
    rules = C4Rules(require_end_mark=False, min_words_per_line=0)
    _, counts = keep_c4_lines(text_array([text]), rules)
    assert counts[0, C4_COUNTS.index("sentences")] == sentences


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("READ THIS now", "line_uppercase"),
        ("20240101", "line_numeric"),
        ("1.2k Likes", "line_counter"),
        ("* 12,000 views *", "line_counter"),
        ("12 views of Rome", None),
        ("Home", "line_short"),
        ("Sign-in to comment", "line_phrase"),
        ("All the news, read more...", "line_phrase"),
        ("There are 3 items in cart now", "line_phrase"),
        ("There are 3 items in cart now and many more that you can buy today", None),
        ("", None),
        ("A plain line.", None),
    ],
)
def test_web_line_reasons(line, reason):
    _, counts = drop_web_lines(text_array([line]), WEB)
    found = [name for name, count in zip(WEB_COUNTS[:5], counts[0], strict=False) if count]
    assert found == ([reason] if reason else [])


def cleaned(text, **groups):
    rules = dataclasses.replace(CleaningRules(), **groups)
    rows, ledger = clean([text], cleaning=CleaningSettings(rules=rules))
    return rows[0], ledger[0]


def test_c4_rewrites_a_document_and_says_how():
    sentences = ENGLISH.replace(". ", ".\n")
    text = (
        "Menu\n" + sentences + "\nWe use cookies on this site.[1]\nIt is fine.[1]\nThe end is near."
    )
    row, decided = cleaned(text, c4=C4)
    assert row["text"] == sentences + "\nIt is fine.\nThe end is near."
    assert (decided["decision"], decided["rule"]) == ("modified", "c4")
    assert json.loads(decided["detail"]) == {"c4_citations": 1, "c4_no_end_mark": 1, "c4_policy": 1}
    assert row["signals"]["num_sentences"] == 5
    assert row["signals"]["lorem_ipsum_lines"] == row["signals"]["curly_bracket_lines"] == 0


@pytest.mark.parametrize(
    ("more", "rule", "value"),
    [
        ("\nThis is lorem ipsum dolor.", "c4_lorem_ipsum", 1),
        ("\nif x { y } is code.", "c4_curly_bracket", 1),
        ("", "c4_too_few_sentences", 3),
    ],
)
def test_c4_drops_documents(more, rule, value):
    row, decided = cleaned(ENGLISH + more, c4=C4)
    assert (decided["decision"], decided["rule"], decided["value"]) == ("dropped", rule, value)
    assert row["text"] is None
    assert row["signals"]["num_sentences"] == 3 + bool(more)


def test_a_page_of_menus_loses_too_much():
    row, decided = cleaned("HOME\n" + ENGLISH, web_lines=WEB)
    assert row["text"] == ENGLISH
    assert json.loads(decided["detail"]) == {"line_uppercase": 1}
    assert row["signals"]["removed_word_ratio"] == pytest.approx(1 / (len(ENGLISH.split()) + 1))
    row, decided = cleaned("Home\nNews\nSport\nWeather\n" + ENGLISH, web_lines=WEB)
    assert (decided["rule"], decided["threshold"]) == ("too_many_removed_words", 0.05)


def test_nothing_left_is_empty():
    every = dataclasses.replace(WEB, max_removed_word_ratio=None, min_words=100)
    assert cleaned(ENGLISH, web_lines=every)[1]["rule"] == "empty"


def test_hostile_lines_take_linear_time():
    size = 200_000
    given_texts = ["[" * size, "[1" * size, "\n" * size, "1," * size, "lorem ipsu " * size]
    keep_c4_lines(text_array(given_texts), C4Rules(require_end_mark=False))
    drop_web_lines(text_array(given_texts), WEB)


def test_phrases_are_checked():
    with pytest.raises(ConfigurationError, match="ASCII"):
        WebLineRules(phrases=("caf\u00e9",))
    assert np.all(keep_c4_lines(text_array([]), C4)[1] == 0)
