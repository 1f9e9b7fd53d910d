"""`verify`: everything in a root against its records, every fault named, nothing changed."""

from __future__ import annotations

from assets.root import Root
from assets.settings.schema import Settings
from assets.sources.landing_log import LandingLog, read_log
from assets.tokenizing.kept_parts import kept_tasks
from assets.tokenizing.membership import check_groups
from assets.upkeep.finding import Finding, as_finding
from assets.upkeep.verify_data_set import verify_accounts, verify_published
from assets.upkeep.verify_parts import Progress, load_manifests, verify_ledgers, verify_objects
from assets.upkeep.verify_texts import Texts, verify_shard_ids, verify_texts, verify_tokenizer


def verify(
    root: Root,
    settings: Settings | None = None,
    *,
    full: bool = True,
    texts: Texts = "all",
    progress: Progress = lambda _: None,
) -> list[Finding]:
    """Check the landing log, manifests, objects, ledgers, index, shards, plans and takedowns.

    Args:
        root: the root.
        settings: with them, the documents of shards are compared with the token parts in order,
            and the accounting line is proved.
        full: read and hash every byte, and compare ledgers row by row; without, sizes and counts.
        texts: which documents are decoded and compared with their kept texts, if `full`.
        progress: called with a line before each larger step.

    Returns:
        Every fault; empty if the root is sound.
    """
    findings: list[Finding] = []
    log: LandingLog | None = None
    progress("landing log")
    with as_finding("landings", "landings/", findings):
        log = read_log(root)
        if log.last_generation == 0:
            findings.append(
                Finding(area="landings", name=root.url, message="nothing has landed in this root")
            )
    manifests = load_manifests(root, findings)
    findings += verify_objects(root, manifests, full=full, progress=progress)
    if full:
        findings += verify_ledgers(root, manifests, progress)
        findings += verify_tokenizer(root)
    findings += verify_published(root, log, full=full, progress=progress)
    if settings is not None and log is not None:
        progress("documents of shards, accounting")
        findings += verify_accounts(root, settings.sharding, log)
        if full:
            findings += verify_shard_ids(root, settings.sharding, progress)
            with as_finding("tokens", "models/groups", findings):
                check_groups(root, settings, kept_tasks(root, log)[0])
    if full and log is not None:
        findings += verify_texts(root, log, texts, progress)
    # One damaged list is met by several checks.
    return list(dict.fromkeys(findings))
