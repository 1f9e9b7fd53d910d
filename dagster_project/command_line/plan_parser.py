"""The arguments of `olmo-data plan`, `provenance` and `export`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

_Commands = argparse._SubParsersAction  # noqa: SLF001 (argparse has no public name for it)
Add = Callable[["_Commands[argparse.ArgumentParser]", str, str], argparse.ArgumentParser]


def add_plan_commands(commands: _Commands[argparse.ArgumentParser], add: Add) -> None:
    """Add the commands; `add` makes one with the arguments that all have."""
    plan = add(commands, "plan", "Show, extend and budget the plans of a data set.")
    actions = plan.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_show(actions)
    _add_extend(actions)
    _add_budget(actions)
    _add_describe(actions)
    _add_mix(actions)
    provenance = add(commands, "provenance", "Compare a training configuration with its table.")
    actions = provenance.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="every path has one row, every row a path")
    check.add_argument("mix", metavar="CONFIG", help="OLMo's YAML, or a list of paths")
    check.add_argument("table", metavar="PROVENANCE", help="provenance.csv")
    export = add(commands, "export", "Write a plan or the kept documents in another form.")
    actions = export.add_subparsers(dest="action", required=True, metavar="ACTION")
    packed = actions.add_parser("packed", help="shards of whole instances that OLMo reads")
    packed.add_argument("folder", help="where the shards go; must not exist")
    packed.add_argument("--plan", metavar="ID", help="the current plan by default")
    dolma = actions.add_parser("dolma", help="kept documents and their measurements, Dolma's form")
    dolma.add_argument("folder", help="where the files go; must not exist")
    dolma.add_argument("--source", action="append", metavar="NAME", help="only this; repeatable")


def _add_show(actions: _Commands[argparse.ArgumentParser]) -> None:
    show = actions.add_parser("show", help="target, planned and realised share per source")
    show.add_argument("plan_root", nargs="?", metavar="ROOT", help="in place of --root")
    show.add_argument("--plan", metavar="ID", help="the current plan by default")


def _add_extend(actions: _Commands[argparse.ArgumentParser]) -> None:
    extend = actions.add_parser("extend", help="go on from a position with something new")
    extend.add_argument("plan_root", nargs="?", metavar="ROOT", help="in place of --root")
    extend.add_argument(
        "--consumed", type=int, required=True, metavar="N", help="instances the run has read"
    )
    extend.add_argument("--mixture", metavar="FILE", help="YAML, as ordering.mixture")
    extend.add_argument("--sequence-length", type=int, metavar="L", help="from there on")
    extend.add_argument("--plan", metavar="ID", help="the plan to extend, by default the current")


def _add_budget(actions: _Commands[argparse.ArgumentParser]) -> None:
    budget = actions.add_parser("budget", help="tokens for a model, and epochs of each source")
    budget.add_argument("plan_root", nargs="?", metavar="ROOT", help="in place of --root")
    budget.add_argument("--flops", type=float, metavar="C", help="of training")
    budget.add_argument("--params", type=float, metavar="N", help="of the model")
    budget.add_argument("--tokens", type=float, metavar="D", help="of training")


def _add_describe(actions: _Commands[argparse.ArgumentParser]) -> None:
    describe = actions.add_parser("describe", help="what an OLMo mix reads, and how often")
    describe.add_argument("mix", metavar="FILE", help="OLMo's YAML, a .txt mix, or a list of paths")
    describe.add_argument("--tokenizer", help="replaces {TOKENIZER} in a list")


def _add_mix(actions: _Commands[argparse.ArgumentParser]) -> None:
    mix = actions.add_parser("mix", help="a plan of what an OLMo mix lists, in OLMo's order")
    mix.add_argument("mix", metavar="FILE", help="OLMo's YAML, a .txt mix, or a list of paths")
    mix.add_argument("plan_root", nargs="?", metavar="ROOT", help="in place of --root")
    mix.add_argument("--tokenizer", help="replaces {TOKENIZER} in a list")
