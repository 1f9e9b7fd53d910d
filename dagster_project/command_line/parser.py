"""The arguments of `olmo-data`."""

from __future__ import annotations

import argparse

from dagster_project.command_line.dedup_parser import add_dedup_commands
from dagster_project.command_line.learn_parser import add_learn_command
from dagster_project.command_line.plan_parser import add_plan_commands
from dagster_project.environment import CONFIG_VARIABLE, default_config

UNTIL = ("documents", "clean", "unique", "tokens", "shards", "dataset")
"""Stages a run can be told to stop after, in order."""
DEFAULT_PORT = 3000


def build_parser() -> argparse.ArgumentParser:
    """Return the parser; every command sets `module`, the module that executes it."""
    parser = argparse.ArgumentParser(
        prog="olmo-data", description="From landed files to reproducible training batches."
    )
    parser.add_argument(
        "--traceback", action="store_true", help="show where an error came from, for a bug report"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_run(commands)
    _add_sources(commands)
    add_learn_command(commands, _add)
    _add_report(commands)
    _add_explain(commands)
    add_dedup_commands(commands, _add, _positive)
    _add_query(commands)
    _add_what_if(commands)
    _add_tokens(commands)
    add_plan_commands(commands, _add)
    _add_upkeep(commands)
    _add_ui(commands)
    for command in commands.choices.values():
        _allow_behind_actions(command)
    return parser


_Commands = argparse._SubParsersAction  # noqa: SLF001 (argparse has no public name for it)


def _allow_behind_actions(command: argparse.ArgumentParser) -> None:
    """Let --config and --root stand behind a command's action as well: `plan show --config C`."""
    for argument in command._actions:  # noqa: SLF001 (nor for these)
        if isinstance(argument, _Commands) and command.get_default("config") is not None:
            for action in argument.choices.values():
                # Left out behind the action, they leave what stands before it.
                action.add_argument(
                    "--config", default=argparse.SUPPRESS, help="configuration file"
                )
                action.add_argument(
                    "--root", default=argparse.SUPPRESS, help="another than the configuration's"
                )


def _add(
    commands: _Commands[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    command.set_defaults(module=f"dagster_project.command_line.{name}")
    command.add_argument(
        "--config",
        default=default_config(),
        help=f"configuration file (default: {CONFIG_VARIABLE}, or the demo's)",
    )
    command.add_argument("--root", help="another root than the configuration's")
    return command


def _add_demo(commands: _Commands[argparse.ArgumentParser]) -> None:
    command = _add(commands, "demo", "Build the embedded corpora and make a data set of them.")
    command.add_argument("--processes", type=_positive, help="worker processes")


def _add_run(commands: _Commands[argparse.ArgumentParser]) -> None:
    command = _add(commands, "run", "Land what is new and bring every stage up to date.")
    command.add_argument(
        "--source", action="append", metavar="NAME", help="only this source; may be repeated"
    )
    command.add_argument(
        "--until", choices=UNTIL, default=UNTIL[-1], help="last stage (default: dataset)"
    )
    command.add_argument("--processes", type=_positive, help="worker processes")


def _add_sources(commands: _Commands[argparse.ArgumentParser]) -> None:
    _add(commands, "sources", "Show what is configured, landed and waiting.")


def _add_report(commands: _Commands[argparse.ArgumentParser]) -> None:
    command = _add(commands, "report", "Write a page of figures, plots and samples, and a prompt.")
    command.add_argument("configuration", nargs="?", metavar="CONFIG", help="instead of --config")
    command.add_argument(
        "--output", default="outputs", metavar="FOLDER", help="where to (default: outputs)"
    )


def _add_explain(commands: _Commands[argparse.ArgumentParser]) -> None:
    command = _add(commands, "explain", "Show what happened to one document, stage by stage.")
    command.add_argument("doc_id", help="32 hexadecimal digits")
    command.add_argument("--text", action="store_true", help="show the beginning of its texts")
    command.add_argument("--json", action="store_true", help="as JSON")


def _add_query(commands: _Commands[argparse.ArgumentParser]) -> None:
    command = _add(commands, "query", "Ask the catalog a question in SQL (DuckDB, read-only).")
    command.add_argument("sql", help="one statement; `SHOW TABLES` lists what there is")
    command.add_argument("--format", choices=("table", "csv", "json"), default="table")
    command.add_argument("--memory-mb", type=_positive, default=1024, help="default: 1024")
    command.add_argument("--timeout-s", type=_positive, default=300, help="default: 300")
    command.add_argument("--max-rows", type=_positive, default=10_000, help="default: 10000")


def _add_what_if(commands: _Commands[argparse.ArgumentParser]) -> None:
    command = _add(commands, "what-if", "Tell what other thresholds of cleaning would drop.")
    command.set_defaults(module="dagster_project.command_line.what_if")
    command.add_argument(
        "thresholds", nargs="+", metavar="RULE=THRESHOLD", help="a rule as the ledger names it"
    )
    command.add_argument(
        "--source", action="append", metavar="NAME", help="only this source; may be repeated"
    )
    command.add_argument("--ids", type=_positive, default=3, help="ids shown each (default: 3)")
    command.add_argument("--json", action="store_true", help="one JSON object a line")


def _add_tokens(commands: _Commands[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("tokenizer", help="Bring a tokenizer.json from the hub here.")
    command.set_defaults(module="dagster_project.command_line.tokenizer")
    command.add_argument("name", help="owner/name on the hub")
    command.add_argument("--output", required=True, metavar="FILE", help="file to create")
    command.add_argument("--revision", default="main", help="branch, tag or commit")
    command = _add(commands, "index", "Show the shard index, or change what later plans read.")
    actions = command.add_subparsers(dest="action", required=True, metavar="list|weight|retire")
    listing = actions.add_parser("list", help="every shard with its tokens and weight")
    listing.add_argument("--source", help="only this source")
    listing.add_argument("--json", action="store_true", help="records, one JSON object a line")
    weight = actions.add_parser("weight", help="see a shard more or less often than its source's")
    weight.add_argument("shard", help="shards/<source>/<number>-<fingerprint>.npy")
    weight.add_argument("weight", type=float, help="1: as often as the others")
    retire = actions.add_parser("retire", help="leave a shard out of every later plan, for good")
    retire.add_argument("shard", help="shards/<source>/<number>-<fingerprint>.npy")
    for action in (weight, retire):
        action.add_argument("--reason", required=True, help="kept in the index")


def _add_upkeep(commands: _Commands[argparse.ArgumentParser]) -> None:
    command = _add(commands, "verify", "Check everything in the root against its records.")
    command.add_argument(
        "--quick", action="store_true", help="sizes and counts; do not read every byte"
    )
    command.add_argument(
        "--texts",
        choices=("all", "sample", "none"),
        default="all",
        help="which documents are decoded from their tokens and compared with their texts",
    )
    command = _add(commands, "gc", "List what nothing refers to; --delete removes it.")
    command.add_argument("--delete", action="store_true", help="delete it; without, only list it")
    command.add_argument(
        "--older-than-hours", type=float, default=24.0, help="younger objects stay (default: 24)"
    )
    command.add_argument("--plan", metavar="ID", help="an older plan to give up")


def _add_ui(commands: _Commands[argparse.ArgumentParser]) -> None:
    command = _add(commands, "ui", "Open the Dagster web UI on this machine.")
    command.add_argument("--port", type=_positive, default=DEFAULT_PORT)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number
