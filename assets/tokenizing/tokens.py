"""The stage `tokens`: every kept document of the complete generations as ids, ended by one EOS.

Nothing is stripped. A document without ids is dropped as `empty`; it would be a boundary only. One
with an unbroken run of letters (digits, spaces, ...) above `max_run_bytes` is quarantined as
`unbroken_run`. One with more than `max_document_tokens` is dropped as `too_many_tokens`, or split:
its pieces are rows of their own that keep its id and row number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from assets.canonical import fingerprint
from assets.cleaning.characters import UNICODE_VERSION
from assets.errors import IntegrityError, StageError
from assets.manifest import Manifest, PartEntry
from assets.root import Root
from assets.settings.schema import Settings
from assets.sources.landing_log import LandingLog
from assets.stage import (
    StageReport,
    StageTask,
    check_accounting,
    check_limits,
    materialize_tasks,
)
from assets.tokenizing.encode import EncodingRules, single_threaded
from assets.tokenizing.engine import REFERENCE, Engine, load_engine
from assets.tokenizing.kept_parts import KeptTask, kept_tasks
from assets.tokenizing.label_masks import BOILERPLATE, BOILERPLATE_RULES
from assets.tokenizing.membership import GroupRules, group_rules
from assets.tokenizing.part_writer import STAGE, PartRules, PartWriter
from assets.tokenizing.tokenizer import LoadedTokenizer, library_versions
from assets.tokenizing.train import TokenizerPin, check_pin, read_pin

CODE_VERSION = 4
"""Raised by hand when the same texts would give other ids or other columns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizeTask:
    """The parts of one task and the tokenizer; everything a worker needs."""

    root_url: str
    pin: TokenizerPin
    rules: PartRules
    engine: str
    """Name of the engine that encodes; no byte depends on it."""
    kept: KeptTask
    fingerprint: str


def materialize_tokens(root: Root, settings: Settings, log: LandingLog) -> StageReport:
    """Tokenize what is new in the complete generations.

    Raises:
        StageError: the root has no tokenizer yet.
        IntegrityError: stored bytes are damaged.
        PinnedRootError: the configured tokenizer is not the root's.
        LossLimitError: a source lost more than `limits` allows.
    """
    pin = read_pin(root)
    if pin is None:
        raise StageError(f"{root.url} has no tokenizer yet; materialize the asset `tokenizer`")
    check_pin(root, settings, pin)
    kept, waiting = kept_tasks(root, log)
    encoding = EncodingRules(
        max_document_tokens=settings.tokenizer.max_document_tokens,
        long_documents=settings.tokenizer.long_documents,
        max_run_bytes=settings.tokenizer.max_run_bytes,
    )
    groups = group_rules(root, settings, kept)
    masks = settings.tokenizer.mask_spans
    rules = [_rules(encoding, groups.get(task.source), task.generation, masks) for task in kept]
    hashes = [_fingerprint(pin, rule, task) for rule, task in zip(rules, kept, strict=True)]
    engine = _choose_engine(root, settings, pin, zip(kept, hashes, strict=True))
    tasks = [
        _stage_task(root, pin, rule, engine.name if engine else REFERENCE, task, hashed)
        for rule, task, hashed in zip(rules, kept, hashes, strict=True)
    ]
    report = materialize_tasks(
        root, STAGE, tasks, tokenize_task, processes=settings.engine.processes
    )
    check_accounting(report)
    check_limits(report, settings.limits)
    facts = {"tokenizer": pin.sha256, "vocab_size": pin.vocab_size, "dtype": pin.dtype}
    return dataclasses.replace(report, waiting=waiting, facts=facts | _engine_facts(engine))


def _choose_engine(
    root: Root, settings: Settings, pin: TokenizerPin, tasks: Iterable[tuple[KeptTask, str]]
) -> Engine | None:
    """Load the engine once for all workers, so that it falls back once; None if nothing is new."""
    manifest = Manifest.load(root, STAGE)
    if all(manifest.is_committed(task.source, task.task, hashed) for task, hashed in tasks):
        return None
    with single_threaded():
        return _load(root.url, pin.sha256, settings.engine.tokenizer)[1]


def _engine_facts(engine: Engine | None) -> dict[str, Any]:
    if engine is None:
        return {}
    return {
        "engine": f"{engine.name} {engine.version}",
        "engine_fallbacks": len(engine.fallbacks),
        "engine_fallback_reasons": "; ".join(f"{name}: {why}" for name, why in engine.fallbacks),
    }


def _rules(
    encoding: EncodingRules, groups: GroupRules | None, generation: int, masks: tuple[str, ...]
) -> PartRules:
    grouping = None if groups is None else groups.of_generation(generation)
    return PartRules(encoding=encoding, grouping=grouping, mask_spans=masks)


def _fingerprint(pin: TokenizerPin, rules: PartRules, kept: KeptTask) -> str:
    inputs: dict[str, Any] = {"max_run_bytes": rules.encoding.max_run_bytes}
    if rules.encoding.max_document_tokens is not None:
        inputs |= dataclasses.asdict(rules.encoding)
    if rules.encoding.max_run_bytes is not None:
        inputs["unicode"] = UNICODE_VERSION
    if rules.grouping is not None:
        inputs["groups"] = rules.grouping.inputs()
    if rules.mask_spans:
        inputs["mask_spans"] = sorted(set(rules.mask_spans))
    if BOILERPLATE in rules.mask_spans:
        inputs["boilerplate"] = dataclasses.asdict(BOILERPLATE_RULES) | {"unicode": UNICODE_VERSION}
    return fingerprint(
        stage=STAGE,
        code=CODE_VERSION,
        parts=[
            [part.clean.part, part.clean.objects["data"].sha256, part.unique.objects["data"].sha256]
            for part in kept.parts
        ],
        tokenizer=pin.sha256,
        eos=pin.eos_token_id,
        bos=pin.bos_policy,
        dtype=pin.dtype,
        libraries=library_versions(),
        **inputs,
    )


def _stage_task(
    root: Root, pin: TokenizerPin, rules: PartRules, engine: str, kept: KeptTask, hashed: str
) -> StageTask[TokenizeTask]:
    return StageTask(
        source=kept.source,
        generation=kept.generation,
        task=kept.task,
        fingerprint=hashed,
        payload=TokenizeTask(
            root_url=root.url, pin=pin, rules=rules, engine=engine, kept=kept, fingerprint=hashed
        ),
    )


def tokenize_task(task: TokenizeTask) -> list[PartEntry]:
    """Tokenize the parts of one task; memory is one row group of texts and of ids."""
    root = Root(task.root_url)
    with single_threaded():
        tokenizer, engine = _load(task.root_url, task.pin.sha256, task.engine)
        return [
            PartWriter(root, tokenizer, engine, part, task.rules, task.fingerprint).write()
            for part in task.kept.parts
        ]


def _load(root_url: str, sha256: str, engine: str) -> tuple[LoadedTokenizer, Engine]:
    """Load the pinned tokenizer once per process: that takes longer than a small part.

    What was loaded as `auto` is kept under the engine's own name, by which tasks ask for it.
    """
    found = _LOADED.get((root_url, sha256, engine))
    if found is None:
        root = Root(root_url)
        pin = read_pin(root)
        if pin is None or pin.sha256 != sha256:
            raise IntegrityError(f"{root_url}: the pinned tokenizer is no longer {sha256}")
        tokenizer = pin.load(root)
        found = tokenizer, load_engine(tokenizer.data, tokenizer.reference, wanted=engine)
        _LOADED.clear()
        _LOADED[root_url, sha256, engine] = _LOADED[root_url, sha256, found[1].name] = found
    return found


_LOADED: dict[tuple[str, str, str], tuple[LoadedTokenizer, Engine]] = {}
