"""Which tokens of a document nobody should learn to write: those that touch a span of its text.

Cleaning leaves spans (what PII was replaced by) in UTF-8 bytes of the text. A token is
masked if it holds at least one byte of a span of a kind that `tokenizer.mask_spans` names. The kind
`boilerplate` is found here: the lines that the web line rules would take out, where the text is to
stay whole but nobody should learn to write them. Where
the bytes of the ids are the bytes of the text, tokens are found by adding up their lengths; where
a normalizer changed the text, or the tokenizer is not byte-level, the reference's own offsets say
which characters a token came from. EOS and BOS are never masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import tokenizers

from assets.cleaning.web_lines import find_web_lines
from assets.errors import IntegrityError
from assets.settings.rules import WebLineRules
from assets.tokenizing.encode import EncodedTexts
from assets.tokenizing.engine import FlatIds
from assets.tokenizing.token_bytes import TokenBytes
from assets.tokenizing.token_parts import RANGES

Array = np.ndarray[Any, Any]

BOILERPLATE = "boilerplate"
"""The kind of lines that `assets.cleaning.web_lines` takes for boilerplate, with its defaults."""
BOILERPLATE_RULES = WebLineRules()


@dataclass(frozen=True, slots=True)
class MaskedTokens:
    """The masked tokens of some documents."""

    ranges: pa.Array
    """`token_parts.RANGES` (documents,)."""
    by_kind: dict[str, int]
    """Tokens touched by each kind of span; one token may count for several."""
    total: int
    """Masked tokens."""


class SpanMasker:
    """Turns spans of texts into ranges of tokens."""

    def __init__(
        self, kinds: Sequence[str], table: TokenBytes | None, reference: tokenizers.Tokenizer
    ) -> None:
        """Mask spans whose kind is in `kinds`; `name*` is every kind that begins with `name`.

        `BOILERPLATE` is masked only where it is named in full.
        """
        self._names = frozenset(kind for kind in kinds if not kind.endswith("*"))
        self._prefixes = tuple(kind[:-1] for kind in kinds if kind.endswith("*"))
        self._table, self._reference = table, reference

    def find(self, texts: pa.Array, spans: pa.Array, encoded: EncodedTexts) -> MaskedTokens:
        """Return the masked tokens of documents.

        Args:
            texts: as they were encoded (texts,).
            spans: `assets.document.SPANS` (texts,).
            encoded: their documents.

        Raises:
            IntegrityError: a span does not lie in its text.
        """
        flat, by_kind = encoded.flat, dict[str, int]()
        of_text: dict[int, list[tuple[int, int]]] = {}
        for row, wanted in self._wanted(texts, spans).items():
            if wanted and flat.offsets[row] < flat.offsets[row + 1]:
                of_text[row] = self._ranges(texts, row, wanted, flat, by_kind)
        found = [
            _inside(of_text.get(row, ()), first - int(flat.offsets[row]), size, encoded.before)
            for row, first, size in zip(
                encoded.rows.tolist(), encoded.firsts.tolist(), encoded.sizes.tolist(), strict=True
            )
        ]
        total = sum(item["end"] - item["start"] for ranges in found for item in ranges)
        return MaskedTokens(pa.array(found, RANGES), by_kind, total)

    def _wanted(self, texts: pa.Array, spans: pa.Array) -> dict[int, list[dict[str, Any]]]:
        """Return the spans to mask, by text."""
        found: dict[int, list[dict[str, Any]]] = {}
        for row in np.flatnonzero(spans.is_valid().to_numpy(zero_copy_only=False)).tolist():
            found[row] = [span for span in spans[row].as_py() if self._is_meant(span["kind"])]
        if BOILERPLATE in self._names:
            for row, start, end in find_web_lines(texts, BOILERPLATE_RULES).tolist():
                span = {"start": start, "end": end, "kind": BOILERPLATE}
                found.setdefault(row, []).append(span)
        return found

    def _is_meant(self, kind: str) -> bool:
        return kind in self._names or kind.startswith(self._prefixes)

    def _ranges(
        self,
        texts: pa.Array,
        row: int,
        spans: Sequence[dict[str, Any]],
        flat: FlatIds,
        by_kind: dict[str, int],
    ) -> list[tuple[int, int]]:
        """Return the ranges of ids that touch the spans of one text, sorted and disjoint."""
        data = texts[row].as_buffer().to_pybytes()
        for span in spans:
            if not 0 <= span["start"] <= span["end"] <= len(data):
                raise IntegrityError(
                    f"a span covers bytes {span['start']:,d} to {span['end']:,d} of a text of "
                    f"{len(data):,d} bytes"
                )
        starts, ends = self._token_places(data, flat.of_text(row))
        ranges = []
        for span in spans:
            if span["start"] == span["end"]:
                continue
            first = int(np.searchsorted(ends, span["start"], side="right"))
            last = int(np.searchsorted(starts, span["end"], side="left"))
            if first < last:
                by_kind[span["kind"]] = by_kind.get(span["kind"], 0) + last - first
                ranges.append((first, last))
        return _joined(sorted(ranges))

    def _token_places(self, data: bytes, ids: Array) -> tuple[Array, Array]:
        """Return the first byte of the text that each id came from, and the one behind the last."""
        if self._table is not None and self._table.decode(ids) == data:
            ends = np.cumsum(self._table.lengths_of(ids))
            return np.concatenate(([0], ends[:-1])), ends
        text = data.decode()
        encoding = self._reference.encode(text, add_special_tokens=False)
        if not np.array_equal(np.asarray(encoding.ids, np.uint32), ids):
            raise IntegrityError("the reference gives other ids than the engine")
        places = np.asarray(encoding.offsets, np.int64).reshape(-1, 2)
        # Offsets count characters; several tokens may share one.
        lengths = np.array([len(character.encode()) for character in text], np.int64)
        byte_of = np.concatenate(([0], np.cumsum(lengths)))
        return byte_of[places[:, 0]], np.maximum.accumulate(byte_of[places[:, 1]])


def _inside(
    ranges: Sequence[tuple[int, int]], begin: int, size: int, before: int
) -> list[dict[str, int]]:
    """Return what ranges of a text's ids cover of the document that is ids begin + [0, size)."""
    return [
        {"start": max(start - begin, 0) + before, "end": min(end - begin, size) + before}
        for start, end in ranges
        if start < begin + size and end > begin
    ]


def _joined(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
