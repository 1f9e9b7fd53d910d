"""Repetition inside a text: lines, paragraphs and word n-grams (Gopher, arXiv 2112.11446, A1.1).

Words come from `split_texts`, lines from `split_lines`. Two ways to count differ between tools:

`later` (datatrove, FineWeb)
    Only occurrences after the first count. Lines are split at runs of LF (with an empty one before
    a leading and after a trailing run), paragraphs at two LF or more in the stripped text.
    Denominators: number of lines or paragraphs; characters of the text. Top n-gram: the characters
    of the most frequent one (the first of equals), its words joined by a space, times how often it
    occurs, even if that is once. Repeated n-grams: a walk over the words that counts an n-gram seen
    before (its characters without spaces) and jumps over it.
`all` (Dolma)
    Every occurrence of what occurs twice or more counts, the first one included. Lines are split at
    each LF. Characters are those of words, without whitespace. Repeated n-grams are divided by the
    characters of all n-grams.

Only an n-gram at a place where both n-grams of one word less are repeated can be repeated itself;
so after the pairs, few places of a text are looked at again.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa

from assets.cleaning.characters import character_flags
from assets.cleaning.hashing import (
    HASH_START,
    add_to_hash,
    chain_hash,
    find_slot,
    finish_hash,
    table_size,
)
from assets.cleaning.lines import SplitLines
from assets.cleaning.signals import CHARACTERS, SplitTexts
from assets.cleaning.strip import strip_text
from assets.cleaning.text_column import text_buffers
from assets.kernel import kernel

Counting = Literal["later", "all"]

TOP_NGRAMS = (2, 3, 4)
REPEATED_NGRAMS = (5, 6, 7, 8, 9, 10)
REPETITIONS = (
    "duplicate_paragraph_ratio",
    "duplicate_paragraph_character_ratio",
    "duplicate_line_ratio",
    "duplicate_line_character_ratio",
    *(f"top_{n}gram_ratio" for n in TOP_NGRAMS),
    *(f"duplicate_{n}gram_ratio" for n in REPEATED_NGRAMS),
)
"""Names of the columns that `measure_repetition` returns; fields of `SIGNALS`."""
_PARAGRAPHS, _LINES, _NGRAMS = 0, 2, 4
_FIRST_REPEATED, _LONGEST = REPEATED_NGRAMS[0], REPEATED_NGRAMS[-1]
_LF = 0x0A


def measure_repetition(
    texts: pa.LargeStringArray,
    split: SplitTexts,
    lines: SplitLines,
    index: np.ndarray,
    counting: Counting = "later",
) -> np.ndarray:
    """Return the shares of some texts, shape (len(index), len(REPETITIONS)), dtype float64.

    A share of nothing is 0. Memory: about 50 bytes for each word of the longest text.

    Args:
        texts: the texts.
        split: their words.
        lines: their lines.
        index: numbers of the texts that are asked for, int64.
        counting: see the module.
    """
    data, offsets = text_buffers(texts)
    result = np.zeros((len(index), len(REPETITIONS)), np.float64)
    _measure_all(
        data,
        offsets,
        character_flags(),
        split.counts[:, CHARACTERS],
        split.word_bounds,
        split.word_hashes,
        split.word_lengths,
        lines.bounds,
        lines.hashes,
        lines.lengths,
        index,
        counting == "all",
        result,
    )
    return result


@kernel
def _room(index: Any, word_bounds: Any, line_bounds: Any) -> int:
    """Return the most words or lines (and paragraphs) of any of the texts."""
    most = 0
    for number in range(len(index)):
        text = index[number]
        most = max(most, word_bounds[text + 1] - word_bounds[text])
        most = max(most, line_bounds[text + 1] - line_bounds[text])
    return most + 2


@kernel
def _measure_all(
    data: Any,
    offsets: Any,
    flags: Any,
    characters: Any,
    word_bounds: Any,
    word_hashes: Any,
    word_lengths: Any,
    line_bounds: Any,
    line_hashes: Any,
    line_lengths: Any,
    index: Any,
    counts_all: bool,
    result: Any,
) -> None:
    room = _room(index, word_bounds, line_bounds)
    size = table_size(room)
    keys, stamps = np.empty(size, np.uint64), np.zeros(size, np.int64)
    tallies = np.zeros(size, np.int64)
    items, lengths = np.empty(room, np.uint64), np.empty(room, np.int64)
    sums, places = np.empty(room, np.int64), np.empty(room, np.int32)
    slots = np.empty(room, np.int32)
    stamp = 1
    for number in range(len(index)):
        text = index[number]
        row = result[number]
        first, last = word_bounds[text], word_bounds[text + 1]
        words = last - first
        sums[0] = 0
        for word in range(words):
            sums[word + 1] = sums[word] + word_lengths[first + word]
        denominator = sums[words] if counts_all else characters[text]
        if denominator == 0:
            continue
        count = _paragraphs(data, offsets[text], offsets[text + 1], flags, items, lengths)
        row[_PARAGRAPHS], row[_PARAGRAPHS + 1] = _duplicate_shares(
            items, lengths, count, denominator, counts_all, keys, stamps, tallies, stamp
        )
        first_line, last_line = line_bounds[text], line_bounds[text + 1]
        count = _lines(line_hashes, line_lengths, first_line, last_line, counts_all, items, lengths)
        row[_LINES], row[_LINES + 1] = _duplicate_shares(
            items, lengths, count, denominator, counts_all, keys, stamps, tallies, stamp + 1
        )
        for word in range(words):
            items[word] = chain_hash(HASH_START, word_hashes[first + word])
        _ngram_shares(
            word_hashes[first:last],
            sums,
            denominator,
            counts_all,
            items,
            places,
            slots,
            keys,
            stamps,
            tallies,
            stamp + 2,
            row,
        )
        stamp += 2 + _LONGEST


@kernel
def _paragraphs(data: Any, start: int, end: int, flags: Any, items: Any, lengths: Any) -> int:
    """Write hash and characters of each paragraph of the stripped text; return how many."""
    start, end = strip_text(data, start, end, flags)
    count = 0
    position = start
    while True:
        code = HASH_START
        characters = 0
        breaks = 0
        while position < end:
            byte = data[position]
            if byte == _LF:
                breaks = 1
                while data[position + breaks] == _LF:  # a stripped text does not end in LF
                    breaks += 1
                if breaks > 1:
                    break
            code = add_to_hash(code, byte)
            characters += (byte & 0xC0) != 0x80
            position += 1
        items[count], lengths[count] = finish_hash(code), characters
        count += 1
        if position >= end:
            return count
        position += breaks


@kernel
def _lines(
    line_hashes: Any,
    line_lengths: Any,
    first: int,
    last: int,
    counts_all: bool,
    items: Any,
    lengths: Any,
) -> int:
    """Write hash and characters of each line; return how many."""
    count = 0
    for line in range(first, last):
        # Runs of LF: an empty line counts only before the first and after the last one.
        is_edge = (line == first or line == last - 1) and last - first > 1
        if counts_all or is_edge or line_lengths[line] > 0:
            items[count], lengths[count] = line_hashes[line], line_lengths[line]
            count += 1
    return count


@kernel
def _duplicate_shares(
    items: Any,
    lengths: Any,
    count: int,
    denominator: int,
    counts_all: bool,
    keys: Any,
    stamps: Any,
    tallies: Any,
    stamp: int,
) -> tuple[float, float]:
    """Return the share of items that are duplicates, and their characters / denominator."""
    mask = table_size(count) - 1
    duplicates, characters = 0, 0
    for item in range(count):
        slot = find_slot(keys, stamps, stamp, mask, items[item])
        if stamps[slot] != stamp:
            stamps[slot], keys[slot], tallies[slot] = stamp, items[item], 1
            continue
        tallies[slot] += 1
        times = 2 if counts_all and tallies[slot] == 2 else 1  # the first one as well
        duplicates += times
        characters += times * lengths[item]
    return duplicates / max(count, 1), characters / denominator


@kernel
def _ngram_shares(
    hashes: Any,
    sums: Any,
    denominator: int,
    counts_all: bool,
    states: Any,
    places: Any,
    slots: Any,
    keys: Any,
    stamps: Any,
    tallies: Any,
    stamp: int,
    row: Any,
) -> None:
    """Measure n-grams of 2 to 10 words; `states` holds the hash of the n-gram at each place."""
    words = len(hashes)
    num_places = words
    for place in range(words):
        places[place] = place
    for ngram in range(2, _LONGEST + 1):
        if words < ngram:
            return
        num_places = _repeated_places(
            hashes, ngram, num_places, states, places, slots, keys, stamps, tallies, stamp + ngram
        )
        at = _NGRAMS + ngram - 2
        if ngram < _FIRST_REPEATED:
            row[at] = (
                _top_characters(ngram, num_places, places, slots, sums, tallies, counts_all)
                / denominator
            )
        elif counts_all:
            row[at] = _repeated_characters(ngram, num_places, places, sums) / max(
                _all_characters(ngram, words, sums), 1
            )
        else:
            row[at] = _walk(ngram, num_places, places, slots, sums, tallies) / denominator


@kernel
def _repeated_places(
    hashes: Any,
    ngram: int,
    num_places: int,
    states: Any,
    places: Any,
    slots: Any,
    keys: Any,
    stamps: Any,
    tallies: Any,
    stamp: int,
) -> int:
    """Move the places of repeated n-grams to the front of `places`; return how many there are.

    On entry `places` are those where the n-gram of one word less is repeated.
    """
    mask = table_size(num_places) - 1
    found = 0
    for number in range(num_places):
        place = places[number]
        # The next place has to be a repeated one too; the last one starts no n-gram.
        if number + 1 == num_places or places[number + 1] != place + 1:
            continue
        state = chain_hash(states[place], hashes[place + ngram - 1])
        states[place] = state
        slot = find_slot(keys, stamps, stamp, mask, state)
        if stamps[slot] != stamp:
            stamps[slot], keys[slot], tallies[slot] = stamp, state, 0
        tallies[slot] += 1
        places[found], slots[found] = place, slot
        found += 1
    kept = 0
    for number in range(found):
        if tallies[slots[number]] > 1:
            places[kept], slots[kept] = places[number], slots[number]
            kept += 1
    return kept


@kernel
def _top_characters(
    ngram: int, num_places: int, places: Any, slots: Any, sums: Any, tallies: Any, counts_all: bool
) -> Any:
    """Return the characters of the most frequent n-gram, the first of equals, times its count."""
    place: Any = np.int64(0)
    times: Any = np.int64(1)
    for number in range(num_places):
        if tallies[slots[number]] > times:
            place, times = np.int64(places[number]), tallies[slots[number]]
    characters = sums[place + ngram] - sums[place]
    if not counts_all:
        characters += ngram - 1
    return characters * times


@kernel
def _walk(ngram: int, num_places: int, places: Any, slots: Any, sums: Any, tallies: Any) -> int:
    """Return the characters of n-grams seen before, each jumped over; spoils the tallies."""
    characters = 0
    free_from = 0
    for number in range(num_places):
        place = places[number]
        if place < free_from:
            continue
        if tallies[slots[number]] < 0:
            characters += sums[place + ngram] - sums[place]
            free_from = place + ngram
        else:
            tallies[slots[number]] = -1
    return characters


@kernel
def _repeated_characters(ngram: int, num_places: int, places: Any, sums: Any) -> int:
    characters = 0
    for number in range(num_places):
        characters += sums[places[number] + ngram] - sums[places[number]]
    return characters


@kernel
def _all_characters(ngram: int, words: int, sums: Any) -> int:
    characters = 0
    for place in range(words - ngram + 1):
        characters += sums[place + ngram] - sums[place]
    return characters
