"""CRC32C of blocks: by the processor's own instruction where `google_crc32c` is, else in numpy.

The package (extra ``crc``) is some sixty times as fast, with the same result; nothing needs it.
What follows is about the way in numpy.

A CRC is a remainder of polynomials over GF(2): a block read as one polynomial, modulo the
Castagnoli polynomial P. Nothing changes if a multiple of P is added to the block first. Two
*sparse* multiples of P whose exponents are multiples of 64 bits are known here (`FOLDS`), so the
leading 64-bit words of a block are cancelled by XORing each of them into a handful of later words:
whole-array XORs, no table. That folds the 8,192 words of a 64 KiB block to the last 104; only those
are looked up, byte by byte, in tables. The multiples were found by a search for y^a + ... + 1 = 0
mod P with y = x^64; a test checks them, and the CRCs, against the definition.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

CRC_BLOCK_BYTES = 65536
"""Bytes covered by one CRC; the last block of a file may be shorter."""

POLYNOMIAL = 0x82F63B78
"""Castagnoli, bit-reflected."""

FOLDS = ((499, (192, 191, 182, 47, 0)), (104, (57, 53, 49, 19, 14, 4, 0)))
"""(a, others): y^a + sum(y^e for e in others) = 0 modulo P, y = x^64."""

_CHECK = 0xE3069283
"""CRC32C of the digits 1 to 9: the published check value."""
_TAIL_WORDS = FOLDS[-1][0]
_GROUP_BLOCKS = 64


@cache
def native_crc32c() -> Callable[[Any], int] | None:
    """Return the compiled CRC32C of the package google-crc32c, None where there is none.

    It takes bytes, or arrays of them without a copy.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says so when it has no compiled part
            package = import_module("google_crc32c")
    except ImportError:
        return None
    if getattr(package, "implementation", None) != "c":
        return None
    value: Callable[[Any], int] = package.value
    try:
        is_right = value(np.frombuffer(b"123456789", np.uint8)) == _CHECK
    except TypeError:  # a version that takes nothing but bytes
        return None
    return value if is_right else None


@cache
def _byte_table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(POLYNOMIAL), table >> 1)
    return table


@cache
def _tail_tables() -> NDArray[np.uint32]:
    """(8 * _TAIL_WORDS, 256) uint32: the remainder of byte b with n - 1 - row bytes after it."""
    rows = np.empty((8 * _TAIL_WORDS, 256), np.uint32)
    table = rows[-1] = _byte_table()
    for row in range(len(rows) - 2, -1, -1):
        after = rows[row + 1]
        rows[row] = table[after & 0xFF] ^ (after >> 8)
    return rows


def crc32c(data: bytes) -> int:
    """Return the CRC32C of ``data``, one byte at a time: the definition, for short data."""
    table = _byte_table()
    state = 0xFFFFFFFF
    for byte in data:
        state = int(table[(state ^ byte) & 0xFF]) ^ (state >> 8)
    return state ^ 0xFFFFFFFF


def _fold(words: NDArray[np.uint64]) -> None:
    """Cancel all but the last `_TAIL_WORDS` columns of ``words`` (blocks, words), in place."""
    for degree, others in FOLDS:
        end, step = words.shape[1] - degree, degree - others[0]
        start = 0 if degree == FOLDS[0][0] else max(0, words.shape[1] - FOLDS[0][0])
        for begin in range(start, end, step):
            width = min(step, end - begin)
            source = words[:, begin : begin + width]
            for exponent in others:
                target = begin + degree - exponent
                words[:, target : target + width] ^= source


def _crc_padded(
    blocks: NDArray[np.uint8],
) -> NDArray[np.uint32]:
    """CRCs of seeded uint8 rows ``(n, CRC_BLOCK_BYTES)``, which are changed in place."""
    _fold(blocks.view(np.uint64))
    tail = blocks[:, -8 * _TAIL_WORDS :]
    flat = _tail_tables().reshape(-1)
    index = tail + np.arange(0, flat.size, 256, dtype=np.int64)
    sums: NDArray[np.uint32] = np.bitwise_xor.reduce(flat[index], axis=1)
    return sums ^ np.uint32(0xFFFFFFFF)


def crc32c_blocks(data: Any) -> NDArray[np.uint32]:
    """Return the CRC32C of every 64 KiB block of ``data``.

    Args:
        data: any contiguous buffer (bytes, memoryview, array).

    Returns:
        uint32 ``(ceil(len(data) / 65536),)``; empty for empty data.
    """
    source = np.frombuffer(data, np.uint8)
    native = native_crc32c()
    if native is not None:
        begins = range(0, source.size, CRC_BLOCK_BYTES)
        blocks = (source[begin : begin + CRC_BLOCK_BYTES] for begin in begins)
        return np.fromiter(map(native, blocks), np.uint32, len(begins))
    whole, rest = divmod(source.size, CRC_BLOCK_BYTES)
    sums = np.empty(whole + bool(rest), np.uint32)
    for first in range(0, whole, _GROUP_BLOCKS):
        last = min(first + _GROUP_BLOCKS, whole)
        group = source[first * CRC_BLOCK_BYTES : last * CRC_BLOCK_BYTES].copy()
        group = group.reshape(-1, CRC_BLOCK_BYTES)
        group[:, :4] ^= 0xFF
        sums[first:last] = _crc_padded(group)
    if 0 < rest < 4:
        sums[-1] = crc32c(source[-rest:].tobytes())
    elif rest:
        # Zeros in front of a message do not change its remainder: pad there, seed at the real
        # start.
        block = np.zeros((1, CRC_BLOCK_BYTES), np.uint8)
        block[0, -rest:] = source[-rest:]
        block[0, -rest : CRC_BLOCK_BYTES - rest + 4] ^= 0xFF
        sums[-1] = _crc_padded(block)[0]
    return sums


class BlockChecksums:
    """CRCs of a stream that arrives in pieces of any length."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._sums: list[NDArray[np.uint32]] = []

    def update(self, data: Any) -> None:
        """Take the next bytes; at most one block is held back."""
        left = memoryview(data).cast("B")
        if self._pending:
            missing = CRC_BLOCK_BYTES - len(self._pending)
            self._pending += left[:missing]
            left = left[missing:]
            if len(self._pending) < CRC_BLOCK_BYTES:
                return
            self._sums.append(crc32c_blocks(bytes(self._pending)))
            self._pending.clear()
        whole = len(left) // CRC_BLOCK_BYTES * CRC_BLOCK_BYTES
        if whole:
            self._sums.append(crc32c_blocks(left[:whole]))
        self._pending += left[whole:]

    def finish(self) -> NDArray[np.uint32]:
        """Return the CRC of every block, the short last one included."""
        return np.concatenate([*self._sums, crc32c_blocks(bytes(self._pending))])
