"""How a settings dataclass refuses a value: with one sentence that says what fits instead."""

from __future__ import annotations

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
