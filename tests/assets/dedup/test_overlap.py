"""Exact similarity, and the outlines that rule pairs out."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from assets.dedup.overlap import (
    draw_outline,
    intersection_size,
    jaccard_at_least,
    num_differing_bits,
    outline_words,
)

SETS = st.sets(st.integers(0, 2**32 - 1) | st.integers(0, 300), max_size=150)


def sorted_array(values):
    return np.array(sorted(values), np.uint32)


START = np.uint64(0)


def similarity(left, right, threshold):
    ends = np.uint64(len(left)), np.uint64(len(right))
    return jaccard_at_least(left, START, ends[0], right, START, ends[1], threshold)


def shared(left, right, needed):
    ends = np.uint64(len(left)), np.uint64(len(right))
    return intersection_size(left, START, ends[0], right, START, ends[1], needed)


@settings(deadline=None)  # the first call compiles
@given(SETS, SETS, st.sampled_from([0.1, 0.5, 0.8, 1.0]))
def test_similarity_is_that_of_the_sets(left, right, threshold):
    found = similarity(sorted_array(left), sorted_array(right), threshold)
    exact = len(left & right) / len(left | right) if left | right else 0.0
    assert found == (exact if left | right and exact >= threshold else -1.0)


def test_a_similarity_that_equals_the_threshold_reaches_it():
    for size in range(1, 400):
        left, right = np.arange(size, dtype=np.uint32), np.arange(size + 1, dtype=np.uint32)
        threshold = size / (size + 1)
        assert similarity(left, right, threshold) == threshold


@settings(deadline=None)
@given(SETS, SETS)
def test_outlines_never_differ_in_more_bits_than_sets_in_members(left, right):
    arrays = [sorted_array(left), sorted_array(right)]
    sizes = outline_words(np.array([len(array) for array in arrays]))
    outlines = [np.empty(size, np.uint64) for size in sizes]
    for array, outline in zip(arrays, outlines, strict=True):
        draw_outline(array, outline)
    words = np.concatenate(outlines)
    differing = num_differing_bits(words, np.uint64(0), sizes[0], np.uint64(sizes[0]), sizes[1])
    assert differing <= len(left ^ right)
    if sizes[0] == sizes[1]:
        assert differing == sum(int(x).bit_count() for x in outlines[0] ^ outlines[1])


def test_few_needed_and_none_shared():
    left, right = np.arange(0, 100, 2, dtype=np.uint32), np.arange(1, 100, 2, dtype=np.uint32)
    assert shared(left, right, 0) == 0
    assert shared(left, right, 1) == -1
    assert shared(left, left[:0], 0) == 0
