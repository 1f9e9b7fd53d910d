"""How the files of a source are read, beyond their format: the key `read` of a source.

Every option has a neutral default and belongs to some formats only; one that the format of its
source does not know is refused, so that none is set in vain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from assets.errors import ConfigurationError
from assets.settings.checks import require

_USERS: Mapping[str, tuple[str, ...]] = {
    "columns": ("parquet",),
    "path_field": ("jsonl", "parquet"),
    "namespaces": ("wiki_xml",),
    "markup": ("wiki_xml",),
}
"""Formats that know an option; `auto` may turn out to be any of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadSettings:
    """Options of the readers; docs/sources.md says what each does with examples."""

    columns: dict[str, str] = field(default_factory=dict)
    """Parquet: dotted column path -> Arrow type (`string`, `int64`, `list<string>` ...) that every
    file must have; a file that differs is quarantined as a whole."""
    path_field: str | None = None
    """Jsonl and Parquet: key of the path of a source file whose code is the text; its extension
    names the programming language in the metadata."""

    namespaces: tuple[int, ...] = (0,)
    """MediaWiki XML: numbers of the namespaces whose pages are read; 0 holds the articles."""
    markup: Literal["plain", "keep"] = "plain"
    """Markup languages: whether files become plain text or stay as they are written."""

    def options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, JSON values."""
        neutral = ReadSettings()
        return {
            option.name: value
            for option in dataclasses.fields(self)
            if (value := getattr(self, option.name)) != getattr(neutral, option.name)
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
        require(len(self.namespaces) > 0, "namespaces: name at least one; 0 holds the articles")
        require(self.path_field != "", "path_field: the empty string names no key")
