"""Everything that can be set, one frozen dataclass per stage.

A value that a later version will understand is refused with "not in this version", never ignored.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal

from assets.errors import ConfigurationError
from assets.settings.checks import nearest, refuse_later, require
from assets.settings.cleaning import CleaningSettings
from assets.settings.dedup import DedupSettings
from assets.settings.ordering import MixtureSettings, OrderingSettings, check_weights
from assets.settings.profiles import BUILT_IN
from assets.settings.sources import SourceSettings
from assets.settings.tokens import ShardingSettings, TokenizerSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSettings:
    """Where part tasks run; never changes a result."""

    kind: str = "local"
    processes: int = 2
    tokenizer: Literal["auto", "gigatoken", "fastokens", "tokenizers"] = "auto"
    """What encodes: `auto` is the fastest exact engine that loads the tokenizer; `tokenizers` is
    the reference, whose ids all of them give."""

    def __post_init__(self) -> None:
        refuse_later("kind", self.kind, accepted="local")
        require(self.processes >= 1, f"processes: {self.processes} must be at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitSettings:
    """Share per source and stage above which a run fails; null means no limit."""

    max_quarantined: float | None = 0.01
    max_dropped: float | None = None
    damaged_replacements: Literal["refuse", "accept"] = "refuse"
    """What becomes of a run in which a damaged file takes the place of an earlier version."""
    records_per_byte: float | None = 1.0
    """Records of a file per stored byte, beyond the first million, above which the rest of the file
    is one `too_many_records`."""

    def __post_init__(self) -> None:
        require(
            self.records_per_byte is None or self.records_per_byte > 0,
            f"records_per_byte: {self.records_per_byte} must be above 0, or null for no limit",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """One data set: its root, its sources and the settings of every stage."""

    root: str
    sources: tuple[SourceSettings, ...]
    cleaning: CleaningSettings = field(default_factory=CleaningSettings)
    dedup: DedupSettings = field(default_factory=DedupSettings)
    tokenizer: TokenizerSettings
    sharding: ShardingSettings = field(default_factory=ShardingSettings)
    ordering: OrderingSettings = field(default_factory=OrderingSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    base_dir: str = ""
    """Folder of the configuration file; set by the loader, relative paths start here."""

    def __post_init__(self) -> None:
        names = [source.name for source in self.sources]
        repeated = sorted({name for name in names if names.count(name) > 1})
        require(not repeated, f"sources: the names {repeated} appear more than once")
        require(bool(names), "sources: at least one source is needed")
        for source in self.sources:
            self._check_profile(source)
        if self.ordering.order == "shuffle":
            self._check_repeats()
        else:
            self._check_mixture(self.ordering.mixture or MixtureSettings())

    def _check_profile(self, source: SourceSettings) -> None:
        known = (*BUILT_IN, *self.cleaning.profiles)
        require(
            source.profile in known,
            f"sources: {source.name}: the profile {source.profile!r} is neither built in nor under "
            f"cleaning.profiles{nearest(source.profile, known)}",
        )

    def cleaning_of(self, name: str) -> tuple[SourceSettings, CleaningSettings]:
        """Return a source, with the built-in profile whose steps are done, and how it is cleaned.

        Raises:
            ConfigurationError: no source has that name.
        """
        source = self.source(name)
        profile, cleaning = self.cleaning.of_profile(source.profile)
        return dataclasses.replace(source, profile=profile), cleaning

    def _check_repeats(self) -> None:
        for source in self.sources:
            whole = source.weight is None or (source.weight >= 1 and source.weight % 1 == 0)
            require(
                whole,
                f"sources: {source.name} has weight {source.weight}, and ordering.order is shuffle,"
                " where a weight is how often whole shards are read (1, 2, 3, ...): "
                "set ordering.order to mixture, or leave the weight out",
            )

    def _check_mixture(self, mixture: MixtureSettings) -> None:
        """Refuse weights now that would be refused when all is tokenized."""
        own = {source.name: source.weight for source in self.sources}
        for weights in mixture.weights_of_stages():
            if weights is None and all(weight is None for weight in own.values()):
                mixture.check_floor(len(own))
                continue
            if weights is None:
                given = {name: weight for name, weight in own.items() if weight is not None}
                check_weights(given)
                mixture.check_floor(sum(weight > 0 for weight in given.values()))
            else:
                given = weights
            named = {name.partition("/")[0] for name in given}
            missing = [name for name in own if name not in named]
            require(
                not missing,
                f"weights: {', '.join(given)} have one, {', '.join(missing)} have none; give every "
                "source a weight (0 leaves it out), or none of them (then size decides)",
            )

    def source(self, name: str) -> SourceSettings:
        """Return one source by name.

        Raises:
            ConfigurationError: no source has that name.
        """
        for source in self.sources:
            if source.name == name:
                return source
        known = ", ".join(source.name for source in self.sources)
        raise ConfigurationError(f"no source is named {name!r}; the configuration has {known}")
