"""Which unsigned integer type holds a vocabulary. Overflow is refused, never wrapped."""

from __future__ import annotations

from typing import Any

import numpy as np

from olmo_loader.errors import ConfigurationError, DtypeError

TOKEN_DTYPES = ("uint8", "uint16", "uint32", "uint64")
"""Names of the types a shard may have, smallest first. All are stored little-endian."""


SIGNED_DTYPES = ("int8", "int16", "int32", "int64")
"""Also read in plain files, as OLMo does, where others have written them; never written here."""


def smallest_token_dtype(vocab_size: int) -> np.dtype[Any]:
    """Return the smallest dtype of at least 16 bits that holds ids ``0..vocab_size - 1``.

    uint8 is read but never chosen: OLMo's and OLMo-core's readers start at uint16.

    Raises:
        ConfigurationError: ``vocab_size`` is not positive.
    """
    if vocab_size <= 0:
        raise ConfigurationError(f"a vocabulary has at least one id, not {vocab_size}")
    for name in TOKEN_DTYPES[1:]:
        if vocab_size - 1 <= np.iinfo(name).max:
            return np.dtype(name).newbyteorder("<")
    raise ConfigurationError(f"no unsigned dtype holds a vocabulary of {vocab_size} ids")


def check_token_dtype(dtype: Any, vocab_size: int | None = None) -> np.dtype[Any]:
    """Return ``dtype`` as a little-endian numpy dtype, once it is known to hold the vocabulary.

    Args:
        dtype: anything ``np.dtype`` accepts; only unsigned integers are token ids.
        vocab_size: number of ids, or None when it is not known (plain OLMo files).

    Raises:
        DtypeError: no numpy type, or not an unsigned integer.
        ConfigurationError: too small for ``vocab_size - 1``.
    """
    found = _numpy_dtype(dtype)
    if found.name not in TOKEN_DTYPES:
        raise DtypeError(
            f"token ids are stored as one of {', '.join(TOKEN_DTYPES)}, not {found.name}"
        )
    if vocab_size is not None and vocab_size - 1 > np.iinfo(found).max:
        raise ConfigurationError(
            f"{found.name} holds ids up to {np.iinfo(found).max}, the vocabulary has {vocab_size}: "
            f"use {smallest_token_dtype(vocab_size).name}"
        )
    little: np.dtype[Any] = found.newbyteorder("<")
    return little


def check_file_dtype(dtype: Any) -> np.dtype[Any]:
    """Return ``dtype`` of a plain file as a little-endian numpy dtype: integers, signed ones too.

    Raises:
        DtypeError: no numpy type, or no integer.
    """
    found = _numpy_dtype(dtype)
    if found.name not in SIGNED_DTYPES:
        return check_token_dtype(found)
    little: np.dtype[Any] = found.newbyteorder("<")
    return little


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise DtypeError(f"Value {dtype} is not a valid numpy type") from error
    return found
