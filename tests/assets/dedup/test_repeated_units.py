"""Repeated lines and paragraphs through files: the same result in any memory, and its measure."""

import subprocess
import sys
from collections import Counter
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from assets.dedup import sorted_places
from assets.dedup.hash_runs import PARAGRAPHS, SeenHashes
from assets.dedup.repeated_units import repeated_lines, repeated_paragraphs
from assets.dedup.sorted_places import SortedPlaces
from assets.root import Root
from assets.settings.dedup import (
    DedupSettings,
    RepeatedLinesSettings,
    RepeatedParagraphsSettings,
)
from tests.assets.dedup.small_corpus import SmallCorpus, article

MEGABYTE = 1 << 20
U64 = st.integers(0, 2**64 - 1)
PAIRS = st.lists(st.tuples(st.sampled_from([0, 7, 2**63, 2**64 - 1]) | U64, U64), unique=True)


@given(PAIRS, st.integers(1, 6), st.integers(1, 5))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pairs_come_sorted_in_bounded_blocks(tmp_path, pairs, room, step):
    places = SortedPlaces(tmp_path / "pairs", room * sorted_places._BYTES_EACH)
    both = np.array(pairs, np.uint64).reshape(-1, 2)
    for first in range(0, len(pairs), step):
        places.add(both[first : first + step, 0], both[first : first + step, 1])
    blocks = [block.tolist() for block in places.read()]
    assert [pair for block in blocks for pair in block] == sorted(pairs)
    runs = -(-len(pairs) // room)
    assert all(0 < len(block) <= max(room, runs) for block in blocks)
    assert not (tmp_path / "pairs").exists()


class Texts:
    """Stands for kept texts: batches of them."""

    def __init__(self, texts, each):
        self.batches = [texts[at : at + each] for at in range(0, len(texts), each)]

    def read(self):
        yield pa.array([], pa.large_string())
        for batch in self.batches:
            yield pa.array(batch, pa.large_string())


def lines_of(texts):
    """Return (text, start, end, line) of every line that says something, the texts end to end."""
    found, at = [], 0
    for number, text in enumerate(texts):
        for line in text.splitlines(keepends=True):
            if line.strip():
                found.append((number, at, at + len(line), line.strip()))
            at += len(line)
    return found


def ranges(units, num_texts):
    start, end = units.repeated(slice(0, num_texts))
    whole = list(zip(start.tolist(), end.tolist(), strict=True))
    middle = num_texts // 2
    parts = [units.repeated(slice(0, middle)), units.repeated(slice(middle, num_texts))]
    halves = [pair for part in parts for pair in zip(*(x.tolist() for x in part), strict=True)]
    assert halves == whole
    return whole


TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "dd", " "]), max_size=9).map(
        lambda lines: "".join(f"{line}\n" for line in lines)
    ),
    min_size=1,
    max_size=12,
)


@given(TEXTS, st.randoms(), st.sampled_from([1, 2, 5, 1000]), st.integers(1, 4))
@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_repetitions_are_those_of_a_count_in_any_memory(tmp_path, texts, random, room, max_count):
    ranks = list(range(len(texts)))
    random.shuffle(ranks)
    dedup = DedupSettings(
        lines=RepeatedLinesSettings(max_count=max_count, bucket_documents=3),
        paragraphs=RepeatedParagraphsSettings(),
        memory_mb=1,
    )
    lines = lines_of(texts)
    counts = Counter((ranks[text] // 3, line) for text, _, _, line in lines)
    firsts: dict[str, tuple[int, int]] = {}
    for text, start, _, line in sorted(lines, key=lambda item: (ranks[item[0]], item[1])):
        firsts.setdefault(line, (text, start))
    seen = SeenHashes(Root(str(tmp_path)), PARAGRAPHS, [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_places, "_BYTES_EACH", MEGABYTE // room)
        given_texts: Any = Texts(texts, 3)
        cut = repeated_lines(given_texts, np.array(ranks), dedup, tmp_path)
        again = repeated_paragraphs(given_texts, np.array(ranks), dedup, seen, tmp_path)
    assert ranges(cut, len(texts)) == [
        (start, end)
        for text, start, end, line in lines
        if counts[ranks[text] // 3, line] > max_count
    ]
    assert ranges(again, len(texts)) == [
        (start, end) for text, start, end, line in lines if firsts[line] != (text, start)
    ]
    assert sorted(again.owners.tolist()) == sorted(text for text, _ in firsts.values())
    assert (np.diff(again.new.astype(object)) > 0).all()


def test_the_memory_changes_no_byte(tmp_path, monkeypatch):
    texts = [f"{article(seed)}\nshared line\n{article(seed % 7, 9)}\n" * 2 for seed in range(40)]
    made = {}
    for room in (4, MEGABYTE):
        both = {"lines": RepeatedLinesSettings(), "paragraphs": RepeatedParagraphsSettings()}
        corpus = SmallCorpus(str(tmp_path / str(room)), dedup=both)
        monkeypatch.setattr(sorted_places, "_BYTES_EACH", (4096 << 20) // room)
        corpus.land({"wiki/a": texts[:30]})
        corpus.run()
        corpus.land({"wiki/b": texts[30:]})
        corpus.run()
        stored = sorted(
            path for name in ("unique", "dedup") for path in tmp_path.glob(f"{room}/**/{name}/**/*")
        )
        made[room] = {
            str(path.relative_to(tmp_path / str(room))): path.read_bytes()
            for path in stored
            if path.suffix in {".npy", ".parquet"}
        }
    assert any("paragraphs" in name for name in made[4])
    assert made[4] == made[MEGABYTE]


MEASURE = """
import resource, sys, tempfile
from pathlib import Path
import numpy as np, pyarrow as pa
from assets.dedup.hash_runs import PARAGRAPHS, SeenHashes
from assets.dedup.repeated_units import repeated_lines, repeated_paragraphs
from assets.root import Root
from assets.settings.dedup import *

class Texts:
    def __init__(self, count):
        self.count = count
    def read(self):
        for first in range(0, self.count, 20):
            yield pa.array([
                "".join(f"{text * 500 + line}\\nsame\\n" for line in range(500))
                for text in range(first, min(first + 20, self.count))
            ], pa.large_string())

dedup = DedupSettings(
    lines=RepeatedLinesSettings(), paragraphs=RepeatedParagraphsSettings(), memory_mb=8
)

def peak(count):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seen = SeenHashes(Root(name), PARAGRAPHS, [])
        ranks = np.arange(count)
        lines = repeated_lines(Texts(count), ranks, dedup, folder)
        units = repeated_paragraphs(Texts(count), ranks, dedup, seen, folder)
        cut = sum(len(lines.repeated(slice(i, i + 1))[0]) for i in range(count))
        assert cut == 500 * count and len(units.new) == 500 * count + 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

small = peak(100)
print((peak(900) - small) // 1024)
"""


def test_the_peak_follows_the_setting_and_not_the_number_of_lines():
    # 100,000 lines fill the 8 MB; 800,000 more would take 77 MB if they were held.
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 12
