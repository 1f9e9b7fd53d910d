"""Languages: the labelled sentences, and texts that are in none."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, strategies as st

from assets.cleaning.language import (
    MAX_CHARACTERS,
    identify_languages,
    model_path,
    model_sha256,
)
from assets.cleaning.letters import identify_by_letters
from assets.cleaning.paragraphs import split_paragraphs
from assets.cleaning.pipeline import pipeline_identity
from assets.cleaning.text_column import text_array
from assets.errors import ConfigurationError
from assets.settings.cleaning import CleaningSettings
from assets.settings.language import LanguageSettings
from assets.settings.sources import SourceSettings
from benchmarks.languages import RELATED, UNCOVERED, read_sentences
from tests.assets.cleaning.given_documents import clean
from tests.assets.cleaning.hostile_texts import texts
from tests.assets.cleaning.test_pipeline import ENGLISH, GERMAN
from tests.shared_data import shared_folder


def test_labelled_sentences():
    rows = list(zip(*read_sentences(shared_folder()), strict=True))
    labels, scores = identify_languages(text_array([text for _, text in rows]))
    assert all(0.0 <= score <= 1.0 for score in scores)
    hits: dict[str, list[bool]] = defaultdict(list)
    rejected: dict[str, list[bool]] = defaultdict(list)
    for (wanted, _), label, score in zip(rows, labels, scores, strict=True):
        hits[wanted].append(label == wanted)
        rejected[wanted].append(score < 0.65)
    covered = [
        hit for language, found in hits.items() if language not in UNCOVERED for hit in found
    ]
    assert len(hits) - len(UNCOVERED) == 59
    assert sum(covered) / len(covered) >= 0.95
    unknown = [hit for language in UNCOVERED - RELATED for hit in rejected[language]]
    assert sum(unknown) / len(unknown) >= 0.90


def test_the_start_of_a_text_decides_and_newlines_do_not():
    english = "This is a sentence about the weather in the north of the country. "
    german = "Hier steht ein Satz \u00fcber das Wetter im Norden des Landes. "
    mixed = (english * 40)[:MAX_CHARACTERS] + german * 400
    lines = english.replace(" ", "\n")
    labels, scores = identify_languages(text_array([mixed, english * 30, lines * 5, german]))
    assert labels == ["en", "en", "en", "de"]
    assert scores[0] == identify_languages(text_array([(english * 40)[:MAX_CHARACTERS]]))[1][0]


def test_texts_without_language_are_uncertain():
    labels, scores = identify_languages(text_array(["", " ", "...", "\U0001f600 " * 68]))
    assert len(labels) == 4
    assert max(scores) < 0.65
    assert identify_languages(text_array([])) == ([], [])


def test_the_model_is_the_published_one():
    assert hashlib.sha256(model_path().read_bytes()).hexdigest() == model_sha256()
    shared = shared_folder("models", "lid.176.ftz")
    assert hashlib.sha256(shared.read_bytes()).hexdigest() == model_sha256()


def test_letters_name_languages_with_alphabets_of_their_own():
    rows = list(zip(*read_sentences(shared_folder()), strict=True))
    labels, scores = identify_by_letters(text_array([text for _, text in rows]))
    assert all(0.0 <= score <= 1.0 for score in scores)
    hits: dict[str, list[bool]] = defaultdict(list)
    for (wanted, _), label in zip(rows, labels, strict=True):
        hits[wanted].append(label == wanted)
    shares = {language: sum(found) / len(found) for language, found in hits.items()}
    alone = {"ar", "bn", "el", "gu", "he", "hy", "ja", "ka", "ko", "pa", "ta", "te", "th", "zh"}
    assert min(shares[language] for language in alone) >= 0.95
    marked = {
        "be",
        "fa",
        "hi",
        "is",
        "kk",
        "lt",
        "lv",
        "pl",
        "sq",
        "uk",
        "ur",
        "vi",
    }
    assert min(shares[language] for language in marked) >= 0.9
    right = np.array([label == wanted for (wanted, _), label in zip(rows, labels, strict=True)])
    covered = np.array([wanted not in UNCOVERED for wanted, _ in rows])
    assert right[covered].mean() >= 0.9
    assert right[np.array(scores) >= 0.65].mean() >= 0.96
    assert sum(map(sum, hits.values())) / len(rows) >= 0.54


def test_letters_of_texts_without_any():
    assert identify_by_letters(text_array(["", "12 34", "\U0001f600" * 99, "abc"])) == (
        ["und"] * 4,
        [0.0] * 4,
    )


@pytest.mark.parametrize("name", ["missing.bin", "text.bin"])
def test_a_model_that_cannot_be_used(tmp_path, name):
    path = tmp_path / name
    if name == "text.bin":
        path.write_text("no model")
    with pytest.raises(ConfigurationError, match=name):
        identify_languages(text_array(["a text"]), str(path))


def cleaning(**language) -> CleaningSettings:
    return CleaningSettings(language=LanguageSettings(**language))


def test_a_threshold_of_one_language():
    settings = cleaning(thresholds={"en": 1.0})
    rows, ledger = clean([ENGLISH, GERMAN], languages=("en", "de"), cleaning=settings)
    assert [row["rule"] for row in ledger] == ["language_score", None]
    assert ledger[0]["threshold"] == 1.0
    assert rows[0]["language_score"] == ledger[0]["value"]
    rows, _ = clean([ENGLISH, GERMAN], cleaning=settings)
    assert [row["language"] for row in rows] == ["und", "de"]


def test_another_model_by_path():
    shared = shared_folder("models", "lid.176.ftz")
    named = cleaning(model=str(shared))
    assert clean([GERMAN], cleaning=named)[0][0]["language"] == "de"
    # The same bytes by another name are the same model.
    source = SourceSettings(name="test", paths=("*",), profile="text")
    assert pipeline_identity(source, named) == pipeline_identity(source, CleaningSettings())


GREEK = "Καλημέρα κόσμε, τι κάνεις σήμερα. " * 60


def test_the_letters_as_method_and_as_second_look():
    rows, _ = clean([ENGLISH, GREEK], cleaning=cleaning(method="characters"))
    assert [row["language"] for row in rows] == ["en", "el"]
    foreign = "The " + GREEK
    both = CleaningSettings(
        language_threshold=0.0, language=LanguageSettings(check_characters=True)
    )
    wanted = tuple(identify_languages(text_array([ENGLISH, foreign]))[0])
    rows, ledger = clean([ENGLISH, foreign], languages=(*wanted, "en"), cleaning=both)
    assert ledger[0]["rule"] is None
    if "el" not in wanted:
        assert ledger[1]["rule"] == "language_characters"
    assert ledger_of(GREEK, both, "xx")["rule"] == "language"


def ledger_of(text, settings, language):
    return clean([text], languages=(language,), cleaning=settings)[1][0]


def test_paragraphs_of_a_mixed_page():
    mixed = f"{ENGLISH}\n\n{GERMAN}\n\n{ENGLISH}\n\nshort\n"
    weighed = clean([mixed], languages=("en",), cleaning=cleaning(paragraphs="weigh"))
    # Two thirds of it are English, which is not enough for the threshold.
    assert weighed[1][0]["rule"] == "language_score"
    assert 0.5 < weighed[1][0]["value"] < 0.65
    rows, ledger = clean([mixed], languages=("en",), cleaning=cleaning(paragraphs="drop"))
    assert rows[0]["text"] == f"{ENGLISH}\n\n{ENGLISH}\n\nshort"
    assert (ledger[0]["decision"], ledger[0]["rule"]) == ("modified", "paragraphs_dropped")
    assert json.loads(ledger[0]["detail"]) == {"paragraphs_dropped": 1}
    # A page that is foreign as a whole is dropped as one.
    _, ledger = clean([GERMAN], languages=("en",), cleaning=cleaning(paragraphs="drop"))
    assert ledger[0]["rule"] == "language"


@given(texts, st.integers(1, 50))
def test_paragraphs_joined_are_the_text(text, least):
    parts = split_paragraphs(text, least)
    assert "".join(parts) == text
    if len(text) >= least:
        assert min(map(len, parts)) >= min(least, len(text))


def test_thresholds_and_methods_that_make_no_sense():
    with pytest.raises(ConfigurationError, match=r"thresholds.en: 2.0 is outside"):
        LanguageSettings(thresholds={"en": 2.0})
    with pytest.raises(ConfigurationError, match="has no use with the method"):
        LanguageSettings(method="characters", model="x.bin")


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u2003", "\n", "\u2028"])
def test_words_are_parted_by_any_space(space):
    text = "The members of the council met on the bridge and opened the new market in the morning."
    plain = identify_languages(text_array([text]))
    assert identify_languages(text_array([text.replace(" ", space)])) == plain
    assert plain[0] == ["en"]
