"""Plain files of token ids, as OLMo has them: sizes, and what can be told without a header."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import ByteRanges
from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.shard_files import HEADER_SUFFIX, TOKENS_SUFFIX, read_header

_NUMPY_MAGIC = b"\x93NUMPY"
_PROBE_IDS = 512
_HIGH_HALF_IDS = 16
"""Vocabularies up to 16 * 65,536 ids: what the high half of a uint32 id can be."""


def count_tokens(
    ranges: ByteRanges, names: Sequence[str], dtype: np.dtype[Any]
) -> NDArray[np.int64]:
    """Return how many whole ids each file holds, int64 ``(files,)``; odd bytes at an end are left.

    A local file with a shard header beside it must be what the header says; remote files are asked
    for their sizes only, in parallel.

    Raises:
        MissingFileError: a ``FileNotFoundError``; a file does not exist.
        ConfigurationError: a header says another dtype; a folder is among the files.
        IntegrityError: a header says another size.
    """
    sizes = np.array(ranges.sizes(names), np.int64).reshape(-1)
    if ranges.is_local:
        for name in names:
            if os.path.isdir(name):  # noqa: PTH112 - a Path costs more than the call
                raise ConfigurationError(f"{name} is a folder, not a file of ids")
            header_name = name.removesuffix(TOKENS_SUFFIX) + HEADER_SUFFIX
            if name.endswith(TOKENS_SUFFIX) and os.path.exists(header_name):  # noqa: PTH110
                _check_header(Path(name), dtype)
    return sizes // dtype.itemsize


def _check_header(path: Path, dtype: np.dtype[Any]) -> None:
    header = read_header(path)
    if header.dtype != dtype:
        raise ConfigurationError(
            f"{path} holds {header.dtype.name}, it was to be read as {dtype.name}"
        )


def check_mask_sizes(
    ranges: ByteRanges,
    names: Sequence[str],
    mask_names: Sequence[str],
    num_tokens: NDArray[np.int64],
) -> None:
    """Raise ValueError unless each label mask has exactly one byte per token of its file."""
    sizes = ranges.sizes(mask_names)
    for name, mask_name, size, tokens in zip(
        names, mask_names, sizes, num_tokens.tolist(), strict=True
    ):
        if size != tokens:
            raise ConfigurationError(
                f"masking file '{mask_name}' should be the same size as '{name}': "
                f"{size} bytes for {tokens} tokens"
            )


def check_first_ids(ranges: ByteRanges, name: str, dtype: np.dtype[Any]) -> None:
    """Look at the first ids of a file without a header, before anything is read from it.

    Raises:
        IntegrityError: a file that ``numpy.save`` wrote (its header would become tokens), or one
            whose every second uint16 is nearly zero, which is uint32 read as uint16.
    """
    head = bytes(ranges.read(name, 0, min(_PROBE_IDS * dtype.itemsize, ranges.size(name))))
    if head.startswith(_NUMPY_MAGIC):
        raise IntegrityError(
            f"{name} was written by numpy.save; token files are raw: "
            f"numpy.load(...).tofile({Path(name).name!r}) writes one"
        )
    if dtype.itemsize != 2:
        return
    ids = np.frombuffer(head, dtype, count=len(head) // 4 * 2)
    low, high = ids[::2], ids[1::2]
    if len(high) >= _PROBE_IDS // 4 and high.max() < _HIGH_HALF_IDS <= low.max():
        raise IntegrityError(
            f"{name}: every second uint16 is below {_HIGH_HALF_IDS}, so these are uint32 ids: "
            "set memmap_dtype to uint32"
        )
