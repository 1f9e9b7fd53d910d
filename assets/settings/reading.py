"""How the files of a source are read, beyond their format: the key `read` of a source.

Every option has a neutral default and belongs to some formats only; one that the format of its
source does not know is refused, so that none is set in vain.
"""

from __future__ import annotations

import codecs
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from assets.errors import ConfigurationError
from assets.settings.checks import require

_ROWS = ("jsonl", "parquet", "csv", "tsv", "dolma")
_USERS: Mapping[str, tuple[str, ...]] = {
    "columns": ("parquet",),
    "path_field": _ROWS,
    "header": ("csv", "tsv"),
    "delimiter": ("csv", "tsv"),
    "quote": ("csv", "tsv"),
    "charset": ("csv", "tsv"),
    "namespaces": ("wiki_xml",),
    "gutenberg": ("text",),
    "markup": ("wiki_xml", "latex", "rst", "markdown", "man"),
    "text_markup": _ROWS,
    "drop": _ROWS,
    "attributes": ("dolma",),
}
"""Formats that know an option; `auto` may turn out to be any of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowFilter:
    """A value in a row's metadata for which the row is dropped."""

    path: str
    """Dotted path: `attributes.toxicity`, `metadata.length`, `language_score`."""
    above: float | None = None
    below: float | None = None
    equals: Any = None
    missing: Literal["quarantine", "keep", "drop"] = "quarantine"
    """What becomes of a row without the value."""

    def __post_init__(self) -> None:
        require(self.path != "", "path: the empty string names no value")
        named = [self.above is not None or self.below is not None, self.equals is not None]
        require(sum(named) == 1, f"{self.path}: say above and/or below, or equals")


def _is_charset(name: str) -> bool:
    try:
        return codecs.lookup(name)._is_text_encoding  # noqa: SLF001 (base64 is a codec as well)
    except LookupError:
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadSettings:
    """Options of the readers; docs/sources.md says what each does with examples."""

    columns: dict[str, str] = field(default_factory=dict)
    """Parquet: dotted column path -> Arrow type (`string`, `int64`, `list<string>` ...) that every
    file must have; a file that differs is quarantined as a whole."""
    path_field: str | None = None
    """Formats with rows: key of the path of a source file whose code is the text; its extension
    names the programming language in the metadata."""

    header: tuple[str, ...] = ()
    """CSV and TSV: names of the columns, for files without a header row."""
    delimiter: str | None = None
    """CSV and TSV: one character; found in the first line of a CSV file when unset."""
    quote: str = '"'
    """CSV and TSV: the character around fields with delimiters in them; empty for none."""
    charset: str | None = None
    """CSV and TSV: the charset of files without a byte-order mark; detected when unset."""
    namespaces: tuple[int, ...] = (0,)
    """MediaWiki XML: numbers of the namespaces whose pages are read; 0 holds the articles."""
    markup: Literal["plain", "keep"] = "plain"
    """Markup languages: whether files become plain text or stay as they are written."""

    gutenberg: Literal["cut", "keep"] = "cut"
    """Text: whether the licence around the books of Project Gutenberg is cut."""
    text_markup: Literal["html", "latex", "man", "markdown", "rst", "wikitext"] | None = None
    """Formats with rows: the markup language of their texts, which then become plain text."""

    drop: tuple[RowFilter, ...] = ()
    """Formats with rows: rows are dropped that meet any of these."""
    attributes: tuple[str, ...] = ()
    """Dolma: taggers whose attributes join the documents' metadata."""

    def options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, JSON values."""
        neutral, values = ReadSettings(), dataclasses.asdict(self)
        return {
            option.name: values[option.name]
            for option in dataclasses.fields(self)
            if getattr(self, option.name) != getattr(neutral, option.name)
        }

    def check_format(self, name: str) -> None:
        """Refuse options that a format does not know.

        Raises:
            ConfigurationError: an option is set that has no meaning for the format `name`.
        """
        for option in self.options():
            users = _USERS[option]
            if name not in ("auto", *users):
                raise ConfigurationError(
                    f"read.{option}: files of format {name!r} have no such option; "
                    f"it belongs to {', '.join(users)}"
                )

    def __post_init__(self) -> None:
        require(
            self.delimiter is None or (len(self.delimiter) == 1 and self.delimiter not in "\r\n"),
            f"delimiter: {self.delimiter!r} must be one character and no line end",
        )
        require(
            len(self.quote) <= 1
            and self.quote != self.delimiter
            and self.quote not in ("\r", "\n"),
            f"quote: {self.quote!r} must be one character beside the delimiter, or empty",
        )
        require(
            self.charset is None or _is_charset(self.charset),
            f"charset: {self.charset!r} is no charset that is known here",
        )
        require(len(self.namespaces) > 0, "namespaces: name at least one; 0 holds the articles")
        require(self.path_field != "", "path_field: the empty string names no key")
