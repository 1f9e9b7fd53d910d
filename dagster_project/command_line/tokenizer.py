"""`olmo-data tokenizer NAME`: bring a tokenizer.json from the hub; nothing else ever does."""

from __future__ import annotations

import argparse
from pathlib import Path

from assets.tokenizing.hub import download_tokenizer
from dagster_project.command_line.terminal import say


def execute(arguments: argparse.Namespace) -> int:
    """Download the file and print what the configuration says to use it."""
    target = Path(arguments.output)
    sha256 = download_tokenizer(arguments.name, target, revision=arguments.revision)
    say(f"{target}: tokenizer.json of {arguments.name} ({arguments.revision}), sha256 {sha256}")
    say("In the configuration, relative to its folder:")
    say(f"  tokenizer: {{path: {target}, eos_token: ...}}")
    return 0
