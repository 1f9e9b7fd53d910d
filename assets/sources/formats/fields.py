"""Turn a row of named values into a record: text, id and url out of it, the rest is metadata.

Rows come from jsonl lines, Parquet and CSV. A name with dots that no key has as it stands is a path
into nested objects: `metadata.url` is the key url of the object metadata. An id that is not a
string becomes its JSON text (7 becomes "7").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import msgspec

from assets.settings.sources import SourceSettings
from assets.sources.formats.code_languages import find_language
from assets.sources.formats.record import Found, Lost, Record, UnusableError
from assets.sources.formats.urls import clean_url

LANGUAGE_KEY = "programming_language"
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Fields:
    """Names of the keys with a meaning; all but the text's may be None: not used."""

    text: str = "text"
    user_id: str | None = "id"
    url: str | None = "url"
    path: str | None = None
    """Of a source file whose code the text is."""

    @classmethod
    def of(cls, source: SourceSettings) -> Fields:
        """Return what a source says of them."""
        return cls(
            text=source.text_field,
            user_id=source.id_field,
            url=source.url_field,
            path=source.read.path_field,
        )


def read_row(row: dict[str, Any], position: int, fields: Fields) -> Record:
    """Make a record of a row of JSON values; `row` is used up."""
    try:
        text = _take_text(row, fields.text)
        user_id = _take_id(row, fields.user_id)
    except UnusableError as error:
        return Lost(rule=error.rule, position=position, reason=str(error))
    content_type = "text/plain"
    if fields.path is not None:
        content_type = CODE_TYPE
        _name_language(row, fields.path)
    return Found(
        text=text,
        position=position,
        user_id=user_id,
        url=_take_url(row, fields.url),
        content_type=content_type,
        metadata=row,
    )


CODE_TYPE = "text/x-source"
"""Content type of source code, which has no MIME type of its own."""


def _take(row: dict[str, Any], name: str | None) -> Any:
    """Remove and return the value of a key, or of a dotted path; `_MISSING` if there is none."""
    if name is None:
        return _MISSING
    if name in row or "." not in name:
        return row.pop(name, _MISSING)
    *parents, last = name.split(".")
    for parent in parents:
        inner = row.get(parent)
        if not isinstance(inner, dict):
            return _MISSING
        row = inner
    return row.pop(last, _MISSING)


def _take_text(row: dict[str, Any], name: str) -> str:
    """Remove and return the text.

    Raises:
        UnusableError: there is none.
    """
    text = _take(row, name)
    if text is _MISSING:
        keys = ", ".join(sorted(row)[:8])[:200]
        reason = f"no key {name!r} among: {keys or 'no key at all'}; see text_field"
        raise UnusableError("text_missing", reason)
    if text is None:
        raise UnusableError("text_null", f"{name!r} is null")
    if not isinstance(text, str):
        raise UnusableError("text_not_string", f"{name!r} is of type {type(text).__name__}")
    if not text:
        raise UnusableError("text_empty", f"{name!r} is empty")
    return text


def _take_id(row: dict[str, Any], name: str | None) -> str | None:
    """Remove and return the user's id as a string.

    Raises:
        UnusableError: it is NaN or an infinity.
    """
    user_id = _take(row, name)
    if user_id is _MISSING or user_id is None:
        return None
    if isinstance(user_id, float) and not math.isfinite(user_id):
        raise UnusableError("nan_id", f"{name!r} is {user_id}")
    if isinstance(user_id, str):
        return user_id
    return msgspec.json.encode(user_id, order="sorted").decode()


def _take_url(row: dict[str, Any], name: str | None) -> str | None:
    """Remove and return the url; one that is not a string stays in the metadata."""
    url = _take(row, name)
    if isinstance(url, str):
        return clean_url(url)
    if url is not _MISSING and name is not None:
        row[name] = url
    return None


def _name_language(row: dict[str, Any], path_field: str) -> None:
    path = _take(row, path_field)
    if path is _MISSING:
        return
    row[path_field] = path
    language = find_language(path) if isinstance(path, str) else None
    if language is not None:
        row.setdefault(LANGUAGE_KEY, language)
