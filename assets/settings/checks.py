"""How a settings dataclass refuses a value: with one sentence that says what fits instead."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from assets.errors import ConfigurationError


def refuse_later(name: str, value: object, *, accepted: object = None) -> None:
    """Refuse a value that only a later version understands."""
    if value != accepted:
        raise ConfigurationError(
            f"{name}: {value!r} is not in this version; leave it out or set it to {accepted!r}"
        )


def require(condition: bool, message: str) -> None:
    """Raise ConfigurationError(message) unless the condition holds."""
    if not condition:
        raise ConfigurationError(message)


def nearest(name: str, known: Collection[str]) -> str:
    """Return "; did you mean ...?" of a name that is not known, or what is known."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(sorted(known))}"


def is_unicode(text: str) -> bool:
    """Return whether a text can be written: no half of a surrogate pair stands alone in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
