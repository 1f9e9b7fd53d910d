"""The arguments of `olmo-data pairs` and `olmo-data dedup`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from dagster_project.environment import default_config

_Commands = argparse._SubParsersAction  # noqa: SLF001 (argparse has no public name for it)
Add = Callable[["_Commands[argparse.ArgumentParser]", str, str], argparse.ArgumentParser]


def add_dedup_commands(
    commands: _Commands[argparse.ArgumentParser], add: Add, positive: Callable[[str], int]
) -> None:
    """Add the commands.

    Args:
        commands: where to.
        add: makes a command with the arguments that all have.
        positive: parses a number of at least 1.
    """
    command = add(commands, "pairs", "Show a document's duplicates and where the texts differ.")
    command.add_argument("doc_id", help="32 hexadecimal digits")
    command.add_argument("--limit", type=positive, default=100, help="members (default: 100)")
    command = commands.add_parser("dedup", help="Ask about duplicates: what is found, and how.")
    command.set_defaults(module="dagster_project.command_line.dedup")
    questions = command.add_subparsers(dest="question", required=True, metavar="QUESTION")
    _add_curve(_question(questions, "curve", "what bands can be expected to find"), positive)
    _question(questions, "report", "what was found, as on the asset's page")
    _question(questions, "compact", "merge the runs of many landings; every answer stays the same")
    _question(questions, "contamination", "items found and documents dropped by evaluation set")
    _add_common(
        _question(questions, "common-ngrams", "n-grams of evaluation items that many texts hold"),
        positive,
    )
    spans = _question(questions, "spans", "the longest repeated spans (dedup.spans)")
    spans.add_argument("--limit", type=positive, default=20, help="spans (default: 20)")
    _add_against(_question(questions, "against", "kept documents that another set holds"), positive)


def _question(
    questions: _Commands[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    question = questions.add_parser(name, help=text, description=text)
    question.add_argument("--config", default=default_config(), help="configuration file")
    question.add_argument("--root", help="another root than the configuration's")
    return question


def _add_curve(curve: argparse.ArgumentParser, positive: Callable[[str], int]) -> None:
    curve.add_argument("--preset", choices=("classic", "datatrove", "dolma3", "optimum"))
    curve.add_argument("--threshold", type=float, help="least similarity of duplicates")
    curve.add_argument("--num-perm", type=positive, help="values of a signature")
    curve.add_argument("--bands", type=positive)
    curve.add_argument("--rows", type=positive, help="signature values in a band")


def _add_common(common: argparse.ArgumentParser, positive: Callable[[str], int]) -> None:
    common.add_argument("output", metavar="FILE", help="the list to make, one n-gram a line")
    common.add_argument(
        "--min-documents", type=positive, default=100, help="clean texts (default: 100)"
    )
    common.add_argument("--source", action="append", metavar="NAME", help="only this source")


def _add_against(against: argparse.ArgumentParser, positive: Callable[[str], int]) -> None:
    against.add_argument("name", help="what to call the set")
    against.add_argument("paths", nargs="+", metavar="GLOB", help=".jsonl, .jsonl.gz or .parquet")
    against.add_argument("--field", action="append", metavar="KEY", help="of the text (text)")
    against.add_argument("--id-field", default="id", metavar="KEY", help="of the set's own ids")
    against.add_argument("--output", metavar="FILE", help="all of them, one JSON object a line")
    against.add_argument("--limit", type=positive, default=20, help="lines shown (default: 20)")
