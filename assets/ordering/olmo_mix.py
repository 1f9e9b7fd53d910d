"""OLMo's own mixes: configurations and lists of token files, and the provenance.csv beside them.

OLMo repeats data by listing a file several times. Its files name one shard in several ways
(`http://host/a/part-00.npy` in a configuration, `https://host/a/part-00.csv.gz` in provenance.csv,
`s3://bucket/...`, `{TOKENIZER}` in a list), so names are compared without scheme, host and suffix.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from assets.errors import ConfigurationError

_SUFFIXES = (".csv.gz", ".npy")
_ADDRESS = re.compile(r"^[a-z][a-z0-9+.-]*://[^/]+/")
_PROVENANCE = "Dataset,Data Directory"
_TOKENIZER = "{TOKENIZER}"


@dataclass(frozen=True, kw_only=True, slots=True)
class OlmoMix:
    """The files of a mix, in the order in which OLMo numbers their instances."""

    where: str
    paths: tuple[str, ...]
    """Files as they are listed, repeats included."""
    labels: tuple[str, ...]
    """Of each file; the folder that names its corpus where the mix gives none."""
    sequence_length: int | None = None
    seed: int | None = None
    dtype: str | None = None
    global_batch_size: int | None = None

    @property
    def repeats(self) -> dict[str, int]:
        """Files that are listed more than once, by name, with how often."""
        counts = Counter(map(shard_key, self.paths))
        return {name: count for name, count in sorted(counts.items()) if count > 1}

    @property
    def num_unique(self) -> int:
        """Files that are listed at least once."""
        return len(set(map(shard_key, self.paths)))

    def by_label(self) -> dict[str, tuple[int, int]]:
        """Return {label: (files listed, different files)}, in order of appearance."""
        listed: dict[str, list[str]] = {}
        for label, path in zip(self.labels, self.paths, strict=True):
            listed.setdefault(label, []).append(shard_key(path))
        return {label: (len(names), len(set(names))) for label, names in listed.items()}

    def loader_arguments(self, folder: str | None = None) -> dict[str, Any]:
        """Return what `build_train_dataloader` takes to read the mix in OLMo's order.

        Args:
            folder: where the files lie on this machine, below it as in their addresses; by default
                they are named as listed.
        """
        paths = list(self.paths)
        if folder is not None:
            paths = [f"{folder.rstrip('/')}/{_ADDRESS.sub('', path)}" for path in paths]
        named = {
            "dataset_or_paths": paths,
            "sequence_length": self.sequence_length,
            "dtype": self.dtype,
            "seed": self.seed,
            "global_batch_size": self.global_batch_size,
        }
        return {name: value for name, value in named.items() if value is not None}


def read_mix(path: str | Path, *, tokenizer: str | None = None) -> OlmoMix:
    """Read a mix: OLMo's YAML, a `.txt` of `label,path` lines, or a list of paths.

    Args:
        path: of the file.
        tokenizer: replaces `{TOKENIZER}` in paths.

    Raises:
        ConfigurationError: the file is missing, or lists no data.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: cannot be read: {error}") from error
    mix = _read_yaml(file, text) if file.suffix in (".yaml", ".yml") else _read_lines(file, text)
    if not mix.paths:
        raise ConfigurationError(f"{file}: lists no token files")
    if tokenizer is None:
        return mix
    paths = tuple(path.replace(_TOKENIZER, tokenizer) for path in mix.paths)
    return OlmoMix(where=mix.where, paths=paths, labels=mix.labels)


def shard_key(name: str) -> str:
    """Return a name without scheme, host or bucket, and suffix."""
    key = _ADDRESS.sub("", name.strip())
    for suffix in _SUFFIXES:
        key = key.removesuffix(suffix)
    return key


def _read_lines(file: Path, text: str) -> OlmoMix:
    if text.startswith(_PROVENANCE):
        raise ConfigurationError(
            f"{file}: is a table of provenance, no mix; olmo-data provenance check CONFIG {file} "
            "compares it with the configuration that it is about"
        )
    labels, paths = [], []
    for line in text.splitlines():
        entry = line.partition("#")[0].strip() if line.lstrip().startswith("#") else line.strip()
        if not entry:
            continue
        label, comma, path = entry.partition(",")
        paths.append(path.strip() if comma else label)
        labels.append(label.strip() if comma else _label_of(label))
    return OlmoMix(where=str(file), paths=tuple(paths), labels=tuple(labels))


def _read_yaml(file: Path, text: str) -> OlmoMix:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{file}: is not valid YAML: {error}") from error
    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(data, dict):
        raise ConfigurationError(f"{file}: has no section `data`; it is no OLMo configuration")
    paths, datasets = data.get("paths"), data.get("datasets")
    if (paths is None) == (datasets is None):
        raise ConfigurationError(f"{file}: data: exactly one of `paths` and `datasets` is needed")
    if paths is not None:
        pairs = [(_label_of(path), path) for path in paths]
    else:
        assert datasets is not None
        # As OLMo: labels in code point order.
        pairs = [(label, path) for label in sorted(datasets) for path in datasets[label]]
    seed = data.get("seed")
    return OlmoMix(
        where=str(file),
        paths=tuple(path for _, path in pairs),
        labels=tuple(label for label, _ in pairs),
        sequence_length=(value.get("model") or {}).get("max_sequence_length"),
        seed=value.get("seed") if seed is None else seed,
        dtype=data.get("memmap_dtype"),
        global_batch_size=value.get("global_train_batch_size"),
    )


def _label_of(path: str) -> str:
    """Return the folder below `preprocessed/` that names a corpus, as well as it can be told."""
    parts = shard_key(path).split("/")
    if "preprocessed" in parts[:-1]:
        parts = parts[parts.index("preprocessed") + 1 :]
    return parts[0] if len(parts) > 1 else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reconciliation:
    """How a mix and a provenance.csv differ; empty lists mean that they agree."""

    num_paths: int
    num_unique: int
    num_rows: int
    missing: tuple[str, ...] = ()
    """Files of the mix without a row."""
    extra: tuple[str, ...] = ()
    """Rows without a file in the mix."""
    duplicates: Mapping[str, int] = field(default_factory=dict)
    """Rows that are there more than once, with how often."""
    repeats: Mapping[str, int] = field(default_factory=dict)
    """Files that the mix reads more than once, which one row each cannot show."""

    @property
    def is_clean(self) -> bool:
        """Every file has exactly one row and every row a file."""
        return not (self.missing or self.extra or self.duplicates)

    def problems(self) -> list[str]:
        """Return a sentence per difference."""
        found = [f"no row in provenance.csv: {name}" for name in self.missing]
        found += [f"no path in the configuration: {name}" for name in self.extra]
        found += [f"{count} rows: {name}" for name, count in self.duplicates.items()]
        return found


def read_provenance_rows(path: str | Path) -> list[tuple[str, str]]:
    """Return (data set, directory) of each row of a provenance.csv: its first two columns.

    Raises:
        ConfigurationError: the file is missing, or its columns are others.
    """
    file = Path(path)
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.reader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"{file}: cannot be read: {error}") from error
    if not rows or rows[0][:2] != ["Dataset", "Data Directory"]:
        shown = ", ".join(rows[0]) if rows else "none"
        raise ConfigurationError(
            f"{file}: the first columns are {shown}, expected Dataset, Data Directory"
        )
    return [(row[0], row[1]) for row in rows[1:] if row]


def reconcile(mix: OlmoMix, rows: Sequence[tuple[str, str]]) -> Reconciliation:
    """Compare a mix with the rows of a provenance.csv, names normalised (`shard_key`)."""
    listed = Counter(map(shard_key, mix.paths))
    found = Counter(shard_key(directory) for _, directory in rows)
    return Reconciliation(
        num_paths=len(mix.paths),
        num_unique=len(listed),
        num_rows=len(rows),
        missing=tuple(sorted(listed.keys() - found.keys())),
        extra=tuple(sorted(found.keys() - listed.keys())),
        duplicates={name: count for name, count in sorted(found.items()) if count > 1},
        repeats=mix.repeats,
    )
