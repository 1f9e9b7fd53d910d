"""Read a configuration file, the sources beside it, and the variables in its paths.

`${NAME}` in a path or in the root is replaced by the environment variable NAME, `${NAME:-value}`
falls back to `value`. Sources stand in the file itself or one per file in a folder `sources/`
beside it, which is how a new source lands without touching the configuration.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from typing_extensions import override

from assets.errors import ConfigurationError
from assets.settings.ordering import MixtureSettings
from assets.settings.profiles import switch_on_named
from assets.settings.reader import build
from assets.settings.schema import Settings

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def load_settings(path: str | Path, *, root: str | None = None) -> Settings:
    """Load the configuration at `path`; `root` overrides its root.

    Raises:
        ConfigurationError: the file is missing, is not YAML, or has anything that does not fit.
    """
    file = Path(path)
    value = _read_yaml(file)
    if not isinstance(value, dict):
        raise ConfigurationError(f"{file}: expected a mapping at the top of the file")
    value = _add_source_files(file, value)
    value = _expand(value, file=str(file))
    cleaning = value.get("cleaning")
    if isinstance(cleaning, dict) and "profiles" in cleaning:
        named = switch_on_named(cleaning["profiles"])
        value = value | {"cleaning": cleaning | {"profiles": named}}
    if root is not None:
        value["root"] = root
    if "base_dir" in value:
        raise ConfigurationError(f"{file}: unknown key 'base_dir'")
    settings = build(Settings, value, file=str(file))
    base_dir = file.resolve().parent
    located = settings.root
    if "://" not in located:
        located = os.path.normpath((Path.cwd() if root is not None else base_dir) / located)
    return dataclasses.replace(
        settings,
        base_dir=str(base_dir),
        root=located,
        cleaning=settings.cleaning.located(base_dir),
    )


def load_mixture(path: str | Path) -> MixtureSettings:
    """Load a mixture from a file of its own: what stands under `ordering.mixture`.

    Raises:
        ConfigurationError: the file is missing, is not YAML, or has anything that does not fit.
    """
    return build(MixtureSettings, _read_yaml(Path(path)), file=str(path))


def _add_source_files(file: Path, value: dict[Any, Any]) -> dict[Any, Any]:
    folder = file.parent / "sources" / file.stem
    files = sorted(folder.glob("*.yaml")) if folder.is_dir() else []
    if not files:
        return value
    sources = value.get("sources", [])
    if not isinstance(sources, list):
        raise ConfigurationError(f"{file}: sources: expected a list")
    return value | {"sources": [*sources, *(_read_yaml(extra) for extra in files)]}


def _read_yaml(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(f"{file}: there is no such configuration file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: cannot be read: {error}") from error
    try:
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 (a SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{file}: is not valid YAML: {error}") from error


def _expand(value: Any, *, file: str) -> Any:
    if isinstance(value, dict):
        return {key: _expand(item, file=file) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, file=file) for item in value]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        found = os.environ.get(match[1], match[2])
        if found is None:
            raise ConfigurationError(
                f"{file}: the environment variable {match[1]} is not set; "
                f"export it, or write ${{{match[1]}:-default}}"
            )
        return found

    return _VARIABLE.sub(replace, value)


class _StrictLoader(yaml.SafeLoader):
    """A SafeLoader that refuses a key written twice: YAML would silently keep the last."""

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} appears twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)
