"""Runs: found is what was kept, little is read, and damage is noticed where it is read."""

import numpy as np
import pyarrow as pa
import pytest

from assets.dedup import runs
from assets.dedup.checked_arrays import BLOCK_BYTES, CheckedArray, block_checksums
from assets.dedup.runs import ARRAYS, KeptDocuments, KeptPart, KeptRuns, Run, write_run
from assets.dedup.shingles import ShingleSets
from assets.errors import IntegrityError
from assets.manifest import Manifest
from assets.root import Root
from tests.assets.dedup.small_corpus import SmallCorpus, article

NOBODY = np.empty(0, np.int64)
COUNT = 20_000
BANDS = 4


def kept_documents(seed, count=COUNT):
    """Return documents with random hashes; many share a band key, some have no shingles."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, count)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    # The hash of document i is the SHA-256 stand-in for i; keys repeat far beyond one block.
    hashes = rng.integers(0, 256, (count, 32), np.uint8)
    keys = np.where(
        rng.random((count, BANDS)) < 0.7,
        np.arange(1, BANDS + 1) * 1000,
        rng.integers(10**6, 10**9, (count, BANDS)),
    ).astype(np.uint64)
    return KeptDocuments(
        parts=(
            KeptPart(source="wiki", part="p0", first=0, count=count // 2),
            KeptPart(source="wiki", part="p1", first=count // 2, count=count - count // 2),
        ),
        hashes=hashes,
        keys=keys,
        sets=ShingleSets(offsets, rng.integers(0, 2**32, offsets[-1]).astype(np.uint32)),
        doc_ids=rng.integers(0, 256, (count, 16), np.uint8),
        rows=np.arange(count, dtype=np.int64),
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return Root(str(tmp_path_factory.mktemp("runs")))


@pytest.fixture(scope="module")
def kept():
    return kept_documents(1)


@pytest.fixture(scope="module")
def objects(root, kept):
    return write_run(root, "dedup/1", kept, {"scheme": "affine32"})


def test_every_hash_is_found_and_no_other(root, kept, objects):
    run = Run(root, objects, NOBODY)
    assert np.array_equal(run.find_exact(kept.hashes), np.arange(COUNT))
    other = kept.hashes.copy()
    other[:, 31] ^= 1
    assert (run.find_exact(other) == -1).all()
    edges = np.array([[0] * 32, [255] * 32], np.uint8)
    assert run.find_exact(edges).tolist() == [-1, -1]


def expected_members(kept, key, dead=()):
    has = (kept.keys == key).any(axis=1) & (kept.sets.sizes > 0)
    # A document that has a key in two bands stands in its bucket twice.
    times = (kept.keys == key).sum(axis=1)
    return [at for at in np.flatnonzero(has).tolist() for _ in range(times[at]) if at not in dead]


@pytest.mark.parametrize("limit", [1, 7, 10**6])
def test_buckets_give_the_first_kept_in_order(root, kept, objects, limit):
    before = KeptRuns([Run(root, objects, NOBODY)])
    queries = np.unique(
        np.concatenate([kept.keys[:50].ravel(), np.array([0, 999, 2**64 - 1], np.uint64)])
    )
    offsets, numbers, totals = before.find_buckets(queries, limit)
    for index, key in enumerate(queries):
        expected = expected_members(kept, key)
        assert numbers[offsets[index] : offsets[index + 1]].tolist() == expected[:limit]
        assert totals[index] == len(expected)


def test_withdrawn_documents_are_never_found(root, kept, objects):
    dead = np.array([0, 5, 17, COUNT - 1])
    before = KeptRuns([Run(root, objects, dead)])
    found = before.find_exact(kept.hashes)
    assert np.flatnonzero(found < 0).tolist() == dead.tolist()
    keys = np.array([1000, 2000], np.uint64)
    offsets, numbers, totals = before.find_buckets(keys, 5)
    for index, key in enumerate(keys):
        expected = expected_members(kept, key, dead.tolist())
        assert numbers[offsets[index] : offsets[index + 1]].tolist() == expected[:5]
        assert totals[index] == len(expected)


def test_several_runs_are_one_sequence(root, kept, objects):
    second = kept_documents(2, 300)
    more = write_run(root, "dedup/2", second, {})
    before = KeptRuns([Run(root, objects, NOBODY), Run(root, more, NOBODY)])
    assert before.total == COUNT + 300
    hashes = np.concatenate([second.hashes[:3], kept.hashes[:3]])
    assert before.find_exact(hashes).tolist() == [COUNT, COUNT + 1, COUNT + 2, 0, 1, 2]
    offsets, numbers, _ = before.find_buckets(np.array([1000], np.uint64), 10**6)
    later = [COUNT + at for at in expected_members(second, 1000)]
    assert numbers.tolist() == expected_members(kept, 1000) + later
    assert offsets.tolist() == [0, len(numbers)]
    wanted = np.array([1, 500, COUNT, COUNT + 299])
    sets = before.sets(wanted)
    for index, number in enumerate(wanted.tolist()):
        source, at = (kept, number) if number < COUNT else (second, number - COUNT)
        assert sets[index].tolist() == source.sets[at].tolist()
        assert before.doc_ids(wanted)[index].tobytes() == source.doc_ids[at].tobytes()


def test_sorting_piece_by_piece_gives_the_same_bytes(root, kept, objects, monkeypatch):
    monkeypatch.setattr(runs, "SORTED_DOCUMENTS", 3000)
    pieces = write_run(root, "dedup/pieces", kept, {"scheme": "affine32"})
    assert {name: item.sha256 for name, item in pieces.items()} == {
        name: item.sha256 for name, item in objects.items()
    }


def test_a_search_reads_what_it_touches(root, objects, kept):
    run = Run(root, objects, NOBODY)
    whole = sum(objects[f"run_{name}"].size for name in ARRAYS)
    run.find_exact(kept.hashes[:1])
    run.sets(np.array([7]))
    assert 0 < run.num_checked_bytes <= 6 * BLOCK_BYTES < whole / 4


def test_an_empty_run_finds_nothing(root):
    nothing = kept_documents(3, 0)
    before = KeptRuns([Run(root, write_run(root, "dedup/3", nothing, {}), NOBODY)])
    assert before.find_exact(np.zeros((2, 32), np.uint8)).tolist() == [-1, -1]
    assert before.find_buckets(np.array([5], np.uint64), 3)[1].tolist() == []
    assert len(before.sets(NOBODY)) == 0


def test_each_part_knows_its_documents(root, kept, objects):
    run = Run(root, objects, NOBODY)
    first, ids = run.part_doc_ids("wiki", "p1")
    assert first == COUNT // 2
    assert np.array_equal(ids, kept.doc_ids[first:])
    assert len(run.part_doc_ids("wiki", "elsewhere")[1]) == 0


def test_a_flipped_bit_is_noticed_where_it_is_read(tmp_path, kept):
    root = Root(str(tmp_path))
    objects = write_run(root, "dedup/1", kept, {})
    path = tmp_path / objects["run_hashes"].name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    run = Run(root, objects, NOBODY)
    order = np.lexsort(kept.hashes.T[::-1])
    assert run.find_exact(kept.hashes[order[:1]]).tolist() == order[:1].tolist()
    with pytest.raises(IntegrityError, match=r"dedup/1/hashes.npy is damaged at byte 589,824"):
        run.find_exact(kept.hashes[order[-1:]])


@pytest.mark.parametrize("name", ["run", "run_checksums", "run_band_fences"])
def test_damage_in_a_small_object_is_noticed_at_once(tmp_path, name):
    root = Root(str(tmp_path))
    objects = write_run(root, "dedup/1", kept_documents(4, 50), {})
    path = tmp_path / objects[name].name
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match="is not what its record says"):
        Run(root, objects, NOBODY)


@pytest.mark.parametrize("name", ["run_hashes", "run_set_values", "run_doc_ids"])
def test_a_truncated_array_is_noticed_at_once(tmp_path, name):
    root = Root(str(tmp_path))
    objects = write_run(root, "dedup/1", kept_documents(4, 50), {})
    path = tmp_path / objects[name].name
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(IntegrityError, match="its record says"):
        Run(root, objects, NOBODY)


def test_a_file_that_is_no_array_or_another_one(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(b"no array")
    with pytest.raises(IntegrityError, match="not a whole array"):
        CheckedArray(path, "a.npy", np.empty(0, np.uint64))
    array = np.arange(BLOCK_BYTES, dtype=np.uint32)
    np.save(path, array)
    assert len(block_checksums(array)) == 4
    with pytest.raises(IntegrityError, match="not what its run recorded"):
        CheckedArray(path, "a.npy", block_checksums(array)[:3])


@pytest.mark.parametrize("name", ["band_keys.npy", "run.json", "withdrawn.parquet"])
def test_a_truncated_run_is_made_again_by_the_next_run(tmp_path, name):
    corpus = SmallCorpus(str(tmp_path))
    corpus.land({"wiki/a": [article(1), article(2)]})
    corpus.run()
    digest = Manifest.load(corpus.root, "unique").digest
    (path,) = tmp_path.glob(f"dedup/*/{name}")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    corpus.land({"wiki/b": [article(1), article(3)]})
    corpus.run()
    assert path.read_bytes() == whole
    assert corpus.kept() == [article(1), article(2), article(3)]
    assert Manifest.load(corpus.root, "unique").digest != digest
    assert isinstance(corpus.ledger(), pa.Table)
