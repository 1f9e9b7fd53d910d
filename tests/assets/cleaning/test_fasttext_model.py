"""The kernel that reads lid.176.ftz says what the library says, to the last bit."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import fasttext
import pytest

from assets.cleaning.language import identify_languages, model_path
from assets.cleaning.models.fasttext_labels import predict_labels
from assets.cleaning.models.fasttext_model import read_small_model
from assets.cleaning.text_column import text_array
from assets.errors import ConfigurationError

PIECES = (
    *("a", "the", "und", "d'une", "слово", "漢字", "ひらがな", "한국어", "\u0301", "🎈", "e\u0301"),
    *(" ", " ", " ", "  ", "\t", "\r", "\v", "\0", "<", ">", "_", "\x7f", "\u2028"),
    *("</s>", "__label__en", "__label__", "__label__xyz"),
)
SENTENCES = (
    "The quick brown fox jumps over the lazy dog.", "Der schnelle braune Fuchs springt.",
    "Le renard brun saute par-dessus le chien paresseux.", "敏捷的棕色狐狸跳过了懒狗。",
    "Быстрая коричневая лиса прыгает через ленивую собаку.", "", " ", "</s>", "a </s> der die das",
    "素早い茶色の狐はのろまな犬を飛び越える。", "x" * 5000, "\0", "__label__de",
)  # fmt: skip


def lines() -> list[str]:
    chosen = random.Random(7)
    mixed = ["".join(chosen.choices(PIECES, k=chosen.randrange(30))) for _ in range(1500)]
    return [*SENTENCES, *mixed]


def test_labels_and_scores_are_those_of_the_library():
    model = read_small_model(model_path())
    assert model is not None
    library = fasttext.load_model(str(model_path()))
    expected = [library.predict(line) for line in lines()]
    labels, scores = predict_labels(model, text_array(lines()))
    assert labels == [label for (label,), _ in expected]
    assert scores == [float(score) for _, (score,) in expected]


def test_other_models_are_left_to_the_library(tmp_path: Path):
    data = bytearray(model_path().read_bytes())
    struct.pack_into("<i", data, 8 + 4 * 5, 2)  # word n-grams
    other = tmp_path / "other.ftz"
    other.write_bytes(data)
    assert read_small_model(other) is None


@pytest.mark.parametrize("size", [0, 3, 60, 5000, 900_000])
def test_a_cut_model_is_one_clear_error(tmp_path: Path, size: int):
    cut = tmp_path / "cut.ftz"
    cut.write_bytes(model_path().read_bytes()[:size])
    assert read_small_model(cut) is None
    if size < 60:  # the library itself notices no later cut
        with pytest.raises(ConfigurationError, match="no fastText model"):
            identify_languages(text_array(["some words"]), str(cut))
