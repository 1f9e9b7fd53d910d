"""Stop words by language: how many of its language a text has.

The lists here hold function words that hardly any text of some sentences does without. A user's
own list for a language, a file of one word a line, takes the place of the list here.
"""

# ruff: noqa: RUF001 - letters of other scripts
from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from assets.cleaning.signals import STOP_WORDS as ENGLISH_STOP_WORDS, SplitTexts, split_texts
from assets.cleaning.text_column import text_array
from assets.errors import ConfigurationError
from assets.kernel import kernel

MAX_STOP_WORDS = 63
"""Of one language: a bit of an integer stands for each."""

BUNDLED = {
    "bg": "и в на за да се от е не с че по",
    "cs": "a v se na je že to s z do i které",
    "da": "og i at det er en til af på som med for",
    "de": "der die und in den von zu das mit sich des ist",
    "el": "και το να του η της με για που την από είναι",
    "en": " ".join(ENGLISH_STOP_WORDS),
    "es": "de la que el en y a los se del las un",
    "fi": "ja on ei että se oli hän mutta ovat kun tai myös",
    "fr": "de la le et les des en un du une est que",
    "hu": "a az és hogy nem is egy ez meg van volt de",
    "id": "yang dan di dengan untuk ini dari dalam tidak itu pada adalah",
    "it": "di e il la che in a per un del è con",
    "nl": "de het een van en in is dat op te zijn met",
    "no": "og i det er en på til som av for at med",
    "pl": "i w na z się do nie że to jest o jak",
    "pt": "de a o que e do da em um para com não",
    "ro": "și de în a la cu o pe care nu un din",
    "ru": "и в не на я что с по как это он но",
    "sv": "och i att det som en på är av för med till",
    "tr": "ve bir bu da de için ile çok olarak daha ne olan",
    "uk": "і в на що не з до та у за як це",
    "vi": "và của là có cho không trong được một với các những",
}
"""ISO 639-1 code and its words; whole words in exactly this case, as Gopher's."""


def words_of(files: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the stop words by language, given files for some languages.

    Raises:
        ConfigurationError: a file cannot be read, has no word, or too many.
    """
    words = {language: tuple(text.split()) for language, text in BUNDLED.items()}
    return words | {language: _read(path) for language, path in files.items()}


@cache
def _read(path: str) -> tuple[str, ...]:
    try:
        words = tuple(dict.fromkeys(Path(path).read_text(encoding="utf-8").split()))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: the stop words cannot be read: {error}") from None
    if not 1 <= len(words) <= MAX_STOP_WORDS:
        raise ConfigurationError(
            f"{path}: {len(words):,d} stop words; 1 to {MAX_STOP_WORDS} are expected"
        )
    return words


def count_stop_words(
    split: SplitTexts,
    index: np.ndarray,
    languages: np.ndarray,
    words: Mapping[str, tuple[str, ...]],
    *,
    is_distinct: bool = True,
) -> np.ndarray:
    """Return how many stop words of its language each text has; int64.

    Args:
        split: the words of all texts.
        index: numbers of the texts that are asked for, int64.
        languages: the label of each of them; one without a list has none.
        words: the list by language.
        is_distinct: each counts once, however often it occurs.
    """
    known = sorted(words)
    hashes = [split_texts(text_array([" ".join(words[name])])).word_hashes for name in known]
    bounds = np.cumsum([0, *(len(words[name]) for name in known)], dtype=np.int64)
    listed = [found[: len(words[name])] for name, found in zip(known, hashes, strict=True)]
    numbers = {name: number for number, name in enumerate(known)}
    lists = np.array([numbers.get(label, -1) for label in languages.tolist()], np.int64)
    counts = np.zeros(len(index), np.int64)
    _count_all(
        split.word_bounds,
        split.word_hashes,
        index,
        lists,
        bounds,
        np.concatenate(listed),
        is_distinct,
        counts,
    )
    return counts


@kernel
def _count_all(
    word_bounds: Any,
    word_hashes: Any,
    index: Any,
    lists: Any,
    bounds: Any,
    listed: Any,
    is_distinct: bool,
    counts: Any,
) -> None:
    for number in range(len(index)):
        if lists[number] < 0:
            continue
        first, last = bounds[lists[number]], bounds[lists[number] + 1]
        seen = 0
        for word in range(word_bounds[index[number]], word_bounds[index[number] + 1]):
            for place in range(first, last):
                if word_hashes[word] == listed[place]:
                    bit = 1 << (place - first)
                    counts[number] += not is_distinct or seen & bit == 0
                    seen |= bit
                    break
            if is_distinct and counts[number] == last - first:
                break
