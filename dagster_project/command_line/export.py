"""`olmo-data export`: a plan's instances for OLMo (packed), or the kept documents (dolma)."""

from __future__ import annotations

import argparse
from pathlib import Path

from assets.data_platform import open_platform
from assets.ordering.export import export_packed
from assets.root import Root
from assets.tokenizing.export_dolma import export_dolma
from dagster_project.command_line.terminal import say


def execute(arguments: argparse.Namespace) -> int:
    """Write the files and say what they hold."""
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    if arguments.action == "dolma":
        return _dolma(platform.root, arguments)
    report = export_packed(platform.root, Path(arguments.folder), plan_id=arguments.plan)
    say(
        f"plan {report.plan.plan_id}: {report.instances:,d} instances of "
        f"{report.plan.sequence_length:,d} tokens in {len(report.files):,d} files in "
        f"{arguments.folder}, {report.utilization:.2%} of the positions count (label masks leave "
        "out padding and masked tokens)"
    )
    say("OLMo: data.paths from paths.txt, data.label_mask_paths the same names ending in .mask,")
    say(
        f"  data.memmap_dtype {report.plan.dtype.name}, model.max_sequence_length "
        f"{report.plan.sequence_length}, seed {report.plan.seed}"
    )
    return 0


def _dolma(root: Root, arguments: argparse.Namespace) -> int:
    report = export_dolma(root, Path(arguments.folder), sources=tuple(arguments.source or ()))
    say(
        f"{report.documents:,d} documents in {report.files:,d} files under "
        f"{arguments.folder}/documents, their attributes under {arguments.folder}/attributes"
    )
    for reason in report.waiting:
        say(f"not in it yet: {reason}")
    return 0
