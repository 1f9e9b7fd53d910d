"""Groups of rules in the pipeline: off at first, each with its reason, values stored."""

from __future__ import annotations

import dataclasses

import pytest

from assets.cleaning.rule_groups.group import LANGUAGES_WITHOUT_SPACES
from assets.cleaning.rule_groups.order import GROUPS
from assets.cleaning.signals import STOP_WORDS
from assets.document import SIGNALS
from assets.errors import ConfigurationError
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.rules import (
    C4Rules,
    CharacterRules,
    FineWebRules,
    GopherQualityRules,
    GopherRepetitionRules,
    ParagraphRules,
    ShareRules,
    rules_identity,
)
from tests.assets.cleaning.given_documents import clean
from tests.assets.cleaning.test_pipeline import ENGLISH

ALL = CleaningRules(
    characters=CharacterRules(enabled=True),
    shares=ShareRules(enabled=True, max_base64_ratio=0.5, max_hex_ratio=0.5),
    fineweb=FineWebRules(enabled=True),
    paragraphs=ParagraphRules(enabled=True),
    gopher_repetition=GopherRepetitionRules(enabled=True),
)
OTHER = (
    "A town by the river has a market on every day but Sunday, and farmers of that valley come to"
    " sell what they have grown. It is older than the church, whose tower can be seen from afar."
    " Visitors with children like the boats, which are let by the hour at the old wooden bridge."
)
THIRD = (
    "In the autumn the school of the district opens its doors to parents, who have questions about"
    " what is taught and how. Teachers show the rooms, the garden with its bees, and a library that"
    " was given by a printer. Tea will be served, and the choir is going to sing at noon."
)
GOOD = f"{ENGLISH}\n{OTHER}\n{THIRD}"


def reasons(texts, **groups):
    rules = dataclasses.replace(CleaningRules(), **groups)
    rows, ledger = clean(texts, languages=("any",), cleaning=CleaningSettings(rules=rules))
    return [row["rule"] for row in ledger], [row["signals"] for row in rows]


def test_a_good_text_passes_every_rule_and_has_every_value():
    rows, ledger = clean([GOOD], cleaning=CleaningSettings(rules=ALL))
    assert ledger[0]["decision"] == "kept"
    measured = {name for name, value in rows[0]["signals"].items() if value is not None}
    asked = {
        rule.signal
        for group in GROUPS
        if "text" in group.profiles and getattr(ALL, group.name).enabled
        for rule in group.rules(getattr(ALL, group.name))
    }
    assert measured == asked
    assert asked < {field.name for field in SIGNALS}


@pytest.mark.parametrize(
    ("text", "groups", "reason"),
    [
        (GOOD.upper(), {"shares": ALL.shares}, "too_many_caps_words"),
        (
            GOOD.replace(" and ", " and" + "=" * 40 + " "),
            {"shares": ALL.shares},
            "too_many_special_characters",
        ),
        (GOOD.replace(".", ""), {"fineweb": ALL.fineweb}, "fineweb_line_punct_ratio"),
        (GOOD.replace(", ", ".\n"), {"fineweb": ALL.fineweb}, None),
        (
            GOOD + "\n" + "Read on.\nShare it.\n" * 8,
            {"fineweb": ALL.fineweb},
            "fineweb_short_line_ratio",
        ),
        (GOOD + "\n" + OTHER, {"fineweb": ALL.fineweb}, "fineweb_char_dup_ratio"),
        (GOOD.replace("the ", "the\n\n\n"), {"fineweb": ALL.fineweb}, "fineweb_list_ratio"),
        (
            ENGLISH + "\n" + OTHER + "\nShort.",
            {"paragraphs": ALL.paragraphs},
            "mc4_short_paragraphs",
        ),
        ((OTHER + "\n\n") * 3, {"gopher_repetition": ALL.gopher_repetition}, "dup_para_frac"),
        ((OTHER + "\n") * 3, {"gopher_repetition": ALL.gopher_repetition}, "dup_line_frac"),
        (
            GOOD + " " + OTHER,
            {"gopher_repetition": ALL.gopher_repetition},
            "duplicated_5_n_grams",
        ),
        (
            GOOD.replace("the", "of the river of the").replace("and", "of the river"),
            {"gopher_repetition": ALL.gopher_repetition},
            "top_2_gram",
        ),
    ],
)
def test_reasons(text, groups, reason):
    assert reasons([text])[0] == [None], "passes what is on by default"
    found, signals = reasons([text], **groups)
    assert found == [reason]
    assert signals[0] is not None


def test_what_a_cheaper_rule_ended_was_not_measured():
    found, signals = reasons(
        [GOOD.replace(".", ""), GOOD],
        fineweb=ALL.fineweb,
        gopher_repetition=ALL.gopher_repetition,
    )
    assert found == ["fineweb_line_punct_ratio", None]
    assert signals[0]["short_line_ratio"] is not None
    assert signals[0]["top_2gram_ratio"] is None
    assert signals[1]["top_2gram_ratio"] is not None


def test_a_rule_of_a_group_can_be_switched_off():
    off = FineWebRules(enabled=True, min_terminal_line_ratio=None)
    found, signals = reasons([GOOD.replace(".", "")], fineweb=off)
    assert found == [None]
    assert signals[0]["terminal_line_ratio"] == 0.0


def test_the_counting_mode_changes_the_values():
    text = GOOD + "\n" + OTHER
    lenient = dataclasses.replace(
        ALL.gopher_repetition, counting="all", max_duplicate_line_ratio=0.4
    )
    assert reasons([text], gopher_repetition=ALL.gopher_repetition)[0] == ["dup_line_char_frac"]
    found, signals = reasons([text], gopher_repetition=lenient)
    assert found == ["dup_line_frac"]
    assert signals[0]["duplicate_line_ratio"] == 0.5


def test_word_rules_are_not_asked_of_languages_without_spaces():
    chinese = "\u6211\u4eec\u4eca\u5929\u53bb\u5e02\u573a\u4e70\u82f9\u679c\u548c\u9999\u8549\u3002"
    text = "".join(chinese[n:] + chinese[:n] + "\n" for n in range(len(chinese)))
    rows, _ = clean([text], cleaning=CleaningSettings(rules=ALL))
    assert rows[0]["language"] in LANGUAGES_WITHOUT_SPACES
    signals = rows[0]["signals"]
    assert signals["newline_word_ratio"] is signals["caps_word_ratio"] is None


def test_a_group_that_is_off_leaves_fingerprints_alone():
    assert rules_identity(FineWebRules()) is None
    on = rules_identity(FineWebRules(enabled=True))
    assert on is not None
    assert on["short_line_length"] == 30


def test_ratios_are_checked():
    with pytest.raises(ConfigurationError, match=r"max_top_2gram_ratio: 2 is outside \[0, 1\]"):
        GopherRepetitionRules(max_top_2gram_ratio=2)
    with pytest.raises(ConfigurationError, match="word_splitter: 'spacy' is not in this version"):
        C4Rules(word_splitter="spacy")


def test_the_word_splitter_and_the_stop_word_counting_change_values():
    def quality(**settings):
        rules = GopherQualityRules(**settings)
        return reasons([ENGLISH], gopher_quality=rules)[1][0]

    plain, signs = quality(), quality(word_splitter="signs")
    assert signs["mean_word_length"] < plain["mean_word_length"]
    assert signs["alpha_word_ratio"] < plain["alpha_word_ratio"] == 1.0
    often = quality(stop_word_counting="occurrences")
    expected = sum(word in STOP_WORDS for word in ENGLISH.split())
    assert often["num_stop_words"] == expected > plain["num_stop_words"] == 8
