"""What every asset is given: the configuration's settings and the root they belong to."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Protocol

from assets.document import CLEAN
from assets.errors import ConfigurationError
from assets.root import Root
from assets.settings.checks import nearest
from assets.settings.load import load_settings
from assets.settings.ordering import MixtureSettings
from assets.settings.schema import Settings
from assets.sources.landing_log import read_log
from assets.storage.local import LocalStorage


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenPlatform:
    """A root and the settings that hold for it, as they are now."""

    root: Root
    settings: Settings


class DataPlatform(Protocol):
    """Opens the platform anew for every asset, because a configuration may change between runs."""

    def open(self) -> OpenPlatform:
        """Load the configuration and open its root.

        Raises:
            ConfigurationError: the configuration does not fit.
            RootError: the root cannot be used.
        """
        ...


def open_platform(
    config: str, *, root: str | None = None, processes: int | None = None, writable: bool = True
) -> OpenPlatform:
    """Load the configuration at `config` and open its root.

    Args:
        config: path of the YAML file.
        root: another root than the configuration's.
        processes: another number of worker processes than the configuration's.
        writable: make the root's folder, and show that it can be written.

    Raises:
        ConfigurationError: the configuration does not fit.
        PinnedRootError: the configuration would change what the root has published.
        RootError: the root cannot be used.
    """
    settings = load_settings(config, root=root)
    if processes is not None:
        engine = dataclasses.replace(settings.engine, processes=processes)
        settings = dataclasses.replace(settings, engine=engine)
    opened = Root(settings.root)
    if writable and isinstance(opened.storage, LocalStorage):
        opened.storage.ensure_writable()
    if writable:
        # Pins know every stage; who only looks at a root should not wait for their imports.
        from assets.pins import check_pins  # noqa: PLC0415

        check_pins(opened, settings)
        _check_strata(settings)
    return OpenPlatform(root=opened, settings=settings)


def open_for_run(
    config: str, *, root: str | None = None, processes: int | None = None
) -> OpenPlatform:
    """Open a platform to bring its stages up to date: its tokenizer is checked too.

    A tokenizer that is a file is refused before a text is read, not after all were cleaned.

    Raises:
        ConfigurationError: the configuration, or the tokenizer that it names, does not fit.
        PinnedRootError: the configuration would change what the root has published.
        RootError: the root cannot be used.
    """
    platform = open_platform(config, root=root, processes=processes)
    # The library takes long to import; who only looks at a root does without.
    from assets.tokenizing.train import check_configured  # noqa: PLC0415

    check_configured(platform.root, platform.settings)
    _check_weighted_sources(platform)
    return platform


def _check_weighted_sources(platform: OpenPlatform) -> None:
    """Refuse weights of sources, or strata of sources, that there cannot be, likewise."""
    sources = platform.settings.sources
    known = {source.name for source in sources}
    whole = {source.name for source in sources if source.strata is None}
    mixture = platform.settings.ordering.mixture or MixtureSettings()
    for weights in mixture.weights_of_stages():
        unknown = {name.partition("/")[0] for name in weights or ()} - known
        if unknown:
            # A source that left the configuration keeps its shards.
            unknown -= {source for source, _ in read_log(platform.root).landed}
        for name in sorted(unknown):
            raise ConfigurationError(
                f"ordering.mixture: weights: no source is named {name!r}{nearest(name, known)}"
            )
        for name in weights or ():
            source, _, stratum = name.partition("/")
            if stratum and source in whole:
                raise ConfigurationError(
                    f"ordering.mixture: weights: {name!r}: sources[{source}] has no strata"
                )


def _check_strata(settings: Settings) -> None:
    """Refuse an expression now that the stage which uses it would refuse hours later."""
    for source in settings.sources:
        if source.strata is not None:
            from assets.expression import parse_expression  # noqa: PLC0415 (DuckDB, where used)

            parse_expression(source.strata, CLEAN.names, f"sources[{source.name}].strata")
