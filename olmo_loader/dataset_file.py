"""``dataset.json``: the one file of a data set that changes, replaced whole by a publication.

Everything else it names is immutable, so whoever has read it sees one consistent data set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from olmo_loader.errors import ConfigurationError, IntegrityError
from olmo_loader.records import canonical_json, parse_record, require_keys, seal
from olmo_loader.shard_index import IndexSnapshot

DATASET_FILE = "dataset.json"
DATASET_FORMAT = "olmo-data"
DATASET_VERSION = 1

_KEYS = frozenset(
    {
        "format",
        "version",
        "generation",
        "snapshot",
        "plan",
        "plans",
        "takedown",
        "tokenizer",
        "pins",
    }
)
_TOKENIZER_KEYS = frozenset({"sha256", "path", "vocab_size", "eos_token_id", "pad_token_id"})


@dataclass(frozen=True, kw_only=True)
class DatasetFile:
    """What ``dataset.json`` says."""

    generation: int
    """Last generation of the landing log whose documents are in the snapshot."""
    snapshot: IndexSnapshot
    plan: str
    """Id of the current plan: what a loader without a state opens."""
    plans: tuple[str, ...]
    """Ids of every plan that can be opened, in the order they were made."""
    takedown: IndexSnapshot | None
    """Number and sha256 of the last takedown record, None when there is none."""
    tokenizer: dict[str, Any]
    """sha256, path (relative to the data set), vocab_size, eos_token_id, pad_token_id."""
    pins: dict[str, Any] = field(default_factory=dict)
    """What the root pins; opaque to the loader."""

    def to_bytes(self) -> bytes:
        """Return the file's bytes."""
        if self.plan not in self.plans:
            raise ConfigurationError(f"the current plan {self.plan} is not among {self.plans}")
        body = {
            "format": DATASET_FORMAT,
            "version": DATASET_VERSION,
            "generation": self.generation,
            "snapshot": self.snapshot.as_json(),
            "plan": self.plan,
            "plans": list(self.plans),
            "takedown": None if self.takedown is None else self.takedown.as_json(),
            "tokenizer": self.tokenizer,
            "pins": self.pins,
        }
        return canonical_json(seal(body))

    @classmethod
    def parse(cls, data: bytes, where: str) -> DatasetFile:
        """Read and check the file's bytes.

        Raises:
            IntegrityError: damaged, incomplete, or of another format or version.
        """
        record = parse_record(data, where)
        require_keys(record, _KEYS, where)
        if (record["format"], record["version"]) != (DATASET_FORMAT, DATASET_VERSION):
            raise IntegrityError(
                f"{where}: {record['format']} version {record['version']}, this is a reader of "
                f"{DATASET_FORMAT} version {DATASET_VERSION}"
            )
        require_keys(record["tokenizer"], _TOKENIZER_KEYS, f"{where}: tokenizer")
        if record["plan"] not in record["plans"]:
            raise IntegrityError(f"{where}: the current plan {record['plan']} is not listed")
        takedown = record["takedown"]
        return cls(
            generation=record["generation"],
            snapshot=IndexSnapshot.from_json(record["snapshot"]),
            plan=record["plan"],
            plans=tuple(record["plans"]),
            takedown=None if takedown is None else IndexSnapshot.from_json(takedown),
            tokenizer=record["tokenizer"],
            pins=record["pins"],
        )


def read_dataset_file(dataset_dir: Path) -> DatasetFile:
    """Read ``dataset.json`` of a local data set.

    Raises:
        ConfigurationError: there is none.
        IntegrityError: see `DatasetFile.parse`.
    """
    path = dataset_dir / DATASET_FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{path} does not exist: give the folder of a published data set (ROOT/dataset)"
        ) from error
    except NotADirectoryError as error:
        raise ConfigurationError(
            f"{dataset_dir} is a file: give the folder of a published data set (ROOT/dataset), or "
            f"files of ids as a list: [{str(dataset_dir)!r}]"
        ) from error
    return DatasetFile.parse(data, str(path))
