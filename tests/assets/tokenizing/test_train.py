"""The root's tokenizer: made once, pinned, copied to the data set, never another."""

from __future__ import annotations

import json
import re
import threading

import pytest

from assets.errors import ConfigurationError, IntegrityError, PinnedRootError, StageError
from assets.settings.tokens import TokenizerSettings, TrainTokenizerSettings
from assets.storage.local import LocalStorage
from assets.tokenizing.train import (
    PIN,
    materialize_tokenizer,
    read_pin,
    vocabulary_warning,
)
from tests.assets.tokenizing.kept_root import EOS, KeptRoot, word_tokenizer

TEXT = "the river runs past the mountain and the mountain stands\n" * 5


def trained(vocab_size=300, max_bytes=1 << 20, **others) -> TokenizerSettings:
    train = TrainTokenizerSettings(vocab_size=vocab_size, max_bytes=max_bytes)
    return TokenizerSettings(train=train, eos_token=EOS, **others)


@pytest.fixture
def kept(tmp_path):
    made = KeptRoot(tmp_path)
    made.land({("s", "a"): [TEXT, None, TEXT + "more"], ("t", "b"): ["other words entirely"]})
    return made


def test_a_path_tokenizer_is_copied_pinned_and_published(kept):
    pin = materialize_tokenizer(kept.root, kept.settings(), kept.log)
    data = word_tokenizer(kept.folder).read_bytes()
    assert kept.root.read_bytes(pin.file) == data
    assert pin.file.name == f"models/tokenizer/{pin.sha256}/tokenizer.json"
    assert kept.root.storage.read(f"dataset/tokenizer/{pin.sha256}/tokenizer.json") == data
    assert pin.dataset_entry() == {
        "sha256": pin.sha256,
        "path": f"tokenizer/{pin.sha256}/tokenizer.json",
        "vocab_size": 8,
        "eos_token_id": 7,
        "pad_token_id": 7,
    }
    assert read_pin(kept.root) == pin
    assert pin.load(kept.root).sha256 == pin.sha256


def test_training_reads_kept_documents_of_the_first_generation_alone(kept):
    kept.land({("s", "later"): ["later texts"]})
    pin = materialize_tokenizer(kept.root, kept.settings(tokenizer=trained()), kept.log)
    assert pin.origin["generation"] == 1
    assert pin.origin["documents"] == 3
    assert pin.origin["bytes"] == 2 * len(TEXT) + len("more") + len("other words entirely")


def test_later_calls_report_the_pin_and_train_nothing(kept):
    settings = kept.settings(tokenizer=trained())
    pin = materialize_tokenizer(kept.root, settings, kept.log)
    for name in ("clean", "unique"):
        kept.root.storage.remove(f"{name}/manifest.json")
    assert materialize_tokenizer(kept.root, settings, kept.log) == pin


def test_survivor_order_decides_what_is_read_up_to_max_bytes(kept):
    settings = kept.settings(tokenizer=trained(max_bytes=10), priorities={"t": 5})
    pin = materialize_tokenizer(kept.root, settings, kept.log)
    assert (pin.origin["documents"], pin.origin["bytes"]) == (1, 10)
    vocabulary = pin.load(kept.root).reference.get_vocab()
    assert pin.vocab_size == 257, "ten bytes of one text hold no pair twice"
    assert EOS in vocabulary


def test_the_same_documents_train_the_same_tokenizer_in_any_file_order(tmp_path):
    files = {("s", "a"): [TEXT], ("s", "b"): ["other words"], ("t", "c"): ["third text"]}
    pins = set()
    for number, order in enumerate((files, dict(reversed(files.items())))):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = KeptRoot(folder)
        made.land(order)
        pins.add(
            materialize_tokenizer(made.root, made.settings(tokenizer=trained()), made.log).sha256
        )
    assert len(pins) == 1


def test_a_generation_that_kept_nothing_is_passed_over(tmp_path):
    made = KeptRoot(tmp_path)
    made.land({("s", "a"): [None]})
    settings = made.settings(tokenizer=trained())
    with pytest.raises(StageError, match="1 generations kept nothing"):
        materialize_tokenizer(made.root, settings, made.log)
    made.land({("s", "b"): [TEXT]})
    assert materialize_tokenizer(made.root, settings, made.log).origin["generation"] == 2


def test_training_waits_for_unique(tmp_path):
    made = KeptRoot(tmp_path)
    made.land({("s", "a"): [TEXT]}, unique=False)
    with pytest.raises(StageError, match=r"generation 1 waits for 1 of 1 tasks of unique \(s\)"):
        materialize_tokenizer(made.root, made.settings(tokenizer=trained()), made.log)
    assert read_pin(made.root) is None


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (trained(vocab_size=301), "'vocab_size': 301"),
        (trained(pad_token="<pad>"), "pad_token '<pad>'"),
        (TokenizerSettings(train=trained().train, eos_token="<end>"), "eos_token '<end>'"),
    ],
)
def test_another_tokenizer_than_the_pinned_one_is_refused(kept, other, message):
    materialize_tokenizer(kept.root, kept.settings(tokenizer=trained()), kept.log)
    with pytest.raises(PinnedRootError, match=message):
        materialize_tokenizer(kept.root, kept.settings(tokenizer=other), kept.log)


def test_another_file_at_the_path_is_refused(kept):
    settings = kept.settings()
    materialize_tokenizer(kept.root, settings, kept.log)
    word_tokenizer(kept.folder, "a b c")
    with pytest.raises(PinnedRootError, match="has the SHA-256"):
        materialize_tokenizer(kept.root, settings, kept.log)


def test_the_frozen_copy_of_a_trained_tokenizer_may_stand_in_the_configuration(kept):
    pin = materialize_tokenizer(kept.root, kept.settings(tokenizer=trained()), kept.log)
    path = kept.root.storage.local_path(pin.file.name)
    settings = kept.settings(tokenizer=TokenizerSettings(path=str(path), eos_token=EOS))
    assert materialize_tokenizer(kept.root, settings, kept.log) == pin


def test_a_missing_file_is_named_with_the_frozen_copy(kept):
    settings = kept.settings(tokenizer=TokenizerSettings(path="none.json", eos_token=EOS))
    with pytest.raises(ConfigurationError, match=r"none\.json cannot be read: No such file"):
        materialize_tokenizer(kept.root, settings, kept.log)
    materialize_tokenizer(kept.root, kept.settings(), kept.log)
    with pytest.raises(ConfigurationError, match="the root's frozen copy is"):
        materialize_tokenizer(kept.root, settings, kept.log)


def test_an_unusable_tokenizer_pins_nothing(kept):
    path = word_tokenizer(kept.folder)
    settings = kept.settings(tokenizer=TokenizerSettings(path=str(path), eos_token="<end>"))
    with pytest.raises(ConfigurationError, match="'<end>' is not in the vocabulary"):
        materialize_tokenizer(kept.root, settings, kept.log)
    assert read_pin(kept.root) is None


def test_a_damaged_pin_is_an_error(kept):
    materialize_tokenizer(kept.root, kept.settings(), kept.log)
    kept.root.storage.local_path(PIN).write_text(json.dumps({"file": {}}))
    with pytest.raises(IntegrityError, match=r"pin\.json is damaged"):
        read_pin(kept.root)


def test_a_kill_before_the_pin_is_made_good(kept, monkeypatch):
    def killed(self, name, data):
        raise KeyboardInterrupt(name)

    settings = kept.settings(tokenizer=trained())
    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "create", killed)
        with pytest.raises(KeyboardInterrupt):
            materialize_tokenizer(kept.root, settings, kept.log)
    pin = materialize_tokenizer(kept.root, settings, kept.log)
    assert [name for name, _ in kept.root.storage.list("models/tokenizer/")] == sorted(
        [pin.file.name, PIN]
    )


def test_two_writers_agree(kept):
    settings = kept.settings(tokenizer=trained())
    found = []
    barrier = threading.Barrier(2)

    def work():
        barrier.wait()
        found.append(materialize_tokenizer(kept.root, settings, kept.log))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert found[0] == found[1]


def test_a_lost_copy_in_the_data_set_comes_back(kept):
    pin = materialize_tokenizer(kept.root, kept.settings(), kept.log)
    name = f"dataset/{pin.dataset_entry()['path']}"
    kept.root.storage.remove(name)
    materialize_tokenizer(kept.root, kept.settings(), kept.log)
    assert kept.root.storage.read(name) == kept.root.read_bytes(pin.file)


def test_a_vocabulary_smaller_than_asked_for_is_said_with_both_numbers(tmp_path, caplog):
    kept = KeptRoot(tmp_path)
    kept.land({("s", "a"): ["the cat sat on the mat " * 3]})
    wanted = TokenizerSettings(train=TrainTokenizerSettings(vocab_size=2048), eos_token=EOS)
    pin = materialize_tokenizer(kept.root, kept.settings(tokenizer=wanted), kept.log)
    assert pin.vocab_size < 300
    expected = f"2,048 ids were asked for .* 69 bytes of text gave {pin.vocab_size:,d}: "
    assert re.search(expected, caplog.text)
    assert re.search(expected, vocabulary_warning(pin) or "")


def test_a_vocabulary_as_large_as_asked_for_needs_no_word(tmp_path):
    kept = KeptRoot(tmp_path)
    kept.land({("s", "a"): ["the cat sat on the mat " * 3]})
    wanted = TokenizerSettings(train=TrainTokenizerSettings(vocab_size=262), eos_token=EOS)
    pin = materialize_tokenizer(kept.root, kept.settings(tokenizer=wanted), kept.log)
    assert vocabulary_warning(pin) is None
