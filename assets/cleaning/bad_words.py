"""Which texts hold an entry of a list of bad words of their language (C4's rule about documents).

Lists are files of a user's, one entry a line, as the lists known as LDNOOBW are. Case is ignored.
An entry counts where no letter, digit, mark or underscore stands on either side; in Chinese,
Japanese and Thai wherever it stands. Matching is by RE2, in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.errors import ConfigurationError

UNBORDERED = ("ja", "th", "zh")
_ASCII_SIGN = re.compile(r"[!-/:-@\[-^`{-~]")
_BORDER = r"[^\pL\pM\pN_]"


def has_bad_words(
    texts: pa.LargeStringArray, languages: np.ndarray, files: Mapping[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each text has a bad word, and whether its language has a list; both bool.

    Raises:
        ConfigurationError: a list cannot be read, is empty or too large.
    """
    found = np.zeros(len(texts), np.bool_)
    listed = np.zeros(len(texts), np.bool_)
    for language, path in sorted(files.items()):
        places = np.flatnonzero(languages == language)
        chosen = texts.take(pa.array(places))
        matches = pc.match_substring_regex(chosen, read_pattern(path, language), ignore_case=True)
        found[places] = np.asarray(matches)
        listed[places] = True
    return found, listed


@cache
def read_pattern(path: str, language: str) -> str:
    """Return the regular expression of a list.

    Raises:
        ConfigurationError: see `has_bad_words`.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: the bad words cannot be read: {error}") from None
    entries = sorted({line.strip() for line in lines if line.strip()})
    if not entries:
        raise ConfigurationError(f"{path}: there is no word in the list")
    pattern = "|".join(_ASCII_SIGN.sub(r"\\\g<0>", entry) for entry in entries)
    if language not in UNBORDERED:
        pattern = f"(?:^|{_BORDER})(?:{pattern})(?:$|{_BORDER})"
    try:
        pc.match_substring_regex(pa.array([""], pa.large_string()), pattern, ignore_case=True)
    except pa.ArrowInvalid as error:
        raise ConfigurationError(
            f"{path}: {len(entries):,d} entries are too many for one list: {error}"
        ) from None
    return pattern
