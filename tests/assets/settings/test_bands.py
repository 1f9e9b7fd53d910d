"""Bands: datasketch's own optimum, presets as published, nearest values where nothing fits."""

import dataclasses

import datasketch
import numpy as np
import pytest

from assets.errors import ConfigurationError
from assets.settings.bands import (
    PRESETS,
    candidate_probability,
    expected_recall,
    nearest_bands,
    optimal_bands,
)
from assets.settings.dedup import DEFAULT_NUM_PERM, MinHashSettings


@pytest.mark.parametrize("num_perm", [1, 64, 112, 128, 256])
@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.8, 0.9])
def test_the_optimum_is_that_of_datasketch(threshold, num_perm):
    if num_perm == 1:
        assert optimal_bands(threshold, 1) == (1, 1)
        return
    theirs = datasketch.MinHashLSH(threshold=threshold, num_perm=num_perm)
    assert optimal_bands(threshold, num_perm) == (theirs.b, theirs.r)


def test_a_probability_is_what_a_draw_gives():
    rng = np.random.default_rng(3)
    agrees = rng.random((20_000, 14, 8)) < 0.8
    meets = agrees.min(axis=2).max(axis=1)
    assert meets.mean() == pytest.approx(candidate_probability(0.8, 14, 8), abs=0.01)


@pytest.mark.parametrize(
    ("preset", "expected"), [("classic", 0.9938), ("datatrove", 0.9884), ("dolma3", 0.9915)]
)
def test_presets_find_nearly_everything_above_the_threshold(preset, expected):
    settings = MinHashSettings(preset=preset)
    assert (settings.num_perm, settings.bands, settings.rows_per_band) == PRESETS[preset]
    found = expected_recall(settings.threshold, settings.bands, settings.rows_per_band)
    assert found == pytest.approx(expected, abs=1e-4)


def test_a_preset_is_what_it_stands_for():
    assert MinHashSettings(preset="datatrove") == MinHashSettings()
    assert MinHashSettings(preset="classic") == MinHashSettings(num_perm=128, bands=16)
    optimum = MinHashSettings(preset="optimum", num_perm=128, threshold=0.8)
    assert (optimum.bands, optimum.rows) == (9, 13)
    assert dataclasses.replace(optimum, seed=2).bands == 9
    assert MinHashSettings(num_perm=112, bands=14, rows=8) == MinHashSettings()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"preset": "classic", "bands": 8}, "'classic' decides bands"),
        ({"preset": "classic", "num_perm": 256}, "'classic' decides num_perm"),
        ({"preset": "optimum", "rows": 4}, "'optimum' decides rows"),
        ({"bands": 15}, "nearest number that does is 14"),
        ({"bands": 0}, "nearest number that does is 1"),
        ({"bands": 20, "rows": 8}, "14 bands of 8 rows, or 5 rows in 20 bands"),
        ({"bands": 1, "rows": 500}, "1 bands of 112 rows, or 112 rows in 1 bands"),
        ({"threshold": 0.0}, r"outside \(0, 1\]"),
        ({"threshold": 1.01}, r"outside \(0, 1\]"),
        ({"num_perm": 0}, "at least 1"),
        ({"character_ngram": 0}, "at least 1"),
        ({"ngram": 0}, "at least 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_does(given, message):
    with pytest.raises(ConfigurationError, match=message):
        MinHashSettings(**given)


def test_the_nearest_divisor():
    assert [nearest_bands(DEFAULT_NUM_PERM, bands) for bands in (0, 3, 15, 1000)] == [1, 2, 14, 112]
