"""Training: the same bytes whatever runs it, and every text comes back."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given, strategies as st
from tokenizers import Tokenizer

from assets.tokenizing.training import PIECE_CHARACTERS, _pieces, train_bpe

TEXTS = [f"line {number}: the quick brown fox, {number * 7} times\n" for number in range(400)]
SCRIPT = """
import hashlib, sys
sys.path.insert(0, {checkout!r})
from assets.tokenizing.training import train_bpe
texts = [f"line {{number}}: the quick brown fox, {{number * 7}} times\\n" for number in range(400)]
data = train_bpe(texts, vocab_size=400, special_tokens=["<eos>"])
print(hashlib.sha256(data).hexdigest())
"""


def train(texts=TEXTS, vocab_size=400):
    return train_bpe(texts, vocab_size=vocab_size, special_tokens=["<eos>", "<pad>"])


def test_two_processes_with_other_threads_and_hash_seeds_train_the_same_bytes():
    checkout = str(Path.cwd())
    found = set()
    for threads, seed in (("1", "1"), ("4", "2")):
        environment = os.environ | {"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT.format(checkout=checkout)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout.strip())
    assert len(found) == 1
    here = train_bpe(TEXTS, vocab_size=400, special_tokens=["<eos>"])
    assert hashlib.sha256(here).hexdigest() in found


def test_special_tokens_get_the_first_ids_and_the_vocabulary_its_size():
    tokenizer = Tokenizer.from_buffer(train())
    assert tokenizer.token_to_id("<eos>") == 0
    assert tokenizer.token_to_id("<pad>") == 1
    assert tokenizer.get_vocab_size() == 400


def test_little_text_gives_a_smaller_vocabulary():
    assert Tokenizer.from_buffer(train(["a"])).get_vocab_size() == 258


@given(st.text())
def test_every_text_comes_back(text):
    tokenizer = Tokenizer.from_buffer(DATA)
    tokenizer.encode_special_tokens = True
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


DATA = train()


def test_words_never_cross_line_ends_and_digits_are_grouped_by_three():
    tokenizer = Tokenizer.from_buffer(DATA)
    tokens = tokenizer.encode("1234567\nfox").tokens
    assert all(len(token) <= 3 for token in tokens if token.isdigit())
    assert not any("Ċ" in token and token.strip("Ċ") for token in tokens)


@given(st.integers(0, 3), st.integers(1, 60), st.randoms(use_true_random=False))
def test_pieces_are_the_text(num_pieces, line, rng):
    size = num_pieces * PIECE_CHARACTERS + rng.randrange(100)
    text = ("x" * line + "\n") * (size // (line + 1)) + "y" * (size % (line + 1))
    pieces = list(_pieces([text]))
    assert "".join(pieces) == text
    assert all(len(piece) <= PIECE_CHARACTERS for piece in pieces)


def test_a_long_line_is_cut_anyway():
    pieces = list(_pieces(["z" * (2 * PIECE_CHARACTERS + 1)]))
    assert [len(piece) for piece in pieces] == [PIECE_CHARACTERS, PIECE_CHARACTERS, 1]
