"""Stop words by language, ranges of characters, and the further rules about code."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from assets.cleaning.bad_words import has_bad_words, read_pattern
from assets.cleaning.character_ranges import count_outside
from assets.cleaning.phrases import count_markers
from assets.cleaning.pipeline import clean_table, pipeline_identity
from assets.cleaning.signals import split_texts
from assets.cleaning.stop_words import BUNDLED, count_stop_words, words_of
from assets.cleaning.strip_urls import strip_urls
from assets.cleaning.text_column import text_array
from assets.errors import ConfigurationError
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.rules import BadWordRules, CharacterRules, CodeRules, GopherQualityRules
from assets.settings.sources import SourceSettings
from tests.assets.cleaning.given_documents import clean, documents_of
from tests.assets.cleaning.hostile_texts import texts
from tests.assets.cleaning.test_pipeline import ENGLISH, GERMAN

BY_LANGUAGE = GopherQualityRules(stop_words="by_language")
STOPS = ["der", "die", "und", "le", "la", "Und\n", "the", "of"]
words_and_labels = st.tuples(
    st.one_of(
        texts,
        st.lists(st.sampled_from(["der", "die", "und", "le", "la", "Und\n", "the", "of"])).map(
            " ".join
        ),
    ),
    st.sampled_from(["de", "fr", "en", "xx", ""]),
)


@given(st.lists(words_and_labels, max_size=6))
def test_stop_words_agree_with_plain_python(given_pairs):
    words = words_of({})
    given_texts = [text for text, _ in given_pairs]
    labels = np.array([label for _, label in given_pairs], np.str_)
    split = split_texts(text_array(given_texts))
    found = count_stop_words(split, np.arange(len(given_texts)), labels, words)
    assert found.tolist() == [
        len(set(text.split()) & set(words.get(label, ()))) for text, label in given_pairs
    ]


def quality(texts_, rules):
    return clean(texts_, cleaning=CleaningSettings(rules=CleaningRules(gopher_quality=rules)))


def test_stop_words_of_other_languages():
    listed = set(BUNDLED["de"].split())
    nouns = " ".join(word for word in GERMAN.split() if word not in listed) + "\n"
    nouns += nouns.replace("Wetter", "Klima")
    rows, ledger = quality([GERMAN, nouns, ENGLISH], BY_LANGUAGE)
    assert [row["rule"] for row in ledger] == [None, "gopher_enough_stop_words", None]
    assert rows[0]["signals"]["num_stop_words"] >= 5
    assert rows[2]["signals"]["num_stop_words"] == 8
    assert quality([nouns], GopherQualityRules())[1][0]["rule"] is None


def test_a_users_own_stop_words(tmp_path):
    (tmp_path / "de.txt").write_text("Wolkenbruch Hagel", encoding="utf-8")
    own = dataclasses.replace(BY_LANGUAGE, stop_word_files={"de": str(tmp_path / "de.txt")})
    _, ledger = quality([GERMAN, ENGLISH], own)
    assert [row["rule"] for row in ledger] == ["gopher_enough_stop_words", None]
    source = SourceSettings(name="a", paths=("*",), profile="text")

    def identity():
        rules = CleaningRules(gopher_quality=own)
        return pipeline_identity(source, CleaningSettings(rules=rules))["rules"]

    assert len(identity()["stop_word_files"]["de"]) == 64
    neutral = pipeline_identity(source, CleaningSettings())["rules"]
    assert not {"stop_words", "stop_word_files"} & set(neutral)
    (tmp_path / "bad.txt").write_text(" ")
    with pytest.raises(ConfigurationError, match="0 stop words; 1 to 63 are expected"):
        words_of({"de": str(tmp_path / "bad.txt")})
    with pytest.raises(ConfigurationError, match="set stop_words to by_language"):
        GopherQualityRules(stop_word_files={"de": "x"})


def test_bundled_lists_are_sound():
    for language, text in BUNDLED.items():
        listed = text.split()
        assert len(listed) == len(set(listed)) >= 8, language


@given(st.lists(texts, max_size=5))
def test_ranges_agree_with_plain_python(given_texts):
    ranges = ((0x41, 0x5A), (0x4E00, 0x9FFF))
    found = count_outside(text_array(given_texts), np.arange(len(given_texts)), ranges)
    assert found.tolist() == [
        sum(
            not (c.isspace() or any(first <= ord(c) <= last for first, last in ranges))
            for c in text
        )
        for text in given_texts
    ]


def test_a_text_in_other_letters_is_dropped():
    rules = CleaningRules(characters=CharacterRules(enabled=True))
    russian = ENGLISH + " \u0410\u0431\u0432\u0433\u0434" * 20
    rows, ledger = clean([ENGLISH, russian], cleaning=CleaningSettings(rules=rules))
    assert [row["rule"] for row in ledger] == [None, "too_many_characters_outside"]
    assert rows[0]["signals"]["outside_range_ratio"] == 0
    for ranges, message in (
        (("x",), "'x' is not like"),
        (("2-1",), "empty or beyond"),
        ((), "one"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            CharacterRules(ranges=ranges)


CODE = CodeRules(max_generated_markers=0, max_data_file_characters=100, max_digit_ratio=0.3)


@pytest.mark.parametrize(
    ("text", "path", "rule"),
    [
        ("x = value\n" * 20, "a.py", None),
        ("# This file is AUTOMATICALLY generated.\nx = value\n" * 9, "a.py", "code_generated"),
        ("x = value\n" * 9 + "# do not edit\n", "a.py", None),
        ('{"key": "value"}\n' * 9, "data/a.JSON", "code_data_file"),
        ('{"key": "value"}\n' * 3, "data/a.json", None),
        ("1234 5678\n" * 9, "a.py", "code_too_many_digits"),
    ],
)
def test_code_reasons(text, path, rule):
    documents = documents_of([text])
    column = documents.schema.get_field_index("landed_path")
    documents = documents.set_column(
        column, documents.schema.field(column), pa.array([path], pa.string())
    )
    source = SourceSettings(name="test", paths=("*",), profile="code")
    cleaning = CleaningSettings(rules=CleaningRules(code=CODE))
    rows, ledger = clean_table(documents, source=source, cleaning=cleaning)
    assert ledger["rule"].to_pylist() == [rule]
    signals = rows["signals"][0].as_py()
    assert (signals["data_file_characters"] is None) == path.endswith(".py")
    assert signals["generated_markers"] == (rule == "code_generated")


def test_code_settings_are_checked():
    with pytest.raises(ConfigurationError, match="must start with a dot"):
        CodeRules(data_extensions=("json",))
    with pytest.raises(ConfigurationError, match="ASCII"):
        CodeRules(markers=("",))


@given(st.lists(texts, max_size=4), st.integers(0, 3))
def test_markers_agree_with_plain_python(given_texts, lines):
    markers = ("a", "the", "##")
    found = count_markers(text_array(given_texts), np.arange(len(given_texts)), markers, lines)
    for text, count in zip(given_texts, found.tolist(), strict=True):
        head = "".join(line + "\n" for line in text.split("\n")[:lines])
        lowered = head.translate({ord(c): c.lower() for c in map(chr, range(65, 91))})
        assert count == sum(marker in lowered for marker in markers)


@pytest.mark.parametrize(
    ("text", "expected", "count"),
    [
        ("See https://a.example/x?y=1 for more.", "See for more.", 1),
        ("See (www.a.example/x).", "See ().", 1),
        ("http://a.example http://b.example", "", 2),
        ("awww.nice and xhttp://y", "awww.nice and xhttp://y", 0),
        ("no https:// here, www. neither", "no https:// here, www. neither", 0),
        ('<a href="HTTP://A.example/">', '<a href="">', 1),
        ("\u4e2d\u6587 https://a.example/\u4e2d\u6587 \u4e2d", "\u4e2d\u6587 \u4e2d", 1),
    ],
)
def test_urls_are_cut_out(text, expected, count):
    found, counts = strip_urls(text_array([text]))
    assert (found[0].as_py(), counts[0]) == (expected, count)


@given(st.lists(texts, max_size=4))
def test_cutting_urls_leaves_other_text(given_texts):
    found, counts = strip_urls(text_array(given_texts))
    found.validate(full=True)
    assert found.to_pylist() == given_texts
    assert not counts.any()


BAD = "bad word\nf*ck\nc++\nmerde\u00e9\n[x]^`{|}~_\n\n"


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("A BAD WORD.", "en", True),
        ("(bad word)", "en", True),
        ("xbad word", "en", False),
        ("bad words", "en", False),
        ("_bad word", "en", False),
        ("f*ck", "en", True),
        ("fxck", "en", False),
        ("c++", "en", True),
        ("merde\u00c9!", "en", True),
        ("merde\u00e9\u0301", "en", False),
        ("a [x]^`{|}~_ b", "en", True),
        ("\u6211bad word\u6211", "zh", True),
        ("bad word", "de", None),
    ],
)
def test_bad_words(tmp_path, text, language, expected):
    (tmp_path / "list").write_text(BAD, encoding="utf-8")
    files = {"en": str(tmp_path / "list"), "zh": str(tmp_path / "list")}
    found, listed = has_bad_words(text_array([text, "good"]), np.array([language, "xx"]), files)
    assert listed.tolist() == [expected is not None, False]
    assert found.tolist() == [bool(expected), False]


def test_documents_with_bad_words_are_dropped(tmp_path):
    (tmp_path / "list").write_text(BAD, encoding="utf-8")
    bad = BadWordRules(enabled=True, files={"en": str(tmp_path / "list")})
    settings = CleaningSettings(rules=CleaningRules(bad_words=bad))
    rows, ledger = clean([ENGLISH, ENGLISH + " Bad word!", GERMAN], cleaning=settings)
    assert [row["rule"] for row in ledger] == [None, "c4_bad_words", None]
    assert [row["signals"]["bad_words"] for row in rows] == [0, 1, None]
    source = SourceSettings(name="a", paths=("*",), profile="text")
    identity = pipeline_identity(source, settings)["rules_bad_words"]
    assert len(identity["files"]["en"]) == 64


def test_lists_of_bad_words_are_checked(tmp_path):
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ConfigurationError, match="there is no word in the list"):
        read_pattern(str(tmp_path / "empty"), "en")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_pattern(str(tmp_path / "none"), "en")
    with pytest.raises(ConfigurationError, match="name a list for some language"):
        BadWordRules(enabled=True)
