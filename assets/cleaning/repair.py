"""Repair of texts that were damaged on their way, counted by kind.

================  =============================================================================
`mojibake`        lines where UTF-8 had been read as Latin-1 or Windows-1252, put right by ftfy
`zero_width`      U+200B, U+2060, U+180E, U+00AD and U+FEFF (not at the start) are removed; U+200C
                  and U+200D only between ASCII characters: other scripts need them
`spaces`          U+00A0, U+2000 to U+200A, U+202F and U+205F become U+0020
`separators`      U+2028 and U+2029 become LF
`urls`            with `strip_urls`: http://, https://, ftp:// or www. at the start of a word, up to
                  whitespace, a quote or a bracket, is cut out (marks at its end stay)
`nfc`             1 for a text that was not in Unicode normal form C
`blank_lines`     lines cut from a run of more blank ones than `max_blank_lines`
================  =============================================================================

ftfy sees a text only if a pass over its bytes finds what such damage looks like: characters whose
bytes in Windows-1252 are a multi-byte character of UTF-8. Normal form is only asked of texts with a
character that may change or combine.
"""

# ruff: noqa: PLR1714 - numba compiles comparisons faster than `in`
from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import pyarrow as pa

from assets.cleaning.characters import MAY_COMPOSE, character_flags, decode_at
from assets.cleaning.strip_urls import strip_urls
from assets.cleaning.text_column import text_array, text_array_of, text_buffers
from assets.kernel import kernel
from assets.settings.repair import RepairSettings

CHANGES = ("mojibake", "zero_width", "spaces", "separators", "nfc", "urls")
"""Names of the columns of the counts that `repair` returns."""
MOJIBAKE, ZERO_WIDTH, SPACES, SEPARATORS, NFC, URLS = range(len(CHANGES))

_LF, _SPACE = 0x0A, 0x20
_NUM_CODES = 0x2200


def _byte_classes() -> np.ndarray:
    """Return for each code point below 0x2200 the byte that it may have been, 0 for none.

    The byte as Windows-1252 or Latin-1 writes the character, from 0x80 on.
    """
    classes = np.zeros(_NUM_CODES, np.uint8)
    for byte in range(0x80, 0x100):
        classes[byte] = byte
        character = bytes([byte]).decode("windows-1252", "ignore")
        if character:
            classes[ord(character)] = byte
    classes.flags.writeable = False
    return classes


_BYTES = _byte_classes()


def repair(
    texts: pa.LargeStringArray, settings: RepairSettings
) -> tuple[pa.LargeStringArray, np.ndarray]:
    """Return the repaired texts, and counts of shape (len(texts), len(CHANGES)), int64."""
    counts = np.zeros((len(texts), len(CHANGES)), np.int64)
    if settings.mojibake:
        texts = _fix_mojibake(texts, counts)
    if settings.zero_width or settings.spaces:
        data, offsets = text_buffers(texts)
        output = np.empty(int(offsets[-1] - offsets[0]), np.uint8)
        bounds = np.zeros(len(texts) + 1, np.int64)
        _replace_all(data, offsets, settings.zero_width, settings.spaces, output, bounds, counts)
        texts = text_array_of(output[: bounds[-1]], bounds)
    if settings.strip_urls:
        texts, counts[:, URLS] = strip_urls(texts)
    return (_compose(texts, counts) if settings.nfc else texts), counts


def limit_blank_lines(
    texts: pa.LargeStringArray, most: int
) -> tuple[pa.LargeStringArray, np.ndarray]:
    """Return the texts with at most so many empty lines in a row, and the lines cut, int64."""
    data, offsets = text_buffers(texts)
    output = np.empty(int(offsets[-1] - offsets[0]), np.uint8)
    bounds = np.zeros(len(texts) + 1, np.int64)
    counts = np.zeros(len(texts), np.int64)
    _limit_all(data, offsets, most, output, bounds, counts)
    return text_array_of(output[: bounds[-1]], bounds), counts


def _fix_mojibake(texts: pa.LargeStringArray, counts: np.ndarray) -> pa.LargeStringArray:
    data, offsets = text_buffers(texts)
    suspects = np.zeros(len(texts), np.bool_)
    _find_mojibake(data, offsets, _BYTES, suspects)
    if not suspects.any():
        return texts
    import ftfy  # noqa: PLC0415 - only who repairs pays for it

    fixed: list[str | None] = texts.to_pylist()
    for number in np.flatnonzero(suspects).tolist():
        lines = str(fixed[number]).split("\n")
        for at, line in enumerate(lines):
            if not line.isascii():
                lines[at] = ftfy.fix_encoding(line)
                counts[number, MOJIBAKE] += lines[at] != line
        fixed[number] = "\n".join(lines)
    return text_array(fixed)


def _compose(texts: pa.LargeStringArray, counts: np.ndarray) -> pa.LargeStringArray:
    data, offsets = text_buffers(texts)
    suspects = np.zeros(len(texts), np.bool_)
    _find_flagged(data, offsets, character_flags(), MAY_COMPOSE, suspects)
    composed: list[str | None] | None = None
    for number in np.flatnonzero(suspects).tolist():
        text = texts[number].as_py()
        if not unicodedata.is_normalized("NFC", text):
            composed = texts.to_pylist() if composed is None else composed
            composed[number] = unicodedata.normalize("NFC", text)
            counts[number, NFC] = 1
    return texts if composed is None else text_array(composed)


@kernel
def _find_flagged(data: Any, offsets: Any, flags: Any, wanted: int, found: Any) -> None:
    for index in range(len(offsets) - 1):
        position = offsets[index]
        while position < offsets[index + 1]:
            if data[position] < 0x80:
                position += 1
                continue
            code_point, length = decode_at(data, position)
            if flags[code_point] & wanted:
                found[index] = True
                break
            position += length


@kernel
def _find_mojibake(data: Any, offsets: Any, classes: Any, found: Any) -> None:
    for index in range(len(offsets) - 1):
        position, end = offsets[index], offsets[index + 1]
        missing = 0  # continuation bytes that the character so far still needs
        while position < end:
            if data[position] < 0x80:
                missing = 0
                position += 1
                continue
            code_point, length = decode_at(data, position)
            position += length
            byte = np.int64(classes[code_point]) if code_point < len(classes) else 0
            if missing and 0x80 <= byte < 0xC0:
                missing -= 1
                if missing == 0:
                    found[index] = True
                    break
            else:
                missing = _continuations(byte)


@kernel
def _continuations(byte: Any) -> int:
    """Return how many continuation bytes follow a first byte of UTF-8; 0 for any other."""
    if 0xC2 <= byte < 0xE0:
        return 1
    if 0xE0 <= byte < 0xF0:
        return 2
    return 3 if 0xF0 <= byte < 0xF5 else 0


@kernel
def _replace_all(
    data: Any, offsets: Any, zero_width: bool, spaces: bool, output: Any, bounds: Any, counts: Any
) -> None:
    written = 0
    for index in range(len(offsets) - 1):
        start, end = offsets[index], offsets[index + 1]
        position = start
        while position < end:
            if data[position] < 0x80:
                output[written] = data[position]
                written += 1
                position += 1
                continue
            code_point, length = decode_at(data, position)
            if zero_width and _is_void(data, start, position, position + length, end, code_point):
                counts[index, ZERO_WIDTH] += 1
            elif spaces and _is_space(code_point):
                counts[index, SPACES] += 1
                output[written] = _SPACE
                written += 1
            elif spaces and (code_point == 0x2028 or code_point == 0x2029):
                counts[index, SEPARATORS] += 1
                output[written] = _LF
                written += 1
            else:
                for offset in range(length):
                    output[written + offset] = data[position + offset]
                written += length
            position += length
        bounds[index + 1] = written


@kernel
def _is_void(data: Any, start: int, position: int, after: int, end: int, code_point: int) -> Any:
    """Return whether the character at `position` is invisible and without a meaning there."""
    if code_point == 0xFEFF:
        return position > start  # at the start it is a mark, which normalisation removes
    if code_point == 0x200C or code_point == 0x200D:
        is_ascii_before = position == start or data[position - 1] < 0x80
        return is_ascii_before and (after == end or data[after] < 0x80)
    return (
        code_point == 0x200B or code_point == 0x2060 or code_point == 0x180E or code_point == 0xAD
    )


@kernel
def _is_space(code_point: int) -> bool:
    return (
        code_point == 0xA0
        or 0x2000 <= code_point <= 0x200A
        or code_point == 0x202F
        or code_point == 0x205F
    )


@kernel
def _limit_all(data: Any, offsets: Any, most: int, output: Any, bounds: Any, counts: Any) -> None:
    written = 0
    for index in range(len(offsets) - 1):
        breaks = 1  # the start of a text is the start of a line
        for position in range(offsets[index], offsets[index + 1]):
            byte = data[position]
            breaks = breaks + 1 if byte == _LF else 0
            if breaks > most + 1:
                counts[index] += 1
            else:
                output[written] = byte
                written += 1
        bounds[index + 1] = written
