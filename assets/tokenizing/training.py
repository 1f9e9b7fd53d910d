"""Train a byte-level BPE: bounded text in, the bytes of a tokenizer.json out.

The result depends on the texts and the settings alone. `tokenizers` counts words on all cores and
merges by (count, ids), so neither threads nor the order of a hash table show; a test compares
processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PIECE_CHARACTERS = 1 << 18
"""A longer text is trained in pieces: counting words takes tens of bytes per byte of text."""

WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""What merges never cross: contractions, a word with what precedes it, three digits, punctuation,
line
ends, white space. The split of cl100k, which OLMo 2's tokenizer has too."""

MIN_FREQUENCY = 2
"""A pair seen once is not worth an id."""


def train_bpe(texts: Iterable[str], *, vocab_size: int, special_tokens: list[str]) -> bytes:
    """Return the tokenizer.json of a byte-level BPE trained on `texts`.

    Args:
        texts: in an order that does not matter to the result.
        vocab_size: ids wanted, special tokens and 256 bytes included; little text gives fewer.
        special_tokens: get the first ids, in this order.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=MIN_FREQUENCY,
        special_tokens=special_tokens,
        # The alphabet comes as a set of strings, whose order changes from process to process.
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_pieces(texts), trainer=trainer)
    return tokenizer.to_str(pretty=True).encode()


def _pieces(texts: Iterable[str]) -> Iterator[str]:
    """Cut long texts behind a line end where there is one, so that memory stays bounded."""
    for text in texts:
        start = 0
        while len(text) - start > PIECE_CHARACTERS:
            newline = text.rfind("\n", start, start + PIECE_CHARACTERS)
            end = newline + 1 if newline > start else start + PIECE_CHARACTERS
            yield text[start:end]
            start = end
        yield text[start:]
