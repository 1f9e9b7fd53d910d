"""What a root pins once it has published: every setting that decides a published byte.

`dataset.json` carries the pins as flat keys: `dedup.minhash.threshold`, `sources[wiki].profile`.
Not pinned, because no published byte depends on them: further sources, where a source's files lie,
licences, ordering, engine, limits. A setting that a later version adds is equal to its default in
roots that were published before it, so that an upgrade changes nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from assets.cleaning import clean
from assets.cleaning.language import model_sha256
from assets.cleaning.models.fasttext_file import fasttext_sha256
from assets.cleaning.steps.classifier import FASTTEXT_SETTING
from assets.dedup import signatures, unique
from assets.errors import IntegrityError, PinnedRootError
from assets.manifest import Manifest
from assets.root import Root
from assets.settings.cleaning import CleaningSettings
from assets.settings.dedup import DedupSettings
from assets.settings.profiles import ProfileSettings
from assets.settings.schema import Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import ShardingSettings
from assets.sharding import shard_task
from assets.sources import tasks as source_tasks
from assets.stage import add_statistics
from assets.tokenizing import tokens
from olmo_loader.dataset_file import DATASET_FILE, DatasetFile
from olmo_loader.errors import LoaderError

STAGES = ("documents", "clean", "unique", "tokens", "shards")
"""Stages whose results are published, in order; a change redoes its stage and all later ones."""

SOURCE_FIELDS = {
    "format": "documents",
    "text_field": "documents",
    "id_field": "documents",
    "url_field": "documents",
    "read": "documents",
    "profile": "clean",
    "extractor": "clean",
    "languages": "clean",
    "priority": "unique",
    "strata": "tokens",
    "holdout": "tokens",
}
"""Pinned settings of a source, with the first stage that each of them decides."""

NOT_PINNED = frozenset(
    {
        "cleaning.page_limits.max_cpu_seconds",
        "dedup.memory_mb",
        "dedup.minhash.max_source_loss",
    }
)
"""Settings of a pinned stage that stop a run, or let it go on, without changing what it makes."""

TOKENIZER_DEFAULTS: dict[str, Any] = {
    "bos_token": None,
    "max_document_tokens": None,
    "max_run_bytes": 1 << 20,
    "mask_spans": [],
    "long_documents": "drop",
}
"""Pinned settings of the tokenizer that roots published earlier do not name."""

LABEL_THRESHOLDS = "cleaning.language.thresholds"
_ABSENT = object()
"""Stands for a setting that the published data set did not have."""

_SOURCE_KEY = re.compile(r"sources\[(?P<name>[^\]]*)\]\.(?P<field>\w+)")
_SECTIONS = {"cleaning": "clean", "dedup": "unique", "tokenizer": "tokens", "sharding": "shards"}


def pinned_settings(settings: Settings) -> dict[str, Any]:
    """Return what a configuration would pin: flat keys, JSON values.

    The tokenizer file is pinned by its SHA-256, not by its path; a file that cannot be read is left
    out here, and is the tokenizer stage's error.
    """
    pins: dict[str, Any] = {}
    for source in settings.sources:
        for name in SOURCE_FIELDS.keys() - {"holdout"}:
            pins |= _flat(f"sources[{source.name}].{name}", getattr(source, name))
        pins |= _flat(f"sources[{source.name}].holdout", source.held_out)
        if source.profile in settings.cleaning.profiles:
            # What a profile asks is pinned, not its name; one that no source names is free.
            del pins[f"sources[{source.name}].profile"]
            profile = settings.cleaning.profiles[source.profile].pin()
            pins |= _flat(f"sources[{source.name}].profile", profile)
        # Which languages are kept does not depend on the order in which they are named.
        pins[f"sources[{source.name}].languages"] = sorted(set(source.languages))
    pins |= _cleaning_pins(settings.cleaning)
    pins |= _flat("dedup", settings.dedup)
    pins |= _flat("sharding", settings.sharding)
    pins |= _tokenizer_pins(settings)
    pins |= _flat("code", code_versions())
    return {key: value for key, value in sorted(pins.items()) if key not in NOT_PINNED}


def code_versions() -> dict[str, int]:
    """Return the code version of each stage: raised by hand when it makes other bytes."""
    return {
        "documents": source_tasks.CODE_VERSION,
        "clean": clean.CODE_VERSION,
        "signatures": signatures.CODE_VERSION,
        "unique": unique.CODE_VERSION,
        "tokens": tokens.CODE_VERSION,
        "shards": shard_task.CODE_VERSION,
    }


def pins_to_publish(
    settings: Settings,
    *,
    landed_sources: Iterable[str],
    tokenizer_sha256: str,
    published: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the pins of a publication.

    Args:
        settings: what the data set was made with.
        landed_sources: sources with files in the published generations; others are still free.
        tokenizer_sha256: the root's tokenizer, also when the configuration trains it.
        published: the pins so far; those of a source that left the configuration are kept.
    """
    landed = set(landed_sources)
    fresh = {
        key: value
        for key, value in pinned_settings(settings).items()
        if (name := _source_of(key)) is None or name in landed
    }
    fresh["tokenizer.sha256"] = tokenizer_sha256
    configured = {source.name for source in settings.sources}
    retired = {
        key: value
        for key, value in published.items()
        if (name := _source_of(key)) is not None and name not in configured
    }
    return {**retired, **fresh}


def check_pins(root: Root, settings: Settings) -> None:
    """Refuse a configuration that would change what a root has published.

    Raises:
        PinnedRootError: with the keys, what would be done again, and the command for a new root.
        IntegrityError: dataset.json is damaged.
    """
    published = _read_dataset_file(root)
    if published is None:
        return
    changed = changed_pins(published.pins, pinned_settings(settings))
    if not changed:
        return
    lines = [
        (
            f"{root.url} has published generation {published.generation} (plan {published.plan}); "
            f"{len(changed)} settings would change bytes of it:"
        )
    ]
    lines += [
        f"  {key}: {_shown(found)} (published with {_shown(held)})"
        for key, (held, found) in changed.items()
    ]
    lines.append("this would be done again:")
    lines += [f"  {line}" for line in _cost(root, changed)]
    lines.append(
        "set them back, or make another data set beside this one: "
        "olmo-data run --config CONFIG --root NEW_ROOT"
    )
    raise PinnedRootError("\n".join(lines))


def changed_pins(held: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return {key: (held, found)} of every pin that a configuration would change.

    A source that has no pins is free. A key that only one side knows is compared with the default
    of its setting; one that the configuration does not have at all (a source or a way of making the
    tokenizer that is not configured) is no change.
    """
    pinned_sources = {None, *(_source_of(key) for key in held)}
    changed = {}
    for key, value in found.items():
        if _source_of(key) not in pinned_sources:
            continue
        before = _held_value(held, key)
        if before != value:
            changed[key] = (before, value)
    return changed


def _held_value(held: Mapping[str, Any], key: str) -> Any:
    if key in held:
        return held[key]
    parts = key.split(".")
    ancestors = (".".join(parts[:end]) for end in range(1, len(parts)))
    if any(ancestor in held for ancestor in ancestors):
        return _ABSENT
    if any(name.startswith(f"{key}.") for name in held):
        # It had settings of its own, and is null now.
        return _ABSENT
    return _default(key)


def _default(key: str) -> Any:
    found = _SOURCE_KEY.match(key)
    if found is None:
        defaults = _cleaning_pins(CleaningSettings())
        defaults |= _flat("dedup", DedupSettings()) | _flat("sharding", ShardingSettings())
        defaults |= _flat("tokenizer", TOKENIZER_DEFAULTS)
        return defaults.get(key, _ABSENT)
    if found["field"] == "profile" and key != found[0]:
        unnamed = ProfileSettings()
        named = unnamed.pin() | {"rules": dataclasses.asdict(unnamed.rules)}
        return (_flat(found[0], named) | _flat(found[0], unnamed.pin())).get(key, _ABSENT)
    plain = SourceSettings(name=found["name"], paths=("*",))
    return _flat(found[0], getattr(plain, found["field"])).get(key, _ABSENT)


def _flat(prefix: str, value: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        flat: dict[str, Any] = {}
        for key, item in value.items():
            flat |= _flat(f"{prefix}.{key}", item)
        return flat
    return {prefix: list(value) if isinstance(value, tuple) else value}


def _cleaning_pins(cleaning: CleaningSettings) -> dict[str, Any]:
    pins = _flat("cleaning", dataclasses.replace(cleaning, profiles={}))
    # A threshold that is taken away is a change too: the mapping is one pin.
    pins = {key: value for key, value in pins.items() if not key.startswith(LABEL_THRESHOLDS)}
    pins[LABEL_THRESHOLDS] = sorted(map(list, cleaning.language.thresholds.items()))
    if cleaning.language.model is not None:
        pins["cleaning.language.model"] = model_sha256(cleaning.language.model)
    if cleaning.quality is not None and cleaning.quality.fasttext is not None:
        pins[FASTTEXT_SETTING] = fasttext_sha256(cleaning.quality.fasttext, FASTTEXT_SETTING)
    return pins


def _tokenizer_pins(settings: Settings) -> dict[str, Any]:
    wanted = settings.tokenizer
    pins: dict[str, Any] = {
        "tokenizer.eos_token": wanted.eos_token,
        "tokenizer.pad_token": wanted.pad_token or wanted.eos_token,
        **{f"tokenizer.{name}": getattr(wanted, name) for name in TOKENIZER_DEFAULTS},
        # Which kinds are masked does not depend on the order in which they are named.
        "tokenizer.mask_spans": sorted(set(wanted.mask_spans)),
    }
    if wanted.train is not None:
        return pins | _flat("tokenizer.train", wanted.train)
    path = Path(settings.base_dir) / str(wanted.path)
    try:
        pins["tokenizer.sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return pins
    return pins


def _read_dataset_file(root: Root) -> DatasetFile | None:
    name = f"dataset/{DATASET_FILE}"
    try:
        return DatasetFile.parse(root.storage.read(name), name)
    except FileNotFoundError:
        return None
    except LoaderError as error:
        raise IntegrityError(f"{root.url}: {error}") from error


def _source_of(key: str) -> str | None:
    """Return NAME of `sources[NAME].field`, None for a key of no source."""
    found = _SOURCE_KEY.match(key)
    return None if found is None else found["name"]


def _stage_of(key: str) -> str:
    found = _SOURCE_KEY.match(key)
    if found is not None:
        return SOURCE_FIELDS[found["field"]]
    section, _, rest = key.partition(".")
    if section != "code":
        return _SECTIONS[section]
    return "unique" if rest == "signatures" else rest


def _cost(root: Root, changed: Iterable[str]) -> list[str]:
    """Return a line per stage that would be redone, with the documents and tokens it holds."""
    keys = list(changed)
    first = min(STAGES.index(_stage_of(key)) for key in keys)
    lines = []
    for number, stage in enumerate(STAGES[first:], start=first):
        # Up to `clean` sources do not meet: only those whose settings changed are redone.
        names = {_source_of(key) for key in keys if STAGES.index(_stage_of(key)) <= number}
        named = stage in ("documents", "clean") and None not in names
        sources = sorted(filter(None, names)) if named else None
        # Shards are no parts: what is cut is what was tokenized.
        amount = _held_amount(root, "tokens" if stage == "shards" else stage, sources)
        lines.append(f"{stage}: {amount}")
    return lines


def _held_amount(root: Root, stage: str, sources: list[str] | None) -> str:
    total: dict[str, Any] = {}
    for entry in Manifest.load(root, stage).entries():
        if sources is None or entry.source in sources:
            total = add_statistics(total, entry.statistics)
    amount = f"{total.get('in', 0):,d} documents"
    if "tokens" in total:
        amount += f", {total['tokens']:,d} tokens"
    return amount if sources is None else f"{amount} of {', '.join(sources)}"


def _shown(value: Any) -> str:
    text = "nothing" if value is _ABSENT else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
