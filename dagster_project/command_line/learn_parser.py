"""The arguments of `olmo-data learn`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from assets.cleaning.models.learn_limits import DEFAULT_MAX_BYTES, MAX_BITS, MAX_ORDER, MIN_BITS


def add_learn_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    add: Callable[..., argparse.ArgumentParser],
) -> None:
    """Add `learn` with what can be learned."""
    command = add(
        commands, "learn", "Learn a model from cleaned texts, once, and freeze it by its hash."
    )
    models = command.add_subparsers(dest="model", required=True, metavar="MODEL")
    perplexity = models.add_parser("perplexity", help="n-gram model of a reference source")
    perplexity.add_argument(
        "--order", type=int, choices=range(1, MAX_ORDER + 1), default=3, help="2: bigrams"
    )
    _add_bits(perplexity, 22, "slots of each of its three tables")
    percentiles = models.add_parser("percentiles", help="percentiles of perplexity per language")
    percentiles.add_argument(
        "--model", dest="sha256", metavar="SHA256", help="another model than the configured one"
    )
    quality = models.add_parser("quality", help="classifier of good and bad sources")
    quality.add_argument(
        "--negative", action="append", required=True, metavar="NAME",
        help="source of bad texts; may be repeated (--source names the good ones)",
    )  # fmt: skip
    _add_bits(quality, 18, "weights")
    distribution = models.add_parser("distribution", help="how often words occur in a source")
    for model in (perplexity, percentiles, quality, distribution):
        model.add_argument(
            "--source", action="append", required=True, metavar="NAME", help="may be repeated"
        )
        model.add_argument(
            "--max-bytes", type=int, default=DEFAULT_MAX_BYTES, help="of text, of either kind"
        )


def _add_bits(parser: argparse.ArgumentParser, default: int, what: str) -> None:
    parser.add_argument(
        "--bits", type=int, choices=range(MIN_BITS, MAX_BITS + 1), default=default,
        metavar="N", help=f"2**N {what} (default: {default})",
    )  # fmt: skip
