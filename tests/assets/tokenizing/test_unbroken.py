"""Unbroken runs: found by kind of character, kept from the engines and from training."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from assets.manifest import Manifest
from assets.settings.tokens import TokenizerSettings
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer
from assets.tokenizing.training import train_bpe
from assets.tokenizing.unbroken import first_long_run, without_long_runs
from tests.assets.tokenizing.kept_root import EOS, KeptRoot, word_tokenizer


def kind(character):
    if character.isspace():
        return 0
    if character.isalpha():
        return 1
    return 2 if character.isalnum() else 3


def plain_runs(text):
    """Return the runs of a text as strings."""
    runs: list[str] = []
    for character in text:
        if runs and kind(runs[-1][-1]) == kind(character):
            runs[-1] += character
        else:
            runs.append(character)
    return runs


@given(st.text(alphabet="aé中1٣ \n.-😀", max_size=60), st.integers(1, 12))
def test_runs_are_those_of_plain_python(text, limit):
    long = [run for run in plain_runs(text) if len(run.encode()) > limit]
    assert first_long_run(text.encode(), limit) == (len(long[0].encode()) if long else 0)
    kept = "".join(run for run in plain_runs(text) if len(run.encode()) <= limit)
    skipped = sum(len(run.encode()) for run in long)
    assert without_long_runs(text.encode(), limit) == (kept.encode(), skipped)


@pytest.mark.parametrize("character", ["a", "é", "7", " ", "=", "\n", "😀"])
def test_a_document_of_one_run_is_quarantined_with_its_size(tmp_path, character):
    kept = KeptRoot(tmp_path)
    run = character * (4096 // len(character.encode()) + 1)
    kept.land({("s", "x"): ["a b", f"c {run} d", "e"]})
    wanted = TokenizerSettings(
        path=str(word_tokenizer(tmp_path)), eos_token=EOS, max_run_bytes=4096
    )
    settings = kept.settings(tokenizer=wanted)
    object.__setattr__(settings.limits, "max_quarantined", 0.5)
    materialize_tokenizer(kept.root, settings, kept.log)
    (entry,) = materialize_tokens(kept.root, settings, kept.log).entries
    assert entry.statistics["quarantined"] == {"unbroken_run": 1}
    assert (entry.statistics["kept"], entry.statistics["in"], entry.rows) == (2, 3, 2)
    ledger = kept.root.read_table(entry.objects["ledger"]).to_pylist()[1]
    assert (ledger["decision"], ledger["rule"], ledger["threshold"]) == (
        "quarantined",
        "unbroken_run",
        4096,
    )
    assert 4096 < ledger["value"] <= 4096 + 6


def test_a_word_of_a_megabyte_passes_by_default(tmp_path):
    kept = KeptRoot(tmp_path)
    kept.land({("s", "x"): ["g" * (1 << 20), "a" * ((1 << 20) + 1), *["b"] * 200]})
    settings = kept.settings()
    materialize_tokenizer(kept.root, settings, kept.log)
    materialize_tokens(kept.root, settings, kept.log)
    (entry,) = Manifest.load(kept.root, "tokens").entries()
    assert entry.statistics["quarantined"] == {"unbroken_run": 1}
    assert entry.rows == 201


def test_training_takes_no_long_run():
    text = "the quick brown fox " * 50
    word = "q" * 3000
    trained, skipped = without_long_runs(f"{text}{word} {text}".encode())
    assert skipped == 3000
    one = train_bpe([text, " ", text], vocab_size=300, special_tokens=["<e>"])
    other = train_bpe([trained.decode()], vocab_size=300, special_tokens=["<e>"])
    assert one == other
