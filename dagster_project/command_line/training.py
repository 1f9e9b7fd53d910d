"""What of a root is in training, for the closing text of a run: plan, waiting, masked."""

from __future__ import annotations

from collections import Counter
from typing import Any

from assets.data_platform import OpenPlatform
from assets.ordering.published import open_plan, read_published, read_shard_index, read_takedown_log
from assets.tokenizing.train import read_pin, vocabulary_warning
from olmo_loader.plan import Plan
from olmo_loader.shard_index import TRAIN_SPLIT


def training_lines(platform: OpenPlatform, tokens: dict[str, dict[str, Any]]) -> list[str]:
    """Return lines on the current plan, documents in no shard yet, and masked documents.

    Args:
        platform: what the run worked on.
        tokens: the statistics of the tokens stage, by source.
    """
    root = platform.root
    published = read_published(root)
    if published is None:
        return []
    plan = open_plan(root, published.file.plan)
    generation = published.file.generation
    lines = [_plan_line(plan, generation)]
    documents: Counter[str] = Counter()
    cut: Counter[str] = Counter()
    held_out: Counter[tuple[str, str]] = Counter()
    for record in read_shard_index(root).records:
        if record["op"] == "add":
            documents[record["source"]] += record["n_docs"]
            cut[record["source"]] += record["n_tokens"]
            if record["split"] != TRAIN_SPLIT:
                held_out[record["source"], record["split"]] += record["n_tokens"]
    lines += [
        f"{source}: {count:,d} tokens are held out of every plan (split {split})"
        for (source, split), count in sorted(held_out.items())
    ]
    for source in sorted(tokens):
        waiting = tokens[source]["documents"] - documents[source]
        if waiting > 0:
            lines.append(
                f"{source}: {waiting:,d} documents, {tokens[source]['tokens'] - cut[source]:,d} "
                "tokens are in no shard yet: they wait until there are "
                f"{platform.settings.sharding.min_tokens:,d} tokens (sharding.min_tokens)"
            )
    pin = read_pin(root)
    warning = None if pin is None else vocabulary_warning(pin)
    if warning is not None:
        lines.append(f"Tokenizer: {warning}")
    masked = Counter(
        record["op"] for record in read_takedown_log(root).records for _ in record["documents"]
    )
    lines += [
        f"{count:,d} documents counted above are masked in training ({op})"
        for op, count in sorted(masked.items())
    ]
    return lines


def _plan_line(plan: Plan, generation: int) -> str:
    line = f"Plan {plan.plan_id}: {plan.num_instances:,d} instances, up to landing {generation}"
    if plan.num_positions == plan.num_instances:
        return line
    # A mixture leaves instances out and repeats others: its run is as long as its order.
    return f"{line}; its order has {plan.num_positions:,d} positions"
