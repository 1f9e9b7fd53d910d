"""Write a packed plan as physical shards: whole instances, as OLMo reads them.

OLMo cuts its files every `sequence_length` tokens, so a file of whole instances gives back exactly
these instances, padding included. Beside each file stands a label mask (one byte per token, 0 =
padding, withdrawn or taken down); `paths.txt` lists the files in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from assets.errors import ConfigurationError
from assets.ordering.published import dataset_dir
from assets.root import Root
from olmo_loader.plan import Plan
from olmo_loader.published import PublishedDataset, open_published

BATCH = 256
"""Instances in memory at once."""
MAX_TOKENS = 1 << 28
"""Tokens of a file, about."""
PATHS_FILE = "paths.txt"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportReport:
    """What an export wrote."""

    plan: Plan
    files: tuple[Path, ...]
    instances: int
    tokens: int
    """That count: neither padding nor masked."""
    slots: int

    @property
    def utilization(self) -> float:
        """Tokens that count over positions."""
        return self.tokens / self.slots if self.slots else 0.0


def export_packed(
    root: Root, folder: Path, *, plan_id: str | None = None, max_tokens: int = MAX_TOKENS
) -> ExportReport:
    """Write the instances of a plan into `folder`.

    A shuffled plan is written in order of instance, so that OLMo's shuffle of as many instances
    with the plan's seed gives the plan's order. A plan of one pass is written in order of position.

    Args:
        root: of the data set.
        folder: made here; must not exist.
        plan_id: the current plan if None.
        max_tokens: of a file.

    Raises:
        ConfigurationError: the folder exists, or the plan has several sequence lengths.
    """
    data = open_published(dataset_dir(root), plan_id)
    plan = data.plan
    if plan.length_changes:
        raise ConfigurationError(
            f"plan {plan.plan_id} has several sequence lengths; files of one length cannot hold it"
        )
    if folder.exists():
        raise ConfigurationError(f"{folder} exists; give a folder that does not")
    folder.mkdir(parents=True)
    total = plan.num_positions if plan.is_one_pass else plan.num_instances
    per_file = max(max_tokens // plan.sequence_length, 1)
    files, real = [], 0
    for number, start in enumerate(range(0, total, per_file)):
        path = folder / f"part-{number:05d}.npy"
        real += _write_file(data, path, start, min(start + per_file, total))
        files.append(path)
    (folder / PATHS_FILE).write_text("".join(f"{path.name}\n" for path in files))
    return ExportReport(
        plan=plan,
        files=tuple(files),
        instances=total,
        tokens=real,
        slots=total * plan.sequence_length,
    )


def _write_file(data: PublishedDataset, path: Path, start: int, end: int) -> int:
    """Write instances or positions [start, end); return their unmasked tokens."""
    order = data.plan.open_order() if data.plan.is_one_pass else None
    real = 0
    with path.open("xb") as ids, path.with_suffix(".mask").open("xb") as masks:
        for begin in range(start, end, BATCH):
            last = min(begin + BATCH, end)
            index = np.arange(begin, last)
            if order is not None:
                index = np.asarray(order[begin:last], np.int64)
            read = data.reader.read(index)
            rows = read.mask_spans()
            mask = read.label_mask
            kept = np.ones(rows.shape, bool) if mask is None else mask
            rows.tofile(ids)
            kept.tofile(masks)
            real += int(kept.sum())
    return real
