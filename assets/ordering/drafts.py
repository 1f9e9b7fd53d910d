"""A plan before its files: what decides it, and with that its id."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assets.errors import ConfigurationError
from assets.ordering.filter_bits import describe_instance_filter
from assets.ordering.shares import SourceWeights, build_mixtures, group_of_shards
from assets.ordering.tails import ALGORITHMS, DROP, tail_tokens
from assets.ordering.weighted import copies, has_parts, number_uses
from assets.settings.ordering import MixtureSettings, OrderingSettings
from olmo_loader.mixture import DEFICIT, PASSES, STOCHASTIC, Mixture
from olmo_loader.plan import CUTTING, PACKING
from olmo_loader.plan_identity import (
    BEST_FIT,
    CUT,
    MIXTURE,
    SHUFFLE,
    plan_fingerprint,
    train_records,
)
from olmo_loader.plan_writing import describe_plan
from olmo_loader.shard_index import IndexSnapshot, in_plan_order


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanInputs:
    """Everything a fresh plan follows from."""

    records: Sequence[dict[str, Any]]
    """Every index record of the snapshot, in any order."""
    snapshot: IndexSnapshot
    ordering: OrderingSettings
    weights: SourceWeights = field(default_factory=SourceWeights)
    takedown: IndexSnapshot | None = None
    """Last takedown record: a packed plan leaves out what it and those before it name."""

    @property
    def shards(self) -> list[dict[str, Any]]:
        """Records of the training shards, in plan order."""
        return train_records(in_plan_order(self.records))

    @property
    def generation(self) -> int:
        """A function of the snapshot alone: a replay of the log makes the same plan."""
        return max(int(record["generation"]) for record in self.records)


def draft_plan(inputs: PlanInputs) -> dict[str, Any]:
    """Return a fresh plan's description: `plan.json` without what follows from the rest.

    A plan of OLMo's kind (chunked, shuffled, every shard once) comes back complete.

    Raises:
        ConfigurationError: weights that cannot be, see `build_mixtures`.
    """
    ordering = inputs.ordering
    described = describe_plan(
        inputs.records,
        snapshot=inputs.snapshot,
        generation=inputs.generation,
        sequence_length=ordering.sequence_length if _is_cut_by_shard(ordering) else 1,
        seed=ordering.seed,
    )
    shards = inputs.shards
    times = copies(shards, inputs.weights)
    is_even = all(often == 1 for often in times)
    described |= describe_instance_filter(ordering.instance_filter)
    if _is_cut_by_shard(ordering) and ordering.order == SHUFFLE and is_even:
        return with_id(shards, described) if ordering.instance_filter else described
    segment = {**described["segments"][0], "sequence_length": ordering.sequence_length}
    plan = {
        **described,
        "packing": ordering.packing,
        "order": ordering.order,
        "segments": [segment],
        "algorithm": _algorithm(ordering, described["algorithm"]["permutation"]),
    }
    if ordering.order == SHUFFLE and not is_even:
        plan["numbered"] = times
        if ordering.packing == CUT:
            plan["uses"] = number_uses(times)
    # Whole repeats of chunked shards follow from `uses`.
    if ordering.order == MIXTURE or ordering.packing == BEST_FIT or has_parts(plan):
        often = weights_of(shards) if ordering.order == MIXTURE else times
        plan |= {} if all(weight == 1 for weight in often) else {"shard_weights": often}
    if ordering.packing == BEST_FIT:
        plan["packing_options"] = _packing_options(ordering, shards)
        plan["takedown"] = None if inputs.takedown is None else inputs.takedown.as_json()
    if ordering.order == MIXTURE:
        mixtures = mix(ordering.mixture or MixtureSettings(), inputs, ordering.sequence_length)
        plan["segments"] = [
            {**segment, "mixture": mixture.to_json(), "stage": number}
            for number, mixture in enumerate(mixtures)
        ]
    return with_id(shards, plan)


def _is_cut_by_shard(ordering: OrderingSettings) -> bool:
    """Tell whether every instance is a range of one shard that arithmetic finds."""
    return ordering.packing == CUT and ordering.tails == DROP


def _packing_options(
    ordering: OrderingSettings, shards: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    options = dataclasses.asdict(ordering.packing_options)
    if options["separator_id"] is None:
        del options["separator_id"]  # plans without one are what they were before there was one
    ordering.check_separator(int(shards[0]["vocab_size"]))
    return options


def weights_of(shards: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return how often each shard is read relative to its source's others."""
    return [float(record["weight"]) for record in shards]


def with_id(shards: Sequence[dict[str, Any]], plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description with its fingerprint and id."""
    fingerprint = plan_fingerprint(shards, plan)
    return {**plan, "plan_id": fingerprint[:16], "fingerprint": fingerprint}


def mix(settings: MixtureSettings, inputs: PlanInputs, sequence_length: int) -> list[Mixture]:
    """Return the mixtures of a plan's stages over all its shards."""
    named = settings.weights or next(
        (stage.weights for stage in settings.stages if stage.weights), None
    )
    return build_mixtures(
        settings,
        inputs.weights,
        group_sizes(inputs.shards, named, inputs.ordering, sequence_length),
        sequence_length,
    )


def group_sizes(
    shards: Sequence[dict[str, Any]],
    weights: Mapping[str, float] | None,
    ordering: OrderingSettings,
    sequence_length: int,
) -> dict[str, int]:
    """Return the tokens by group that stand in instances (packed: in shards)."""
    names = group_of_shards(shards, weights)
    sizes = tail_tokens(ordering.tails, shards, names, weights_of(shards), sequence_length)
    for name, record in zip(names, shards, strict=True):
        tokens = record["n_tokens"]
        if ordering.packing == CUT:
            tokens = tokens // sequence_length * sequence_length
        sizes[name] = sizes.get(name, 0) + tokens
    return sizes


def _algorithm(ordering: OrderingSettings, permutation: str) -> dict[str, str]:
    found = {"permutation": permutation, "cutting": CUTTING}
    if ordering.packing == BEST_FIT:
        found = {"permutation": permutation, "packing": PACKING}
    if ordering.order == MIXTURE:
        sampler = (ordering.mixture or MixtureSettings()).sampler
        found |= {"mixture": DEFICIT if sampler == "deficit" else STOCHASTIC, "passes": PASSES}
        del found["permutation"]
    if ordering.tails != DROP:
        found["tails"] = ALGORITHMS[ordering.tails]
    return found


def require_instances(total: int, sequence_length: int) -> None:
    """Refuse a plan without an instance."""
    if total == 0:
        raise ConfigurationError(
            f"nothing is left for an instance of {sequence_length:,d} tokens; land more text, or "
            "lower ordering.sequence_length"
        )
