"""What is named in a root, and which objects are not.

Only places that this module knows are looked at: parts, ledgers and dedup runs of the stages,
shards, plans and tokenizers of the data set. The landing log, frozen models, verdicts, the history
of runs, the shard index, the takedown log, and anything unknown are never garbage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assets.dedup.earlier import COMPACTED
from assets.manifest import Manifest, list_segments
from assets.ordering.published import in_dataset, read_published, read_shard_index
from assets.root import Root
from assets.tokenizing.train import read_pin
from olmo_loader.plan import PLAN_FOLDER
from olmo_loader.shard_files import TOKENS_SUFFIX

PART_STAGES = ("documents", "clean", "signatures", "unique", "tokens")
"""Stages that commit parts by manifest."""

TASK_RECORD = ".task.json"

_SHARD_TASKS = "shards/"
"""Where task records of shards lie; nothing else does."""
_SHARDS, _PLANS, _TOKENIZERS = "dataset/shards/", f"dataset/{PLAN_FOLDER}/", "dataset/tokenizer/"


@dataclass(frozen=True, kw_only=True, slots=True)
class Garbage:
    """An object that nothing refers to."""

    name: str
    size: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class References:
    """Everything that is named, read at one moment."""

    objects: frozenset[str]
    """Names of objects and manifest segments."""
    shards: frozenset[str]
    """Names of shards in the index, without a suffix."""
    plans: frozenset[str]
    tokenizers: frozenset[str]
    """Hex SHA-256 of the tokenizers of shards, data set and root."""

    @classmethod
    def read(cls, root: Root) -> References:
        """Read all manifests, the index and dataset.json.

        Raises:
            IntegrityError: one of them is damaged: then nothing can be called garbage.
        """
        index = read_shard_index(root).records
        published = read_published(root)
        pin = read_pin(root)
        tokenizers = {record["tokenizer_sha256"] for record in index}
        if pin is not None:
            tokenizers.add(pin.sha256)
        if published is not None:
            tokenizers.add(published.file.tokenizer["sha256"])
        return cls(
            objects=frozenset(_manifest_names(root)),
            shards=frozenset(
                in_dataset(record["shard"]).removesuffix(TOKENS_SUFFIX) for record in index
            ),
            plans=frozenset(() if published is None else published.file.plans),
            tokenizers=frozenset(tokenizers),
        )

    def explain(self, name: str) -> str | None:
        """Return why an object is garbage, or None if it is not, or not known."""
        if name.endswith(TASK_RECORD) and name.startswith(tuple(_prefixes())):
            return "record of a task that is committed, superseded or was given up"
        if name.startswith(tuple(_data_set_prefixes())):
            return self._explain_in_data_set(name)
        named = name in self.objects or name.endswith("/manifest.json")
        if named or not name.startswith(tuple(_manifest_prefixes())):
            return None
        return "no live entry of a manifest names it"

    def _explain_in_data_set(self, name: str) -> str | None:
        folder, _, file = name.rpartition("/")
        if name.startswith(_SHARDS):
            shard = f"{folder}/{file.partition('.')[0]}"
            return None if shard in self.shards else "part of a shard that is not in the index"
        if name.startswith(_PLANS):
            plan = name.removeprefix(_PLANS).partition("/")[0]
            return None if plan in self.plans else f"plan {plan} is not in dataset.json"
        sha256 = name.removeprefix(_TOKENIZERS).partition("/")[0]
        return None if sha256 in self.tokenizers else "no shard was made with this tokenizer"


def find_garbage(root: Root) -> list[Garbage]:
    """Return every object that nothing refers to, whatever its age, by name.

    Objects are listed before references are read, so that what is committed meanwhile is kept.

    Raises:
        IntegrityError: a manifest, the index or dataset.json is damaged.
    """
    listed = [item for prefix in _prefixes() for item in root.storage.list(prefix)]
    references = References.read(root)
    return [
        Garbage(name=name, size=size, reason=reason)
        for name, size in sorted(set(listed))
        if (reason := references.explain(name)) is not None
    ]


def _prefixes() -> Iterator[str]:
    yield from _manifest_prefixes()
    yield from _data_set_prefixes()
    yield _SHARD_TASKS


def _manifest_prefixes() -> Iterator[str]:
    for stage in PART_STAGES:
        yield f"{stage}/"
        yield f"ledger/{stage}/"
    yield from ("dedup/", f"{COMPACTED}/")


def _data_set_prefixes() -> tuple[str, ...]:
    return (_SHARDS, _PLANS, _TOKENIZERS)


def _manifest_names(root: Root) -> Iterator[str]:
    for stage in (*PART_STAGES, COMPACTED):
        for segment in list_segments(root, stage):
            yield segment.name
        for entry in Manifest.load(root, stage).entries():
            for item in entry.objects.values():
                yield item.name
