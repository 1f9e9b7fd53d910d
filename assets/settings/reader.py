"""Turn a mapping read from YAML into a frozen dataclass, refusing whatever does not fit.

Every error names the file, the dotted key, what was found and, for an unknown key, the nearest
valid one.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from typing import Any, TypeVar

from assets.errors import ConfigurationError
from assets.settings.checks import is_unicode

T = TypeVar("T")


def build(cls: type[T], value: Any, *, file: str, key: str = "") -> T:
    """Build the dataclass `cls` from the mapping `value`.

    Args:
        cls: a dataclass; its fields may be scalars, tuples, dicts, literals, optionals and
            dataclasses.
        value: what YAML gave.
        file: name of the file, for errors.
        key: dotted key of `value` inside the file; empty at the top.

    Raises:
        ConfigurationError: an unknown key, a missing key without a default, a value of the wrong
            type, or a value that the dataclass itself refuses.
    """
    where = f"{file}: {key}" if key else file
    if not isinstance(value, dict):
        raise ConfigurationError(f"{where}: expected a mapping, found {_shown(value)}")
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name in value:
        if name not in fields:
            raise ConfigurationError(f"{where}: unknown key {name!r}{_nearest(name, fields)}")
    for name, field in fields.items():
        if name not in value and _is_required(field):
            raise ConfigurationError(f"{where}: the key {name!r} is missing and has no default")
    hints = typing.get_type_hints(cls)
    built = {
        name: _convert(hints[name], item, file=file, key=f"{key}.{name}".lstrip("."))
        for name, item in value.items()
    }
    try:
        return cls(**built)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def _convert(hint: Any, value: Any, *, file: str, key: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(hint, value, file=file, key=key)
    if origin is typing.Literal:
        allowed = typing.get_args(hint)
        if value not in allowed:
            choices = ", ".join(repr(item) for item in allowed)
            raise ConfigurationError(f"{file}: {key}: {value!r} is not one of {choices}")
        return value
    if origin is tuple:
        return _convert_sequence(typing.get_args(hint)[0], value, file=file, key=key)
    if origin is dict:
        return _convert_mapping(typing.get_args(hint)[1], value, file=file, key=key)
    if dataclasses.is_dataclass(hint):
        return build(typing.cast("type[Any]", hint), value, file=file, key=key)
    return _convert_scalar(hint, value, file=file, key=key)


def _convert_union(hint: Any, value: Any, *, file: str, key: str) -> Any:
    members = [member for member in typing.get_args(hint) if member is not type(None)]
    if value is None:
        if len(members) < len(typing.get_args(hint)):
            return None
        raise ConfigurationError(f"{file}: {key}: null is not allowed here")
    if len(members) != 1:
        raise TypeError(f"{key}: only `X | None` is supported in settings, found {hint}")
    return _convert(members[0], value, file=file, key=key)


def _convert_sequence(item_hint: Any, value: Any, *, file: str, key: str) -> tuple[Any, ...]:
    if isinstance(value, str) and item_hint is str:
        value = [value]
    if not isinstance(value, list):
        raise ConfigurationError(f"{file}: {key}: expected a list, found {_shown(value)}")
    return tuple(
        _convert(item_hint, item, file=file, key=f"{key}[{index}]")
        for index, item in enumerate(value)
    )


def _convert_mapping(item_hint: Any, value: Any, *, file: str, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{file}: {key}: expected a mapping, found {_shown(value)}")
    return {
        _convert_scalar(str, str(name), file=file, key=key): _convert(
            item_hint, item, file=file, key=f"{key}.{name}"
        )
        for name, item in value.items()
    }


def _convert_scalar(hint: Any, value: Any, *, file: str, key: str) -> Any:
    if isinstance(value, str) and not is_unicode(value):
        raise ConfigurationError(
            f"{file}: {key}: {_shown(value)} has a lone surrogate, no character"
        )
    # bool is an int in Python: `priority: true` must not become 1.
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is Any or (isinstance(value, hint) and (hint is bool or not isinstance(value, bool))):
        return value
    raise ConfigurationError(f"{file}: {key}: expected {hint.__name__}, found {_shown(value)}")


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _nearest(name: object, fields: dict[str, Any]) -> str:
    close = difflib.get_close_matches(str(name), fields, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; valid keys are {', '.join(fields)}"


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
