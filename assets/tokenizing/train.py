"""The root's tokenizer: trained on its first kept documents or copied in, once, then pinned.

::

    models/tokenizer/<sha256>/tokenizer.json    the file
    models/tokenizer/pin.json                   which one; of two writers one creates it
    dataset/tokenizer/<sha256>/tokenizer.json   the copy that turns published shards back into text

Nothing ever replaces a pin: every id in the root would change its meaning.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import tokenizers

from assets.canonical import canonical_json
from assets.dedup.unique import read_unique
from assets.errors import ConfigurationError, IntegrityError, PinnedRootError, StageError
from assets.root import ObjectRef, Root
from assets.settings.schema import Settings
from assets.settings.tokens import HUB_NAME, TokenizerSettings
from assets.sources.landing_log import LandingLog
from assets.tokenizing.kept_parts import KeptTask, kept_tasks
from assets.tokenizing.membership import GroupFinder, GroupRules, group_rules, train_only
from assets.tokenizing.tokenizer import LoadedTokenizer, bos_policy, load_tokenizer
from assets.tokenizing.training import train_bpe
from assets.tokenizing.unbroken import without_long_runs
from olmo_loader.dtypes import smallest_token_dtype

PIN = "models/tokenizer/pin.json"
TRAINING_VERSION = 2
"""Raised by hand when the same texts would train another tokenizer."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerPin:
    """Which tokenizer a root has, for good."""

    file: ObjectRef
    eos_token: str
    eos_token_id: int
    pad_token: str
    pad_token_id: int
    vocab_size: int
    """Largest id + 1."""
    bos_token: str | None = None
    """Begins every document; None: nothing does."""
    bos_token_id: int | None = None
    origin: dict[str, Any]
    """{"path": name of the file} or {"train": settings, generation, documents, bytes, ...}."""

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of tokenizer.json."""
        return self.file.sha256

    @property
    def dtype(self) -> str:
        """Name of the type that ids of this tokenizer are stored as."""
        return smallest_token_dtype(self.vocab_size).name

    def dataset_entry(self) -> dict[str, Any]:
        """Return what dataset.json says about the tokenizer; `path` is relative to the data set."""
        return {
            "sha256": self.sha256,
            "path": f"tokenizer/{self.sha256}/tokenizer.json",
            "vocab_size": self.vocab_size,
            "eos_token_id": self.eos_token_id,
            "pad_token_id": self.pad_token_id,
        }

    def load(self, root: Root) -> LoadedTokenizer:
        """Load the tokenizer from its frozen copy, whose bytes are checked."""
        return load_tokenizer(
            root.read_bytes(self.file),
            eos_token=self.eos_token,
            pad_token=self.pad_token,
            bos_token=self.bos_token,
            # Holes were accepted, or refused, when the tokenizer was pinned.
            allow_holes=True,
            where=self.file.name,
        )

    @property
    def bos_policy(self) -> str:
        """What shard headers say stands before a document."""
        return bos_policy(self.bos_token_id)

    def as_dict(self) -> dict[str, Any]:
        """Return the pin as it is stored; what is not set is left out."""
        value = dataclasses.asdict(self)
        return {key: item for key, item in value.items() if item is not None}


def read_pin(root: Root) -> TokenizerPin | None:
    """Return the root's tokenizer, or None if it has none yet.

    Raises:
        IntegrityError: the record is damaged.
    """
    try:
        data = root.storage.read(PIN)
    except FileNotFoundError:
        return None
    try:
        value = json.loads(data)
        return TokenizerPin(**{**value, "file": ObjectRef(**value["file"])})
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"{root.url}: {PIN} is damaged: {error}") from error


def materialize_tokenizer(root: Root, settings: Settings, log: LandingLog) -> TokenizerPin:
    """Make and pin the root's tokenizer, or report the one it has.

    Raises:
        ConfigurationError: the tokenizer cannot be used, see `load_tokenizer`.
        PinnedRootError: the configuration asks for another tokenizer than the pinned one.
        StageError: there are no kept documents to train on yet.
    """
    pin = read_pin(root)
    if pin is None:
        data, origin = _make(root, settings, log)
        pin = _freeze(root, settings.tokenizer, data, origin)
    check_pin(root, settings, pin)
    _copy_to_dataset(root, pin)
    return pin


def check_configured(root: Root, settings: Settings) -> None:
    """Refuse a tokenizer that is a file now, not when texts are cleaned and wait for it.

    A tokenizer that is trained in the root is known only then.

    Raises:
        ConfigurationError: the tokenizer cannot be used, see `load_tokenizer`, or it has no such
            id as the separator.
        PinnedRootError: the root has another tokenizer.
    """
    wanted, pin = settings.tokenizer, read_pin(root)
    if pin is not None:
        check_pin(root, settings, pin)
        vocab_size = pin.vocab_size
    elif wanted.path is not None:
        vocab_size = _try_to_load(_read_configured(settings, root, None), wanted)
    else:
        return
    settings.ordering.check_separator(vocab_size)


@functools.lru_cache(maxsize=1)
def _try_to_load(data: bytes, settings: TokenizerSettings) -> int:
    """Return the vocabulary's size; a large file takes a second, so once per process."""
    return _load_configured(data, settings, where=str(settings.path)).vocab_size


def _load_configured(data: bytes, settings: TokenizerSettings, *, where: str) -> LoadedTokenizer:
    return load_tokenizer(
        data,
        eos_token=settings.eos_token,
        pad_token=settings.pad_token,
        bos_token=settings.bos_token,
        allow_holes=settings.allow_vocabulary_holes,
        where=where,
    )


def check_pin(root: Root, settings: Settings, pin: TokenizerPin) -> None:
    """Compare the configured tokenizer with the pinned one.

    Raises:
        PinnedRootError: they differ.
    """
    wanted = settings.tokenizer
    problems = []
    if wanted.path is not None:
        found = hashlib.sha256(_read_configured(settings, root, pin)).hexdigest()
        if found != pin.sha256:
            problems.append(f"path {wanted.path} has the SHA-256 {found}")
    elif wanted.train is not None and pin.origin.get("train") != dataclasses.asdict(wanted.train):
        problems.append(f"train {dataclasses.asdict(wanted.train)} (pinned: {pin.origin})")
    if wanted.eos_token != pin.eos_token:
        problems.append(f"eos_token {wanted.eos_token!r} (pinned: {pin.eos_token!r})")
    if (wanted.pad_token or wanted.eos_token) != pin.pad_token:
        problems.append(f"pad_token {wanted.pad_token!r} (pinned: {pin.pad_token!r})")
    if wanted.bos_token != pin.bos_token:
        problems.append(f"bos_token {wanted.bos_token!r} (pinned: {pin.bos_token!r})")
    if problems:
        raise PinnedRootError(
            f"{root.url} is pinned to the tokenizer {pin.sha256}, the configuration says "
            f"{'; '.join(problems)}. Every id in the root would change: set `tokenizer` back "
            f"(path: {root.url}/{pin.file.name} always fits), or start another root with --root"
        )


def _make(root: Root, settings: Settings, log: LandingLog) -> tuple[bytes, dict[str, Any]]:
    wanted = settings.tokenizer
    if wanted.train is None:
        return _read_configured(settings, root, None), {"path": wanted.path}
    tasks = _training_tasks(root, settings, log)
    text = _TrainingText(
        root, tasks, wanted.train.max_bytes, group_rules(root, settings, kept_tasks(root, log)[0])
    )
    named = (wanted.eos_token, wanted.pad_token, wanted.bos_token)
    special = list(dict.fromkeys(token for token in named if token is not None))
    data = train_bpe(text, vocab_size=wanted.train.vocab_size, special_tokens=special)
    vocab_size = tokenizers.Tokenizer.from_buffer(data).get_vocab_size(with_added_tokens=True)
    if vocab_size < wanted.train.vocab_size:
        said = _small_vocabulary(wanted.train.vocab_size, vocab_size, text.num_bytes)
        logger.warning("tokenizer: %s", said)
    origin = {
        "train": dataclasses.asdict(wanted.train),
        "generation": tasks[0].generation,
        "documents": text.num_documents,
        "bytes": text.num_bytes,
        "skipped_bytes": text.skipped_bytes,
        "tokenizers": tokenizers.__version__,
        "version": TRAINING_VERSION,
    }
    logger.info("tokenizer: trained on %s documents", f"{text.num_documents:,d}")
    return data, origin


def _small_vocabulary(wanted: int, found: int, num_bytes: int) -> str:
    """Return what to say when training found fewer ids than it was asked for."""
    return (
        f"{wanted:,d} ids were asked for (tokenizer.train.vocab_size), {num_bytes:,d} bytes of "
        f"text gave {found:,d}: no further pair of tokens occurs twice. For more ids start another "
        "root with more text in its first generation; this one keeps what it has"
    )


def vocabulary_warning(pin: TokenizerPin) -> str | None:
    """Return what to say of a trained tokenizer that is smaller than it was asked to be."""
    train = pin.origin.get("train")
    if train is None or pin.vocab_size >= train["vocab_size"]:
        return None
    return _small_vocabulary(train["vocab_size"], pin.vocab_size, pin.origin["bytes"])


def _training_tasks(root: Root, settings: Settings, log: LandingLog) -> list[KeptTask]:
    """Return the tasks of the first generation that kept a document, in survivor order."""
    tasks, waiting = kept_tasks(root, log)
    for number in sorted({task.generation for task in tasks}):
        first = [task for task in tasks if task.generation == number]
        if any(_num_kept(task) for task in first):
            priority = {source.name: source.priority for source in settings.sources}
            return sorted(first, key=lambda task: (-priority.get(task.source, 0), task.source))
    reason = waiting[0] if waiting else f"{len(log.generations)} generations kept nothing"
    raise StageError(
        f"{root.url}: no kept documents to train the tokenizer on: {reason}. Materialize "
        "unique_documents first, or configure tokenizer.path"
    )


def _num_kept(task: KeptTask) -> int:
    counts = [part.unique.statistics for part in task.parts]
    return sum(count["kept"] + count["modified"] for count in counts)


class _TrainingText:
    """Iterates kept texts in survivor order up to `max_bytes` UTF-8 bytes, and counts them.

    The text that would cross the limit is cut there, so that the amount never depends on how the
    documents happen to be split. Held-out documents are passed over.
    """

    def __init__(
        self, root: Root, tasks: list[KeptTask], max_bytes: int, groups: dict[str, GroupRules]
    ) -> None:
        self.num_documents = 0
        self.num_bytes = 0
        self.skipped_bytes = 0
        """Of runs that training passes over, see `unbroken.py`."""
        self._root, self._tasks, self._max_bytes = root, tasks, max_bytes
        self._groups = groups

    def __iter__(self) -> Iterator[str]:
        for batch in self._batches():
            for value in batch.column("text"):
                text = value.as_buffer().to_pybytes()
                left = self._max_bytes - self.num_bytes
                if left <= 0:
                    return
                self.num_documents += 1
                self.num_bytes += min(len(text), left)
                text = text[:left].decode(errors="ignore").encode()
                trained, skipped = without_long_runs(text)
                self.skipped_bytes += skipped
                yield trained.decode()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for task in self._tasks:
            rules = self._groups.get(task.source)
            finder = None
            if rules is not None:
                finder = GroupFinder(rules.of_generation(task.generation), task.source)
            columns = ["text"] if finder is None else list({"text", *finder.columns})
            for part in task.parts:
                for batch in read_unique(self._root, part.clean, part.unique, columns):
                    yield batch if finder is None else train_only(finder.find(batch), batch)


def _read_configured(settings: Settings, root: Root, pin: TokenizerPin | None) -> bytes:
    named = str(settings.tokenizer.path)
    path = Path(settings.base_dir) / named
    try:
        return path.read_bytes()
    except OSError as error:
        if HUB_NAME.fullmatch(named) and not path.exists() and not named.endswith(".json"):
            raise ConfigurationError(
                f"tokenizer.path: {named} is no file below {settings.base_dir or '.'}; if it is a "
                f"name on the hub, bring it here first: olmo-data tokenizer {named} --output "
                f"{path.name}.json, and name that file"
            ) from error
        frozen = "" if pin is None else f"; the root's frozen copy is {root.url}/{pin.file.name}"
        raise ConfigurationError(
            f"tokenizer.path: {path} cannot be read: {error.strerror or error}{frozen}"
        ) from error


def _freeze(
    root: Root, settings: TokenizerSettings, data: bytes, origin: dict[str, Any]
) -> TokenizerPin:
    """Publish and pin a tokenizer; return the pin that holds, which may be another writer's."""
    sha256 = hashlib.sha256(data).hexdigest()
    name = f"models/tokenizer/{sha256}/tokenizer.json"
    loaded = _load_configured(data, settings, where=settings.path or name)
    pin = TokenizerPin(
        file=root.publish_bytes(name, data),
        eos_token=settings.eos_token,
        eos_token_id=loaded.eos_token_id,
        pad_token=settings.pad_token or settings.eos_token,
        pad_token_id=loaded.pad_token_id,
        vocab_size=loaded.vocab_size,
        bos_token=settings.bos_token,
        bos_token_id=loaded.bos_token_id,
        origin=origin,
    )
    if root.storage.create(PIN, canonical_json(pin.as_dict())):
        return pin
    held = read_pin(root)
    assert held is not None, "a record that could not be created exists"
    return held


def _copy_to_dataset(root: Root, pin: TokenizerPin) -> None:
    name = f"dataset/{pin.dataset_entry()['path']}"
    if not root.is_intact(dataclasses.replace(pin.file, name=name)):
        root.publish_bytes(name, root.read_bytes(pin.file))
