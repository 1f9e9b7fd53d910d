"""Verify that shards hold the ids of the token parts, and that those decode to the kept texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from assets.errors import IntegrityError
from assets.manifest import Manifest
from assets.ordering.published import dataset_dir, read_shard_index
from assets.root import Root
from assets.settings.tokens import ShardingSettings
from assets.sharding.groups import build_groups
from assets.sharding.verify_shards import compare_shard
from assets.sources.landing_log import LandingLog
from assets.tokenizing.encode import single_threaded
from assets.tokenizing.kept_parts import kept_tasks
from assets.tokenizing.train import PIN, read_pin
from assets.tokenizing.verify_tokens import SAMPLED, TokenVerifier
from assets.upkeep.finding import Finding, as_finding
from assets.upkeep.verify_parts import Progress
from olmo_loader.shard_index import group_of

Texts = Literal["all", "sample", "none"]
"""Which documents are decoded; `sample` is one in 64 of every part."""


def verify_shard_ids(
    root: Root, settings: ShardingSettings, progress: Progress
) -> Iterator[Finding]:
    """Compare every token of every shard with the token parts."""
    findings: list[Finding] = []
    with as_finding("shards", "ids", findings):
        index = read_shard_index(root).records
        last = max((record["generation"] for record in index), default=0)
        entries = Manifest.load(root, "tokens").entries()
        groups = {
            group.key: group for group in build_groups(entries, settings, last_generation=last)
        }
        compared = 0
        for record in index:
            group = groups.get(group_of(record))
            if group is None:
                message = "no token part has documents of its group"
                findings.append(Finding(area="shards", name=record["shard"], message=message))
                continue
            with as_finding("shards", record["shard"], findings):
                compared += compare_shard(root, dataset_dir(root), group, record)
        progress(f"shards: the ids of {compared:,d} documents compared with the token parts")
    yield from findings


def verify_tokenizer(root: Root) -> Iterator[Finding]:
    """Verify that the root has the tokenizer that its tokens were made with, byte for byte."""
    findings: list[Finding] = []
    with as_finding("tokens", PIN, findings):
        pin = read_pin(root)
        if pin is not None:
            root.read_bytes(pin.file)
        elif any(Manifest.load(root, "tokens").entries()):
            raise IntegrityError(
                "missing, although there are token parts: restore it from a copy of the root; a "
                "run would pin whatever tokenizer is configured"
            )
    yield from findings


def verify_texts(
    root: Root, log: LandingLog, texts: Texts, progress: Progress
) -> Iterator[Finding]:
    """Decode the documents of every token part and compare them with the kept texts."""
    findings: list[Finding] = []
    if texts == "none":
        return
    with as_finding("tokens", PIN, findings), single_threaded():
        pin = read_pin(root)
        if pin is None:
            return
        verifier = TokenVerifier(root, pin.load(root))
        tokens = Manifest.load(root, "tokens")
        by_part = {(entry.source, entry.part): entry for entry in tokens.entries()}
        compared = 0
        for part in (part for task in kept_tasks(root, log)[0] for part in task.parts):
            entry = by_part.get((part.clean.source, part.clean.part))
            if entry is not None:
                with as_finding("tokens", f"{entry.source} {entry.part}", findings):
                    every = 1 if texts == "all" else SAMPLED
                    compared += verifier.verify(part, entry, every=every)
        progress(f"tokens: {compared:,d} documents decoded and compared with their texts")
    yield from findings
