"""`olmo-data plan`: show, extend and budget the plans of a data set, describe OLMo's mixes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import pandas as pd

from assets.data_platform import OpenPlatform, open_platform
from assets.errors import ConfigurationError
from assets.ordering.budget import MAX_EPOCHS, TOKENS_PER_PARAMETER, plan_budget
from assets.ordering.extend_published import extend_published
from assets.ordering.mix_plan import publish_mix
from assets.ordering.olmo_mix import read_mix
from assets.ordering.packing_report import low_utilization
from assets.ordering.plan_sources import plan_source_table
from assets.ordering.published import open_plan, read_published
from assets.ordering.share_rows import drift_alarm
from assets.ordering.shares import SourceWeights, build_mixtures
from assets.settings.load import load_mixture
from assets.settings.ordering import MixtureSettings
from dagster_project.command_line.terminal import complain, format_table, say
from olmo_loader.plan import Plan


def execute(arguments: argparse.Namespace) -> int:
    """Carry out one action; 0 unless it is refused."""
    return _ACTIONS[arguments.action](arguments)


def _open(arguments: argparse.Namespace, *, writable: bool) -> OpenPlatform:
    root = arguments.plan_root or arguments.root
    return open_platform(arguments.config, root=root, writable=writable)


def _current(platform: OpenPlatform, plan_id: str | None) -> Plan:
    published = read_published(platform.root)
    if published is None:
        raise ConfigurationError(f"{platform.root.url}: no data set has been published yet")
    wanted = plan_id or published.file.plan
    if wanted not in published.file.plans:
        known = ", ".join(published.file.plans)
        raise ConfigurationError(f"{platform.root.url} has no plan {wanted!r}; it has {known}")
    return open_plan(platform.root, wanted)


def show(arguments: argparse.Namespace) -> int:
    """Print a plan's segments and the shares of its sources."""
    platform = _open(arguments, writable=False)
    say_plan(_current(platform, arguments.plan))
    return 0


def say_plan(plan: Plan) -> None:
    """Print a plan: what it is, its packing, and the table of its sources."""
    record = plan.record
    say(
        f"plan {plan.plan_id}: {plan.num_positions:,d} positions, order {record['order']}, packing "
        f"{record['packing']}, seed {plan.seed}"
    )
    if record["parent"] is not None:
        say(f"goes on from position {record['prefix']:,d} of plan {record['parent']}")
    for number, segment in enumerate(record["segments"]):
        say(
            f"segment {number}: from position {segment['first_instance']:,d}, instances of "
            f"{segment['sequence_length']:,d} tokens, {segment['num_shards']:,d} shards"
        )
    if record.get("lost_tokens"):
        say(f"cutting again lost {record['lost_tokens']:,d} tokens")
    for group, report in sorted(record.get("packing_report", {}).items()):
        _say_packing(group, report)
    for group, tails in sorted(record.get("tails_report", {}).items()):
        say(
            f"tails of {group}: {tails['tokens']:,d} tokens in {tails['instances']:,d} instances, "
            f"{tails['padding']:,d} positions padded, {tails['lost']:,d} tokens lost"
        )
    say(format_table(plan_source_table(plan)))
    for row in record.get("sources", ()):
        if message := drift_alarm(row):
            complain(message)


def _say_packing(group: str, report: Mapping[str, Any]) -> None:
    say(
        f"packing of {group}: {report['utilization']:.2%} used, {report['cut']:,d} documents cut, "
        f"{report['truncated']:,d} truncated, {report['dropped']:,d} dropped "
        f"({report['cut_that_fitted']:,d} of them fitted), {report['discarded_tokens']:,d} tokens "
        f"discarded, {report['mean_documents_per_instance']:.1f} documents an instance"
    )
    if message := low_utilization(group, report):
        complain(message)


def extend(arguments: argparse.Namespace) -> int:
    """Make an extension and make it current."""
    platform = _open(arguments, writable=True)
    mixture = None if arguments.mixture is None else load_mixture(arguments.mixture)
    report = extend_published(
        platform.root,
        platform.settings,
        consumed=arguments.consumed,
        mixture=mixture,
        sequence_length=arguments.sequence_length,
        plan=arguments.plan,
    )
    say_plan(report.plan)
    made = "made" if report.is_new else "was made before"
    say(f"{made}, and is now the current plan; a run of plan {report.parent.plan_id} goes over to")
    say(f'it with build_train_dataloader(..., plan="{report.plan.plan_id}", state=state)')
    return 0


def budget(arguments: argparse.Namespace) -> int:
    """Print a budget, and how often each source would be read for it."""
    platform = _open(arguments, writable=False)
    available = _available(platform)
    found = plan_budget(
        flops=arguments.flops,
        parameters=arguments.params,
        tokens=arguments.tokens,
        available=available,
        shares=_shares(platform, available),
    )
    say(f"parameters N {found.parameters:.4g}, tokens D {found.tokens:.4g}, C = 6 N D")
    say(f"  = {found.flops:.4g} floating point operations")
    say(f"compute-optimal for C: N {found.optimal_parameters:.4g}, D {found.optimal_tokens:.4g}")
    say(f"D / {TOKENS_PER_PARAMETER:g} N = {found.ratio_for_model:.3g}")
    say(f"D / D_opt(C) = {found.ratio_for_compute:.3g}")
    if not found.sources:
        return 0
    rows = [
        {
            "source": need.group,
            "tokens": need.available,
            "share": f"{need.share:.4f}",
            "wanted": f"{need.wanted:.4g}",
            "epochs": f"{need.epochs:.2f}",
        }
        for need in found.sources
    ]
    say(format_table(pd.DataFrame(rows)))
    for need in found.sources:
        if need.is_repeated_too_often:
            complain(
                f"{need.group} would be read {need.epochs:.1f} times; above {MAX_EPOCHS:g} repeats "
                "add little: land more of it, or lower its weight"
            )
    return 0


def _available(platform: OpenPlatform) -> dict[str, int]:
    published = read_published(platform.root)
    if published is None:
        return {}
    sizes: dict[str, int] = {}
    for record in open_plan(platform.root, published.file.plan).shards:
        sizes[record["source"]] = sizes.get(record["source"], 0) + record["n_tokens"]
    return sizes


def _shares(platform: OpenPlatform, available: Mapping[str, int]) -> dict[str, float] | None:
    if not available or platform.settings.ordering.order != "mixture":
        return None
    ordering = platform.settings.ordering
    mixture = build_mixtures(
        ordering.mixture or MixtureSettings(),
        SourceWeights.of(platform.settings.sources),
        available,
        ordering.sequence_length,
    )[-1]
    shares = mixture.average_shares(mixture.tokens or sum(available.values()))
    return {name: float(share) for name, share in zip(mixture.groups, shares, strict=True)}


def describe(arguments: argparse.Namespace) -> int:
    """Print what an OLMo mix reads."""
    mix = read_mix(arguments.mix, tokenizer=arguments.tokenizer)
    facts: dict[str, Any] = {
        "sequence length": mix.sequence_length,
        "seed": mix.seed,
        "dtype": mix.dtype,
        "global batch": mix.global_batch_size,
    }
    say(f"{len(mix.paths):,d} paths, {mix.num_unique:,d} different")
    say(", ".join(f"{name} {value}" for name, value in facts.items() if value is not None))
    rows = [
        {"label": label, "paths": listed, "different": different}
        for label, (listed, different) in mix.by_label().items()
    ]
    say(format_table(pd.DataFrame(rows)))
    for name, count in mix.repeats.items():
        say(f"read {count} times: {name}")
    return 0


def mix(arguments: argparse.Namespace) -> int:
    """Make the plan of an OLMo mix."""
    platform = _open(arguments, writable=True)
    found = read_mix(arguments.mix, tokenizer=arguments.tokenizer)
    built = publish_mix(platform.root, platform.settings, found)
    say_plan(built.plan)
    made = "made" if built.is_new else "was made before"
    say(f'{made}; read it with build_train_dataloader(..., plan="{built.plan.plan_id}")')
    return 0


_ACTIONS = {"mix": mix, "show": show, "extend": extend, "budget": budget, "describe": describe}
