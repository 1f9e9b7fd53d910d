"""Find personal data in texts and put a mark in its place; no other byte of a text changes.

::

    texts ─► pii_candidates ─► pii_contacts, pii_phones, pii_numbers, pii_secrets ─► spans
             one pass, bytes    checked one by one: checksums, tables, surroundings     │
    texts with marks ◄────────────────────────────────────────── longest kind first ◄───┘

Where ranges overlap, the one of the kind that is more certain wins: a key that holds a phone number
is a key. Ranges are half-open, in bytes of a text's UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.pii.candidates import find_candidates
from assets.cleaning.pii.card_numbers import find_cards, find_ssns
from assets.cleaning.pii.contacts import find_email, find_ipv4, find_ipv6
from assets.cleaning.pii.names import NameFinder
from assets.cleaning.pii.phones import find_phones
from assets.cleaning.pii.secret_words import find_key_blocks, find_secrets
from assets.cleaning.pii.shapes import EMAIL, IBAN, IPV6, KEY_BLOCK, NUMBER, SECRET
from assets.cleaning.text_column import text_array, text_buffers
from assets.settings.pii import KINDS, NAME, PiiSettings

_ORDER = ("secret", "email", "iban", "credit_card", "ssn", "ip_address", "phone", NAME)
"""Kinds by how certain they are."""


class Span(NamedTuple):
    """One value: bytes of the text, half-open, and its kind."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Masked:
    """Texts with marks, and where the marks stand."""

    texts: pa.LargeStringArray
    spans: Mapping[int, list[Span]]
    """By number of the text, in order, in bytes of the marked text; those without are left out."""


def find_pii(texts: pa.LargeStringArray, settings: PiiSettings) -> dict[int, list[Span]]:
    """Return by number of the text what is found in it, in order and disjoint.

    Texts without personal data and null texts are left out.
    """
    data, offsets = text_buffers(texts)
    found: dict[int, list[Span]] = {}
    candidates = find_candidates(texts)
    names = NameFinder(settings.names) if settings.names is not None else None
    borders = np.flatnonzero(np.diff(candidates[:, 0], prepend=-1, append=len(texts)))
    for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        number = int(candidates[first, 0])
        text = data[offsets[number] : offsets[number + 1]].tobytes()
        spans = _check_all(text, candidates[first:last, 1:].tolist(), settings)
        if spans:
            found[number] = spans
    if names is not None:
        for number, ranges in names.find(texts):
            spans = [*found.get(number, []), *(Span(*item, NAME) for item in ranges)]
            found[number] = disjoint(spans)
    return found


def mask_texts(
    texts: pa.LargeStringArray, found: Mapping[int, list[Span]], settings: PiiSettings
) -> Masked:
    """Put the configured mark in the place of everything that was found."""
    if not found:
        return Masked(texts=texts, spans={})
    marks = {kind: settings.replacement(kind).encode() for kind in _ORDER}
    written: list[str] = []
    spans: dict[int, list[Span]] = {}
    for number in sorted(found):
        text, spans[number] = _mask(texts[number].as_buffer().to_pybytes(), found[number], marks)
        written.append(text.decode())
    is_masked = np.zeros(len(texts), np.bool_)
    is_masked[sorted(found)] = True
    replaced = pc.replace_with_mask(texts, pa.array(is_masked), text_array(written))
    return Masked(texts=replaced, spans=spans)


def mask_text(text: str) -> str:
    """Return one text with a mark in the place of every structured kind of personal data."""
    settings = PiiSettings(kinds=KINDS)
    texts = text_array([text])
    masked: str = mask_texts(texts, find_pii(texts, settings), settings).texts[0].as_py()
    return masked


def disjoint(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, of those that overlap the one of the more certain kind."""
    by_certainty = sorted(spans, key=lambda item: (_ORDER.index(item.kind), item.start, -item.end))
    by_start: dict[int, Span] = {}
    taken = np.zeros(max((span.end for span in by_certainty), default=0), np.bool_)
    for span in by_certainty:
        if not taken[span.start : span.end].any():
            taken[span.start : span.end] = True
            by_start[span.start] = span
    return [by_start[start] for start in sorted(by_start)]


def _mask(text: bytes, spans: list[Span], marks: Mapping[str, bytes]) -> tuple[bytes, list[Span]]:
    pieces: list[bytes] = []
    moved: list[Span] = []
    at = size = 0
    for span in spans:
        mark = marks[span.kind]
        size += span.start - at
        moved.append(Span(size, size + len(mark), span.kind))
        pieces += [text[at : span.start], mark]
        size += len(mark)
        at = span.end
    pieces.append(text[at:])
    return b"".join(pieces), moved


def _check_all(text: bytes, candidates: list[list[int]], settings: PiiSettings) -> list[Span]:
    wanted = frozenset(settings.kinds)
    spans = [
        Span(start, end, kind)
        for shape, first, last in candidates
        for kind, start, end in _check(text, shape, first, last, settings, wanted)
    ]
    return disjoint(spans) if len(spans) > 1 else spans


def _check(
    text: bytes, shape: int, first: int, last: int, settings: PiiSettings, wanted: frozenset[str]
) -> Iterator[tuple[str, int, int]]:
    for kind, ranges in _checks(text, shape, first, last, settings):
        if kind in wanted:
            yield from ((kind, start, end) for start, end in ranges)


def _checks(
    text: bytes, shape: int, first: int, last: int, settings: PiiSettings
) -> Iterator[tuple[str, Iterable[tuple[int, int]]]]:
    """Yield what a shape could be, by kind; nothing is looked at before it is asked for."""
    if shape == NUMBER:
        addresses = list(find_ipv4(text, first, last))
        yield "ip_address", addresses
        if addresses == [(first, last)]:
            return
        yield "credit_card", find_cards(text, first, last)
        yield "ssn", find_ssns(text, first, last)
        yield "phone", find_phones(text, first, last, settings.phone_regions)
    elif shape == EMAIL:
        yield "email", find_email(text, first, last)
    elif shape == SECRET:
        yield "secret", find_secrets(text, first, last)
    elif shape == KEY_BLOCK:
        yield "secret", find_key_blocks(text, first)
    elif shape == IBAN:
        yield "iban", [(first, last)]
    else:
        assert shape == IPV6, f"there is no shape {shape}"
        yield "ip_address", find_ipv6(text, first, last)
