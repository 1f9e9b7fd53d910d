"""Plain files of token ids, as OLMo has them: sizes, and what can be told without a header."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.byte_range import ByteRanges
from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.shard_files import HEADER_SUFFIX, TOKENS_SUFFIX, read_header, sidecar_path

_NUMPY_MAGIC = b"\x93NUMPY"
_PROBE_IDS = 512
_HIGH_HALF_IDS = 16
"""Vocabularies up to 16 * 65,536 ids: what the high half of a uint32 id can be."""


def count_tokens(paths: Sequence[Path], dtype: np.dtype[Any]) -> NDArray[np.int64]:
    """Return how many whole ids each file holds, int64 ``(files,)``; odd bytes at an end are left.

    A file with a shard header beside it must be what the header says.

    Raises:
        FileNotFoundError: a file does not exist.
        ConfigurationError: a header says another dtype.
        IntegrityError: a header says another size.
    """
    sizes = np.array([path.stat().st_size for path in paths], np.int64).reshape(-1)
    for path in paths:
        if path.suffix == TOKENS_SUFFIX and sidecar_path(path, HEADER_SUFFIX).exists():
            header = read_header(path)
            if header.dtype != dtype:
                raise ConfigurationError(
                    f"{path} holds {header.dtype.name}, it was to be read as {dtype.name}"
                )
    return sizes // dtype.itemsize


def check_mask_sizes(
    paths: Sequence[Path], mask_paths: Sequence[Path], num_tokens: NDArray[np.int64]
) -> None:
    """Raise ValueError unless each label mask has exactly one byte per token of its file."""
    for path, mask_path, tokens in zip(paths, mask_paths, num_tokens.tolist(), strict=True):
        if mask_path.stat().st_size != tokens:
            raise ConfigurationError(
                f"masking file '{mask_path}' should be the same size as '{path}': "
                f"{mask_path.stat().st_size} bytes for {tokens} tokens"
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
