"""Languages: the labelled sentences, and texts that are in none."""

from __future__ import annotations

import hashlib
from collections import defaultdict

from assets.cleaning.language import (
    MAX_CHARACTERS,
    identify_languages,
    model_path,
    model_sha256,
)
from assets.cleaning.text_column import text_array
from tests.shared_data import shared_folder

# The languages of the labelled set that the model hardly knows, or knows under another label.
UNCOVERED = {"lg", "mi", "nb", "nn", "sn", "st", "tn", "ts", "xh", "zu", "bs", "ms", "so", "yo",
             "af", "ga"}  # fmt: skip


def test_labelled_sentences():
    rows = [
        line.split("\t", 1)
        for line in shared_folder("langid", "public.tsv").read_text("utf-8").splitlines()
    ]
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
    unknown = [
        hit for language in UNCOVERED - {"nb", "nn", "af", "ga"} for hit in rejected[language]
    ]
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
