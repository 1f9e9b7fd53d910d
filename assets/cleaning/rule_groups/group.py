"""A group of rules: what it measures of texts, and the comparisons it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from assets.cleaning.lines import SplitLines, split_lines
from assets.cleaning.rules import Rule, Signal
from assets.cleaning.signals import SplitTexts, split_texts
from assets.settings.rules import WordSplitter

LANGUAGES_WITHOUT_SPACES = ("zh", "wuu", "yue", "ja", "th", "lo", "km", "my", "bo", "dz")


class Measured:
    """Some texts, split once, and which of them are still in."""

    def __init__(
        self,
        texts: pa.LargeStringArray,
        languages: Sequence[str],
        paths: Sequence[str] | None = None,
        root_url: str | None = None,
    ) -> None:
        self.texts = texts
        self.root_url = root_url
        """Of the root that holds frozen models."""
        self._splits: dict[WordSplitter, SplitTexts] = {}
        self.index = np.arange(len(texts), dtype=np.int64)
        """Numbers of the texts that are still in, ascending; signals are of these."""
        self._languages = np.array(languages, np.str_)
        self._paths = [""] * len(texts) if paths is None else paths

    @cached_property
    def lines(self) -> SplitLines:
        """The lines of all texts, split when the first rule asks for them."""
        return split_lines(self.texts)

    def split(self, splitter: WordSplitter = "whitespace") -> SplitTexts:
        """Return the words of all texts, split when the first rule asks for them."""
        if splitter not in self._splits:
            self._splits[splitter] = split_texts(self.texts, splitter)
        return self._splits[splitter]

    def counts(self, splitter: WordSplitter = "whitespace") -> np.ndarray:
        """Return the counts of the texts still in, columns as in `COUNTS`."""
        counts: np.ndarray = self.split(splitter).counts[self.index]
        return counts

    @property
    def languages(self) -> np.ndarray:
        """The language label of each text still in, "" where there is none."""
        return self._languages[self.index]

    @property
    def paths(self) -> list[str]:
        """The landed path of each text still in, "" where there is none."""
        return [self._paths[number] for number in self.index.tolist()]

    @property
    def everywhere(self) -> np.ndarray:
        """True for each text still in."""
        return np.ones(len(self.index), np.bool_)

    @property
    def spaced(self) -> np.ndarray:
        """Whether each text still in is in a language that puts spaces between words."""
        return ~np.isin(self.languages, LANGUAGES_WITHOUT_SPACES)

    def keep_only(self, kept: np.ndarray) -> None:
        """Go on with some of the texts; `kept` is a bool per text still in."""
        self.index = self.index[kept]


class RuleGroup(NamedTuple):
    """Rules that are enabled together."""

    name: str
    """Its key under `cleaning.rules`."""
    profiles: tuple[str, ...]
    """Profiles of sources that it is asked of."""
    signals: Callable[[Measured, Any], dict[str, Signal]]
    """Measures the texts still in, given the group's settings."""
    rules: Callable[[Any], tuple[Rule, ...]]
    """Its rules in their order, given the group's settings."""
