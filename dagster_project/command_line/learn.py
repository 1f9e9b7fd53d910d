"""`olmo-data learn MODEL --source S`: learn from cleaned texts and freeze the model by its hash."""

from __future__ import annotations

import argparse

from assets.cleaning.models.learn import (
    Learned,
    learn_distribution,
    learn_perplexity,
    learn_perplexity_percentiles,
    learn_quality,
)
from assets.data_platform import OpenPlatform, open_platform
from assets.errors import ConfigurationError
from dagster_project.command_line.terminal import say

_SETTING = {
    "perplexity": "perplexity: {{model: {0}}}",
    "percentiles": "perplexity: {{model: ..., percentiles: {0}, drop_above: 80}}",
    "distribution": "rules: {{distribution: {{enabled: true, model: {0}, max_divergence: ...}}}}",
    "quality": "quality: {{model: {0}}}",
}


def execute(arguments: argparse.Namespace) -> int:
    """Learn, and print what the configuration says to use it."""
    # Not as a writer of stages, whose settings have to be those that were published.
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    for name in [*arguments.source, *getattr(arguments, "negative", [])]:
        platform.settings.source(name)
    learned = _learn(platform, arguments)
    say(f"{learned.name}: {learned.documents:,d} documents, {learned.num_bytes:,d} bytes of text")
    for fact, value in learned.facts.items():
        say(f"  {fact}: {value:,}")
    say(f"frozen as {platform.root.url}/models/{learned.name}/{learned.sha256}")
    say("In the configuration, under `cleaning`:")
    say("  " + _SETTING[learned.name].format(learned.sha256))
    return 0


def _learn(platform: OpenPlatform, arguments: argparse.Namespace) -> Learned:
    root, sources, most = platform.root, arguments.source, arguments.max_bytes
    if arguments.model == "perplexity":
        return learn_perplexity(
            root, sources, order=arguments.order, bits=arguments.bits, max_bytes=most
        )
    if arguments.model == "distribution":
        return learn_distribution(root, sources, max_bytes=most)
    if arguments.model == "quality":
        return learn_quality(root, sources, arguments.negative, bits=arguments.bits, max_bytes=most)
    settings = platform.settings.cleaning.perplexity
    model = arguments.sha256 or (None if settings is None else settings.model)
    if model is None:
        raise ConfigurationError(
            "percentiles are those of a model: name it with --model, or in the configuration as "
            "cleaning.perplexity.model (olmo-data learn perplexity prints it)"
        )
    return learn_perplexity_percentiles(root, sources, model=model, max_bytes=most)
