"""Which rule is the reason, at and beside each threshold."""

from __future__ import annotations

import dataclasses

import pytest

from assets.cleaning.rule_groups.code import code_rules, code_signals
from assets.cleaning.rule_groups.gopher_quality import gopher_rules, gopher_signals
from assets.cleaning.rule_groups.group import Measured
from assets.cleaning.rules import first_failures
from assets.cleaning.text_column import text_array
from assets.settings.cleaning import CodeRules, GopherQualityRules

PROSE = "the cat and dog have that " * 20
GOPHER = GopherQualityRules()


def gopher_reason(text: str, language: str = "en", rules: GopherQualityRules = GOPHER):
    """Return (rule, value, threshold) of the first failure, or None."""
    signals = gopher_signals(Measured(text_array([text]), [language]), rules)
    order = gopher_rules(rules)
    failures = first_failures(signals, order, 1)
    if failures.rules[0] < 0:
        return None
    return order[failures.rules[0]].name, failures.values[0], failures.thresholds[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PROSE, None),
        ("the cats and " * 16 + "dogs yes", None),  # 50 words
        ("the cats and " * 16 + "dogs", ("gopher_short_doc", 49, 50)),
        ("a be " * 40, ("gopher_below_avg_threshold", 1.5, 3)),
        ("the and " + "internationalisation " * 60, ("gopher_above_avg_threshold", 1206 / 62, 10)),
        (PROSE + "#word " * 13, None),
        (PROSE + "#word " * 14, ("gopher_too_many_hashes", 14 / 134, 0.1)),
        (PROSE + "word... " * 14, ("gopher_too_many_ellipsis", 14 / 134, 0.1)),
        ("- the cat and dog have that\n" * 20, ("gopher_too_many_bullets", 1.0, 0.9)),
        ("- the cat and dog have that\n" * 18 + "x\n\n", None),  # 18 of 20: not above 0.9
        (
            ("the cat and the dog have that so many times here\n" * 3 + "to be...\n" * 2) * 4,
            ("gopher_too_many_end_ellipsis", 0.4, 0.3),
        ),
        ("the and cat dog " * 12 + "1234 " * 20, ("gopher_below_alpha_threshold", 48 / 68, 0.8)),
        ("cat dog " * 40, ("gopher_enough_stop_words", 0, 2)),
        ("cat the " * 40, ("gopher_enough_stop_words", 1, 2)),
        ("", ("gopher_short_doc", 0, 50)),
    ],
)
def test_gopher_reasons(text, expected):
    found = gopher_reason(text)
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found[0] == expected[0]
        assert found[1:] == pytest.approx(expected[1:])


def test_long_documents_have_a_greatest_number_of_words():
    rules = dataclasses.replace(GOPHER, max_words=100)
    assert gopher_reason(PROSE, rules=rules) == ("gopher_long_doc", 120, 100)


def test_the_first_rule_of_the_order_is_the_reason():
    # Short, of short words, full of hashes and without stop words.
    assert gopher_reason("# a # b") == ("gopher_short_doc", 2, 50)


def test_stop_words_are_asked_of_english_only():
    assert gopher_reason("cat dog " * 40, "en")[0] == "gopher_enough_stop_words"
    assert gopher_reason("cat dog " * 40, "de") is None


def test_word_rules_are_not_asked_of_languages_without_spaces():
    chinese = "\u8fd9\u662f\u4e00\u4e2a\u4e2d\u6587\u6587\u6863\u3002" * 50
    assert gopher_reason(chinese, "en")[0] == "gopher_short_doc"
    assert gopher_reason(chinese, "zh") is None
    assert gopher_reason(("- " + chinese + "\n") * 10, "zh")[0] == "gopher_too_many_bullets"


def test_rule_names_and_order():
    assert [rule.name for rule in gopher_rules(GOPHER)] == [
        "gopher_short_doc",
        "gopher_long_doc",
        "gopher_below_avg_threshold",
        "gopher_above_avg_threshold",
        "gopher_too_many_hashes",
        "gopher_too_many_ellipsis",
        "gopher_too_many_bullets",
        "gopher_too_many_end_ellipsis",
        "gopher_below_alpha_threshold",
        "gopher_enough_stop_words",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\n" * 10, None),
        ("x" * 1000 + "\n" + "y\n" * 50, None),
        ("x" * 1001 + "\n" + "y\n" * 50, "code_line_too_long"),
        ("x" * 100 + "\n" + "y" * 100 + "\n", None),
        ("x" * 100 + "\n" + "y" * 101 + "\n", "code_lines_too_long_on_average"),
        ("x;;;\n", "code_too_few_alphanumeric"),
        ("x;;", None),
    ],
)
def test_code_reasons(text, expected):
    signals = code_signals(Measured(text_array([text]), [""]), CodeRules())
    order = code_rules(CodeRules())
    failed = first_failures(signals, order, 1).rules[0]
    assert (None if failed < 0 else order[failed].name) == expected


def test_no_texts_no_failures():
    signals = gopher_signals(Measured(text_array([]), []), GOPHER)
    assert len(first_failures(signals, gopher_rules(GOPHER), 0).rules) == 0
