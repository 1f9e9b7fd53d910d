"""Strata and held-out documents: who belongs where, for ever, and who is refused."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from assets.errors import ConfigurationError, IntegrityError, PinnedRootError
from assets.manifest import Manifest
from assets.settings.sources import HoldoutSettings
from assets.settings.tokens import TokenizerSettings, TrainTokenizerSettings
from assets.tokenizing.kept_parts import kept_tasks
from assets.tokenizing.membership import HELD_OUT_SPLIT, check_groups, holdout_hashes
from assets.tokenizing.token_parts import group_members, read_lengths
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer
from tests.assets.tokenizing.kept_root import EOS, KeptRoot

LANGUAGES: dict[str | None, Any] = {
    "a": {"language": "en"},
    "b": {"language": "de"},
    "c": {"language": "en"},
    "d": {"metadata": json.dumps({"topic": "art"})},
}


def words(count, first=0):
    """Return different texts."""
    places = [(number // 343, number // 49, number // 7, number) for number in range(count)]
    return [
        " ".join(["abcdefg"[place % 7] for place in digits] + ["b"] * (first // 100))
        for digits in places
    ]


def materialize(kept, **settings):
    made = kept.settings(**settings)
    materialize_tokenizer(kept.root, made, kept.log)
    return materialize_tokens(kept.root, made, kept.log)


def table(kept):
    columns = ["landed_path", "position", "num_tokens", "stratum", "split"]
    rows = []
    for entry in Manifest.load(kept.root, "tokens").entries():
        rows += kept.root.read_table(entry.objects["data"], columns).to_pylist()
    return rows


@pytest.fixture
def kept(tmp_path):
    return KeptRoot(tmp_path)


def test_strata_are_the_values_of_the_expression(kept):
    kept.land({("s", "x"): ["a", "b", "c", None, "d"]}, columns=LANGUAGES)
    report = materialize(kept, source={"strata": "coalesce(metadata->>'$.topic', language)"})
    assert [row["stratum"] for row in table(kept)] == ["en", "de", "en", "art"]
    assert {row["split"] for row in table(kept)} == {"train"}
    (entry,) = report.entries
    assert entry.statistics["groups"] == {
        "art/train": {"documents": 1, "tokens": 2},
        "de/train": {"documents": 1, "tokens": 2},
        "en/train": {"documents": 2, "tokens": 4},
    }
    assert read_lengths(kept.root, entry).tolist() == [2, 2, 2, 2]
    assert read_lengths(kept.root, entry, ("en", "train")).tolist() == [2, 2]
    assert group_members(entry) == {("art", "train"): 1, ("de", "train"): 1, ("en", "train"): 2}


def test_no_value_is_a_stratum_of_its_own(kept):
    kept.land({("s", "x"): ["a", "d"]}, columns=LANGUAGES)
    materialize(kept, source={"strata": "language"})
    assert [row["stratum"] for row in table(kept)] == ["en", "none"]


@pytest.mark.parametrize(
    ("strata", "reason"),
    [
        ("landed_path || '/' || language", "gives 'x/en', which cannot be the name of a stratum"),
        ("CAST(language AS INTEGER)", "Conversion Error"),
        ("nolanguage", "no column 'nolanguage'"),
    ],
)
def test_a_stratum_that_cannot_be_is_refused(kept, strata, reason):
    kept.land({("s", "x"): ["a"]}, columns=LANGUAGES)
    with pytest.raises(ConfigurationError, match=r"sources\[s\].strata") as caught:
        materialize(kept, source={"strata": strata})
    assert reason in str(caught.value)


def test_too_many_strata_are_refused(kept):
    kept.land({("s", "x"): words(300)})
    with pytest.raises(ConfigurationError, match="more than 256 strata in one part"):
        materialize(kept, source={"strata": "row"})


def test_the_held_out_share_is_by_text_and_grows_with_what_lands(kept):
    kept.land({("s", "x"): words(400)})
    source = {"holdout": HoldoutSettings(fraction=0.2)}
    materialize(kept, source=source)
    first = [row["split"] for row in table(kept)]
    assert 50 <= first.count(HELD_OUT_SPLIT) <= 110
    # The same texts land again, and others: the same ones are held out.
    kept.land({("s", "y"): words(800)})
    materialize(kept, source=source)
    rows = table(kept)
    again = [row["split"] for row in rows if row["landed_path"] == "y"]
    assert again[:400] == first
    assert 110 <= again.count(HELD_OUT_SPLIT) <= 210


def test_a_number_of_documents_comes_from_the_first_generation_alone(kept):
    kept.land({("s", "x"): [None]})
    kept.land({("s", "y"): words(40), ("t", "y"): words(30)})
    kept.land({("s", "z"): words(40, 100)})
    materialize(kept, source={"holdout": HoldoutSettings(documents=7)})
    held = Counter(
        (row["landed_path"], row["split"]) for row in table(kept) if row["split"] == "validation"
    )
    assert held == {("y", HELD_OUT_SPLIT): 14}


def test_another_seed_holds_out_others(kept):
    hashes = np.random.default_rng(0).integers(0, 256, (1000, 32), np.uint8)
    one, other = holdout_hashes(hashes, 0), holdout_hashes(hashes, -1)
    half = np.uint64(2**63)
    assert 200 < np.count_nonzero((one < half) & (other < half)) < 300
    assert 450 < np.count_nonzero(one < half) < 550


def test_the_hash_never_changes():
    hashes = np.arange(64, dtype=np.uint8).reshape(2, 32)
    assert holdout_hashes(hashes, 7).tolist() == [6226365352946888952, 5908808475013610558]


def test_more_held_out_than_there_are_is_refused_with_the_numbers(kept):
    kept.land({("s", "x"): words(5)})
    with pytest.raises(ConfigurationError, match=r"5 are to be held out.* kept 5; nothing would"):
        materialize(kept, source={"holdout": HoldoutSettings(documents=5)})


@pytest.mark.parametrize(
    "value",
    [{"fraction": 1.0}, {"fraction": -0.1}, {"documents": 0}, {"documents": 1, "fraction": 0.1}],
)
def test_a_holdout_that_cannot_be_is_refused(value):
    with pytest.raises(ConfigurationError, match=r"fraction|documents"):
        HoldoutSettings(**value)


def test_groups_are_frozen_and_outlive_the_source(kept):
    kept.land({("s", "x"): ["a", "b"], ("t", "x"): ["c"]}, columns=LANGUAGES)
    first = materialize(kept, source={"strata": "language"})
    with pytest.raises(PinnedRootError, match=r"strata 'url' \(held: 'language'\)"):
        materialize(kept, source={"strata": "url"})
    with pytest.raises(PinnedRootError, match="strata None"):
        materialize(kept)
    made = kept.settings(source={"strata": "language"})
    alone = [source for source in made.sources if source.name == "t"]
    object.__setattr__(made, "sources", tuple(alone))
    again = materialize_tokens(kept.root, made, kept.log)
    assert again.digest == first.digest
    assert again.num_skipped == 2


def test_without_groups_nothing_changes(kept):
    kept.land({("s", "x"): ["a"]})
    plain = materialize(kept)
    same = materialize(kept, source={"holdout": HoldoutSettings()})
    assert same.digest == plain.digest
    assert "groups" not in plain.entries[0].statistics
    assert "split" not in kept.root.read_table(plain.entries[0].objects["data"]).column_names


def test_a_trained_tokenizer_never_sees_what_is_held_out(kept):
    texts = [f"word{n} " * 5 for n in range(60)]
    kept.land({("s", "x"): texts})
    wanted = TokenizerSettings(train=TrainTokenizerSettings(vocab_size=400), eos_token=EOS)
    source = {"holdout": HoldoutSettings(documents=20)}
    pin = materialize_tokenizer(kept.root, kept.settings(tokenizer=wanted, source=source), kept.log)
    assert pin.origin["documents"] == 40


@pytest.mark.parametrize(
    "holdout", [HoldoutSettings(documents=3), HoldoutSettings(fraction=0.3, seed=5)]
)
def test_frozen_groups_are_verified_by_making_them_again(kept, holdout):
    source = {"strata": "language", "holdout": holdout}
    kept.land({("s", "x"): words(30), ("t", "x"): words(20)})
    kept.land({("s", "y"): words(30, 100)})
    materialize(kept, source=source)
    made = kept.settings(source=source)
    tasks, _ = kept_tasks(kept.root, kept.log)
    check_groups(kept.root, made, tasks)
    record = kept.root.storage.local_path("models/groups/s.json")
    value = json.loads(record.read_bytes())
    record.write_text(json.dumps(value | {"bound": value["bound"] - 1}))
    with pytest.raises(IntegrityError, match=r"models/groups/s\.json: damaged"):
        check_groups(kept.root, made, tasks)
    record.unlink()
    with pytest.raises(IntegrityError, match=r"models/groups/s\.json: missing"):
        check_groups(kept.root, made, tasks)
