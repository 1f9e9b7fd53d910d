"""The engine that encodes: the fastest one that gives exactly the ids of `tokenizers`.

`tokenizers` is the reference. gigatoken and fastokens give the same ids 20 to 100 times faster, but
both are young. So an engine is taken only if it loads the tokenizer and encodes a built-in text
like the reference (`conformance.py`); else the next one is tried, with a warning that is counted in
the run's report. Texts with characters that an engine takes otherwise, because it knows another
version of Unicode, go to the reference (`doubtful.py`). A share of all documents is encoded by both
for ever, and the first difference stops the run. Which engine encoded never shows in a byte: the
ids are the reference's.

An engine takes Arrow buffers and gives one flat array; no Python statement runs per token. It is
given as much text at once as its memory allows (`batch_bytes`); how much that is never shows.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import logging
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tokenizers

from assets.errors import ConfigurationError, IntegrityError
from assets.tokenizing.conformance import conformance_texts
from assets.tokenizing.doubtful import Flags, doubtful_characters, texts_with
from assets.tokenizing.word_cuts import cut_behind_words, cuts_behind_words

REFERENCE = "tokenizers"
SAMPLE_EVERY = 2048
"""Of so many documents one is encoded by the reference too."""
SAMPLE_BYTES = 1 << 12
"""Of a longer sampled document its first bytes are compared. The reference takes sixty times as
long as the fastest engine: comparing costs at most 3 % of encoding, and less the longer documents
are."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class FlatIds:
    """The ids of some texts, one after the other."""

    ids: np.ndarray[Any, np.dtype[np.uint32]]
    """(offsets[-1],)."""
    offsets: np.ndarray[Any, np.dtype[np.int64]]
    """(texts + 1,): text i has ids[offsets[i]:offsets[i + 1]]."""

    def of_text(self, row: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """Return the ids of one text."""
        return self.ids[self.offsets[row] : self.offsets[row + 1]]


class Encoder(Protocol):
    """What an engine does; special-token strings inside a text are plain text."""

    batch_bytes: int
    """UTF-8 bytes it is given at once, or one longer text: texts cannot be split exactly."""

    def encode(self, texts: pa.Array) -> FlatIds:
        """Encode texts (large_string, no nulls)."""
        ...


class ReferenceEncoder:
    """`tokenizers` itself; takes 115 bytes of memory per byte of text while it works."""

    batch_bytes = 1 << 20

    def __init__(self, reference: tokenizers.Tokenizer) -> None:
        self._reference = reference

    def encode(self, texts: pa.Array) -> FlatIds:
        """Encode texts."""
        found = self._reference.encode_batch_fast(texts.to_pylist(), add_special_tokens=False)
        ids = [np.array(item.ids, np.uint32) for item in found]
        offsets = np.zeros(len(ids) + 1, np.int64)
        np.cumsum([len(item) for item in ids], out=offsets[1:])
        return FlatIds(ids=np.concatenate([np.zeros(0, np.uint32), *ids]), offsets=offsets)


class GigatokenEncoder:
    """gigatoken on Arrow's own buffers, on the calling thread.

    It takes about 2 bytes of memory per byte of text, and some milliseconds per call.
    """

    batch_bytes = 16 << 20

    def __init__(self, value: dict[str, Any]) -> None:
        import awkward  # noqa: PLC0415 (0.3 s, and only where this engine runs)
        from gigatoken.gigatoken_rs import load_hf_json  # noqa: PLC0415

        self._awkward = awkward
        # It has no switch for special tokens: without them their strings are plain text.
        added = [token for token in value.get("added_tokens") or [] if not token.get("special")]
        self._engine = load_hf_json(json.dumps({**value, "added_tokens": added}))

    def encode(self, texts: pa.Array) -> FlatIds:
        """Encode texts without copying them."""
        offsets, data = texts.buffers()[1:]
        if len(texts) == 0 or data is None:
            return FlatIds(ids=np.zeros(0, np.uint32), offsets=np.zeros(len(texts) + 1, np.int64))
        contents = self._awkward.contents
        starts = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        letters = contents.NumpyArray(
            np.frombuffer(data, np.uint8), parameters={"__array__": "char"}
        )
        strings = contents.ListOffsetArray(
            self._awkward.index.Index64(starts), letters, parameters={"__array__": "string"}
        )
        found = self._engine.encode_batch(self._awkward.Array(strings), parallel=False).layout
        return FlatIds(ids=found.content.data, offsets=found.offsets.data)


class FastokensEncoder:
    """fastokens; takes about 6 bytes of memory per byte of text."""

    batch_bytes = 4 << 20

    def __init__(self, value: dict[str, Any]) -> None:
        from fastokens import Tokenizer  # noqa: PLC0415 (only where this engine runs)

        self._engine = Tokenizer.from_json_str(json.dumps(value))

    def encode(self, texts: pa.Array) -> FlatIds:
        """Encode texts."""
        ids, offsets = self._engine.encode_batch_flat(
            texts.to_pylist(), add_special_tokens=False, split_special_tokens=True
        )
        return FlatIds(ids=np.frombuffer(ids, np.uint32), offsets=np.frombuffer(offsets, np.int64))


FAST_ENGINES: dict[str, Callable[[dict[str, Any]], Encoder]] = {
    "gigatoken": GigatokenEncoder,
    "fastokens": FastokensEncoder,
}
"""Engines that may take the reference's place, the fastest first."""

ENGINE_NAMES = ("auto", *FAST_ENGINES, REFERENCE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """The engine in use, beside the reference that it is compared with."""

    name: str
    encoder: Encoder
    reference: ReferenceEncoder
    fallbacks: tuple[tuple[str, str], ...] = ()
    """(engine, reason) of those that were tried before this one."""
    doubtful: Flags | None = None
    """Characters whose texts the reference encodes (`doubtful.py`); None: there are none."""
    cuts_words: bool = False
    """Of such texts it encodes what stands around one alone (`word_cuts.py`)."""

    @property
    def version(self) -> str:
        """Version of the library."""
        return library_version(self.name)

    def encode(self, texts: pa.Array) -> FlatIds:
        """Encode texts (large_string, no nulls).

        Raises:
            IntegrityError: the engine failed; the reference's own errors pass.
        """
        rows = self._doubtful_rows(texts)
        if not len(rows):
            return self._encode(texts)
        if not self.cuts_words:
            return self._encode_both(texts, rows)
        pieces, starts = cut_behind_words(texts, rows)
        of_rows = [np.arange(starts[row], starts[row + 1]) for row in rows.tolist()]
        cut = np.concatenate(of_rows)
        flat = self._encode_both(pieces, cut[self._doubtful_rows(pieces.take(pa.array(cut)))])
        return FlatIds(ids=flat.ids, offsets=flat.offsets[starts])

    def _doubtful_rows(self, texts: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.zeros(0, np.int64) if self.doubtful is None else texts_with(texts, self.doubtful)

    def _encode_both(self, texts: pa.Array, rows: np.ndarray[Any, np.dtype[np.int64]]) -> FlatIds:
        """Encode texts, those of `rows` with the reference in place of what the engine gives."""
        mine = slices(texts.take(pa.array(rows)), self.reference.batch_bytes)
        return _spliced(
            self._encode(texts), _joined([self.reference.encode(piece) for piece in mine]), rows
        )

    def _encode(self, texts: pa.Array) -> FlatIds:
        try:
            pieces = [
                self.encoder.encode(piece) for piece in slices(texts, self.encoder.batch_bytes)
            ]
            return pieces[0] if len(pieces) == 1 else _joined(pieces)
        except BaseException as error:  # a panic of Rust is no Exception
            if _is_stop(error) or self.name == REFERENCE:
                raise
            raise IntegrityError(
                f"{self.name} {self.version} failed on a text: {error}; {_remedy(self.name)}"
            ) from error

    def compare(self, texts: pa.Array, found: FlatIds, row: int, where: str) -> None:
        """Compare what the engine gave for one of some texts with the reference.

        Raises:
            IntegrityError: the ids differ; names the document and the first difference.
        """
        if self.name == REFERENCE:
            return
        data = texts[row].as_buffer().to_pybytes()
        sample = pa.array([data[:SAMPLE_BYTES].decode(errors="ignore")], pa.large_string())
        ids = found.of_text(row) if len(data) <= SAMPLE_BYTES else self.encode(sample).ids
        expected = self.reference.encode(sample).ids
        if not np.array_equal(ids, expected):
            raise IntegrityError(
                f"{where}: {self.name} {self.version} does not give the ids of {REFERENCE} "
                f"{tokenizers.__version__}: {_first_difference(ids, expected)}; what it encoded "
                f"before was compared by sample only. {_remedy(self.name)}"
            )


def slices(texts: pa.Array, num_bytes: int) -> Iterator[pa.Array]:
    """Yield slices of up to `num_bytes` of text, or one longer text."""
    ends = np.cumsum(pc.binary_length(texts).to_numpy(zero_copy_only=False))
    start = 0
    while start < len(texts):
        before = int(ends[start - 1]) if start else 0
        end = max(int(np.searchsorted(ends, before + num_bytes, side="right")), start + 1)
        yield texts.slice(start, end - start)
        start = end


def _joined(pieces: list[FlatIds]) -> FlatIds:
    sizes = [np.diff(piece.offsets) for piece in pieces]
    offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]))
    ids = np.concatenate([np.zeros(0, np.uint32), *(piece.ids for piece in pieces)])
    return FlatIds(ids=ids, offsets=offsets)


def _spliced(flat: FlatIds, others: FlatIds, rows: np.ndarray[Any, Any]) -> FlatIds:
    """Return `flat` with the ids of `others` in place of those of `rows`.

    Where they are as many, they are put over the old ones: marks in another order are other ids,
    rarely more of them, and all else need not be copied.
    """
    lengths, sizes = np.diff(flat.offsets), np.diff(others.offsets)
    is_over = (lengths[rows] == sizes) & flat.ids.flags.writeable
    for place, row in zip(np.flatnonzero(is_over).tolist(), rows[is_over].tolist(), strict=True):
        flat.of_text(row)[:] = others.of_text(place)
    if is_over.all():
        return flat
    lengths[rows] = sizes
    parts, begin = [], 0
    for place, row in zip(np.flatnonzero(~is_over).tolist(), rows[~is_over].tolist(), strict=True):
        parts += [flat.ids[begin : flat.offsets[row]], others.of_text(place)]
        begin = flat.offsets[row + 1]
    return FlatIds(
        ids=np.concatenate([*parts, flat.ids[begin:]]),
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
    )


class Sample:
    """Which documents of a part are compared: one in `SAMPLE_EVERY`, whatever encodes them."""

    def __init__(self, part: str) -> None:
        self._next = zlib.crc32(part.encode()) % SAMPLE_EVERY
        self.count = 0
        """Documents taken so far."""

    def take(self, num_documents: int) -> list[int]:
        """Return which of the next documents are compared."""
        taken = list(range(self._next, num_documents, SAMPLE_EVERY))
        self._next += SAMPLE_EVERY * len(taken) - num_documents
        self.count += len(taken)
        return taken


@functools.cache
def library_version(name: str) -> str:
    """Return the version of an installed library; finding it takes milliseconds."""
    return importlib.metadata.version(name)


def load_engine(data: bytes, reference: tokenizers.Tokenizer, *, wanted: str = "auto") -> Engine:
    """Return the first engine that loads a tokenizer and passes the conformance test.

    Args:
        data: bytes of tokenizer.json.
        reference: the same tokenizer, set to encode special-token strings as plain text.
        wanted: one of `ENGINE_NAMES`; only `auto` falls back.

    Raises:
        ConfigurationError: the wanted engine is not installed, does not load the tokenizer, or
            gives other ids.
    """
    plain = ReferenceEncoder(reference)
    value = json.loads(data)
    failed: list[tuple[str, str]] = []
    for name in _candidates(wanted):
        tried = _try(name, value, reference)
        if not isinstance(tried, str):
            encoder, doubtful = tried
            return Engine(
                name=name,
                encoder=encoder,
                reference=plain,
                fallbacks=tuple(failed),
                doubtful=doubtful,
                cuts_words=cuts_behind_words(value),
            )
        if wanted != "auto":
            raise ConfigurationError(
                f"engine.tokenizer: {name} cannot take the place of {REFERENCE}: {tried}; "
                "set it to auto"
            )
        logger.warning("%s cannot encode with this tokenizer: %s", name, tried)
        failed.append((name, tried))
    return Engine(name=REFERENCE, encoder=plain, reference=plain, fallbacks=tuple(failed))


def _candidates(wanted: str) -> list[str]:
    if wanted == "auto":
        return list(FAST_ENGINES)
    return [] if wanted == REFERENCE else [wanted]


def _try(
    name: str, value: dict[str, Any], reference: tokenizers.Tokenizer
) -> tuple[Encoder, Flags] | str:
    """Return a working encoder and the characters that it is not trusted with, or why not."""
    try:
        # What cuts or pads a text is not part of encoding a document.
        encoder = FAST_ENGINES[name]({**value, "truncation": None, "padding": None})
        added = [token.content for token in reference.get_added_tokens_decoder().values()]
        texts = pa.array(conformance_texts(added), pa.large_string())
        difference = find_difference(encoder, ReferenceEncoder(reference), texts)
        if difference is None:
            return encoder, _doubtful(encoder, ReferenceEncoder(reference))
    except BaseException as error:  # a panic of Rust is no Exception
        if _is_stop(error):
            raise
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return difference


def _doubtful(encoder: Encoder, reference: Encoder) -> Flags:
    def difference(texts: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
        found, expected = encoder.encode(texts), reference.encode(texts)
        is_same = [
            np.array_equal(found.of_text(row), expected.of_text(row)) for row in range(len(texts))
        ]
        return np.flatnonzero(~np.array(is_same, bool))

    return doubtful_characters(difference)


def find_difference(encoder: Encoder, reference: Encoder, texts: pa.Array) -> str | None:
    """Return where an engine's ids first differ from the reference's; None if they are equal."""
    found, expected = encoder.encode(texts), reference.encode(texts)
    if len(found.offsets) != len(expected.offsets):
        return f"{len(found.offsets) - 1:,d} results for {len(texts):,d} texts"
    for row in range(len(texts)):
        left, right = found.of_text(row), expected.of_text(row)
        if not np.array_equal(left, right):
            return f"text {row:,d} of the conformance test: {_first_difference(left, right)}"
    return None


def _first_difference(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> str:
    shared = min(len(found), len(expected))
    at = int(np.append(np.flatnonzero(found[:shared] != expected[:shared]), shared)[0])
    return (
        f"{len(found):,d} ids instead of {len(expected):,d}, the first difference is at {at:,d}: "
        f"{found[at : at + 3].tolist()} instead of {expected[at : at + 3].tolist()}"
    )


def _is_stop(error: BaseException) -> bool:
    return isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError)


def _remedy(name: str) -> str:
    return (
        f"set `engine: {{tokenizer: {REFERENCE}}}` (slower, the same ids), remove the parts that "
        f"{name} encoded, and report the text to its authors"
    )
