"""The rules of cleaning that decide by measured values: names, thresholds, how things are counted.

Every group can be enabled for the profiles it is about; only Gopher quality and the code rules are
from the start. A threshold of null switches one rule of a group off. Definitions: docs/cleaning.md.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from assets.settings.checks import refuse_later, require

MAX_PHRASE = 64
"""Characters of a phrase that is looked for in lines."""

_LATER = {"later": True}
"""Marks a setting that came after the first version: it enters fingerprints unless neutral."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherQualityRules:
    """Thresholds of the Gopher quality rules (arXiv 2112.11446, appendix A)."""

    enabled: bool = True
    word_splitter: str = "whitespace"
    """How words are found; the same text has other values under another splitter."""
    stop_word_counting: str = "distinct"
    """Each stop word counts once, however often it occurs."""
    min_words: int = 50
    """Words with a character that is neither punctuation nor a symbol."""
    max_words: int = 100_000
    min_mean_word_length: float = 3.0
    max_mean_word_length: float = 10.0
    max_hash_ratio: float = 0.1
    max_ellipsis_ratio: float = 0.1
    max_bullet_line_ratio: float = 0.9
    max_ellipsis_line_ratio: float = 0.3
    min_alpha_word_ratio: float = 0.8
    min_stop_words: int = 2
    """Distinct English stop words; asked of English documents only."""

    def __post_init__(self) -> None:
        refuse_later("word_splitter", self.word_splitter, accepted="whitespace")
        refuse_later("stop_word_counting", self.stop_word_counting, accepted="distinct")


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeRules:
    """Thresholds of the code rules (StarCoder, arXiv 2305.06161)."""

    enabled: bool = True
    max_line_length: int = 1000
    max_mean_line_length: float = 100.0
    min_alphanumeric_ratio: float = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherRepetitionRules:
    """Thresholds of the Gopher repetition rules (arXiv 2112.11446, table A1)."""

    enabled: bool = False
    word_splitter: str = "whitespace"
    counting: Literal["later", "all"] = "later"
    """`later`: occurrences after the first (datatrove, FineWeb). `all`: every occurrence of what is
    repeated, and denominators without whitespace (Dolma); its values are higher."""
    max_duplicate_paragraph_ratio: float | None = 0.30
    max_duplicate_paragraph_character_ratio: float | None = 0.20
    max_duplicate_line_ratio: float | None = 0.30
    max_duplicate_line_character_ratio: float | None = 0.20
    max_top_2gram_ratio: float | None = 0.20
    max_top_3gram_ratio: float | None = 0.18
    max_top_4gram_ratio: float | None = 0.16
    max_duplicate_5gram_ratio: float | None = 0.15
    max_duplicate_6gram_ratio: float | None = 0.14
    max_duplicate_7gram_ratio: float | None = 0.13
    max_duplicate_8gram_ratio: float | None = 0.12
    max_duplicate_9gram_ratio: float | None = 0.11
    max_duplicate_10gram_ratio: float | None = 0.10

    def __post_init__(self) -> None:
        refuse_later("word_splitter", self.word_splitter, accepted="whitespace")
        check_ratios(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class FineWebRules:
    """Thresholds of FineWeb's quality rules (arXiv 2406.17557; defaults are those of its code)."""

    enabled: bool = False
    word_splitter: str = "whitespace"
    min_terminal_line_ratio: float | None = 0.12
    """Filled lines that end in one of 159 sentence-ending marks of any script."""
    max_short_line_ratio: float | None = 0.67
    short_line_length: int = 30
    """The most characters of a short line."""
    max_duplicate_character_ratio: float | None = 0.01
    """Characters of repeated lines per character besides LF."""
    max_newline_word_ratio: float | None = 0.3

    def __post_init__(self) -> None:
        refuse_later("word_splitter", self.word_splitter, accepted="whitespace")
        require(self.short_line_length >= 0, "short_line_length: is negative")
        check_ratios(self, "min_terminal_line_ratio", "max_short_line_ratio")


@dataclass(frozen=True, kw_only=True, slots=True)
class C4Rules:
    """C4's rules (arXiv 1910.10683): lines that fail go, the text is rewritten to the others."""

    enabled: bool = False
    word_splitter: str = "whitespace"
    sentence_splitter: str = "terminal_marks"
    """How sentences are counted; see `assets.cleaning.c4_lines`."""
    max_word_length: int = 1000
    """Characters; a line with a longer word goes."""
    remove_citations: bool = True
    require_end_mark: bool = True
    """A line has to end in . ? ! or a quote, and not in an ellipsis; FineWeb switches this off."""
    min_words_per_line: int = 3
    drop_javascript: bool = True
    drop_policy: bool = True
    """Lines about cookies, privacy and terms of use."""
    max_lorem_ipsum_lines: int | None = 0
    """Above it the document is dropped, as for the following one."""
    max_curly_bracket_lines: int | None = 0
    min_sentences: int | None = 5

    def __post_init__(self) -> None:
        refuse_later("word_splitter", self.word_splitter, accepted="whitespace")
        refuse_later("sentence_splitter", self.sentence_splitter, accepted="terminal_marks")
        require(self.max_word_length >= 1, f"max_word_length: {self.max_word_length} is below 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class WebLineRules:
    """Boilerplate lines of web pages go (RefinedWeb, as in DCLM); see `assets.cleaning.web_lines`.

    A document that loses too much by it is dropped.
    """

    enabled: bool = False
    word_splitter: str = "whitespace"
    max_uppercase_ratio: float = 0.5
    max_digit_ratio: float = 0.999999
    min_words: int = 2
    drop_counters: bool = True
    phrase_words: int = 10
    """The most words of a line that goes for a phrase."""
    start_phrases: tuple[str, ...] = ("sign-in",)
    end_phrases: tuple[str, ...] = ("read more...",)
    phrases: tuple[str, ...] = ("items in cart",)
    max_removed_word_ratio: float | None = 0.05

    def __post_init__(self) -> None:
        refuse_later("word_splitter", self.word_splitter, accepted="whitespace")
        for phrase in (*self.start_phrases, *self.end_phrases, *self.phrases):
            require(
                phrase.isascii() and 0 < len(phrase) <= MAX_PHRASE,
                f"the phrase {phrase!r} must be of 1 to {MAX_PHRASE} ASCII characters",
            )
        check_ratios(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class ParagraphRules:
    """The paragraph rule of mC4 (arXiv 2010.11934): three long lines."""

    enabled: bool = False
    min_third_longest_line: int = 200
    """Characters of the third longest line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShareRules:
    """Greatest shares of words and characters that prose has few of."""

    enabled: bool = False
    word_splitter: str = "whitespace"
    max_caps_word_ratio: float | None = 0.3
    """All-caps words of two characters or more, per word."""
    max_special_character_ratio: float | None = 0.1
    """Characters that are neither letters, digits, marks nor whitespace, per character."""
    max_base64_ratio: float | None = None
    """Characters in runs of 64 or more from the alphabet of base64, per character."""
    max_hex_ratio: float | None = None
    """Characters in runs of 8 or more bytes written in hexadecimal, per character."""

    def __post_init__(self) -> None:
        refuse_later("word_splitter", self.word_splitter, accepted="whitespace")
        check_ratios(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class CleaningRules:
    """The rules a profile applies, by name."""

    gopher_quality: GopherQualityRules = field(default_factory=GopherQualityRules)
    code: CodeRules = field(default_factory=CodeRules)
    web_lines: WebLineRules = field(default_factory=WebLineRules)
    c4: C4Rules = field(default_factory=C4Rules)
    shares: ShareRules = field(default_factory=ShareRules)
    fineweb: FineWebRules = field(default_factory=FineWebRules)
    paragraphs: ParagraphRules = field(default_factory=ParagraphRules)
    gopher_repetition: GopherRepetitionRules = field(default_factory=GopherRepetitionRules)


def check_ratios(rules: Any, *names: str) -> None:
    """Require every ratio of a group, or those of some names, to be null or in [0, 1]."""
    for name in names or [item.name for item in dataclasses.fields(rules)]:
        value = getattr(rules, name)
        if name.endswith("_ratio") and value is not None:
            require(0.0 <= value <= 1.0, f"{name}: {value} is outside [0, 1]")


def rules_identity(rules: Any) -> dict[str, Any] | None:
    """Return a group of rules as it enters fingerprints; a disabled one has no thresholds.

    A group that came later and is off is None: it leaves fingerprints alone.
    """
    if not rules.enabled:
        return {"enabled": False} if type(rules)().enabled else None
    return {
        item.name: getattr(rules, item.name)
        for item in dataclasses.fields(rules)
        if not (item.metadata == _LATER and getattr(rules, item.name) == item.default)
    }
