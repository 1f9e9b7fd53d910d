"""Does the perplexity filter help? Train the tiny model on filtered and unfiltered text.

On the CPU, in about a minute once the kernels are compiled::

    python examples/ablation.py --work-dir /tmp/ablation
    python examples/ablation.py --work-dir /tmp/ablation --reference wiki.jsonl --noisy web.jsonl

Two data sets are made with the same tokenizer. Both hold a reference source and a noisy one; in the
second both have passed the perplexity filter: a trigram model of the reference, and what is above
the 60th percentile of the noisy source (CCNet's tail) dropped. The same model is trained on each
for the same number of steps from the same weights, several times with other weights, and its loss
is measured on every fifth document of the reference, which neither training nor the filter's model
has read: the same documents for both, those held out of the unfiltered data set, because the filter
would leave the easier ones. The spread over the weights says how much of a difference is chance.

Without files of your own (JSON lines with a key `text`) the reference is docstrings of the standard
library, the noisy source other docstrings of it, and as many spoilt ones: words in another order,
words drawn from a list, letters mixed inside of words.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from train_tiny import (  # type: ignore[import-not-found]
    TinyTransformer,
    loss_per_domain,
    train_step,
)

from assets.cleaning.clean import materialize_clean
from assets.cleaning.models.learn import learn_perplexity, learn_perplexity_percentiles
from assets.dedup.unique import materialize_unique
from assets.demo.stdlib_files import find_modules, stdlib_dir
from assets.ordering.publish import publish_dataset
from assets.root import Root
from assets.settings.cleaning import CleaningSettings
from assets.settings.ordering import OrderingSettings
from assets.settings.perplexity import PerplexitySettings
from assets.settings.schema import EngineSettings, Settings
from assets.settings.sources import HoldoutSettings, SourceSettings
from assets.settings.tokens import ShardingSettings, TokenizerSettings, TrainTokenizerSettings
from assets.sharding.shards import materialize_shards
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer, read_pin
from olmo_loader import build_train_dataloader
from olmo_loader.dataset_file import read_dataset_file

LEAST_CHARACTERS = 400
"""Of a docstring that is taken."""
EVALUATED = 5
"""Every so many documents of the reference are held out, from the filter's model as well."""
DROP_ABOVE = 60.0
LEARNED_BYTES = 64 << 20


def docstrings() -> Iterator[str]:
    """Yield the longer docstrings of the standard library, in the order of its files."""
    for path in find_modules():
        tree = ast.parse((stdlib_dir() / path).read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                if len(text) >= LEAST_CHARACTERS:
                    yield text


def spoil(text: str, vocabulary: list[str], generator: np.random.Generator) -> str:
    """Return a text of the same length that nobody wrote."""
    words = text.split()
    kind = int(generator.integers(3))
    if kind == 0:
        return " ".join(generator.permutation(words).tolist())
    if kind == 1:
        return " ".join(generator.choice(vocabulary, len(words)).tolist())
    return " ".join("".join(generator.permutation(list(word)).tolist()) for word in words)


def write_corpora(folder: Path) -> tuple[Path, Path]:
    """Write the reference and the noisy source that are used when none are named."""
    texts = list(dict.fromkeys(docstrings()))
    reference, noisy = texts[0::2], texts[1::2]
    generator = np.random.default_rng(0)
    vocabulary = sorted({word for text in noisy for word in text.split()})
    noisy += [spoil(text, vocabulary, generator) for text in noisy]
    paths = folder / "reference.jsonl", folder / "noisy.jsonl"
    for path, items in zip(paths, (reference, noisy), strict=True):
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in items), "utf-8")
    return paths


def split_reference(folder: Path, reference: Path) -> Path:
    """Write what is trained on and what is evaluated, equal documents on one side."""
    lines = list(dict.fromkeys(reference.read_text("utf-8").splitlines()))
    evaluated = lines[::EVALUATED]
    trained = [line for number, line in enumerate(lines) if number % EVALUATED]
    split = folder / "split"
    split.mkdir(exist_ok=True)
    for name, items in (("reference", trained), ("evaluation", evaluated)):
        (split / f"{name}.jsonl").write_text("\n".join(items) + "\n", "utf-8")
    return split


def settings_of(name: str, folder: Path, split: Path, noisy: Path) -> Settings:
    """Return the settings of one data set; the perplexity filter is added later."""
    return Settings(
        root=str(folder / name),
        sources=(
            SourceSettings(
                name="evaluation",
                paths=(str(split.resolve() / "evaluation.jsonl"),),
                profile="text",
                holdout=HoldoutSettings(fraction=0.999),
                priority=2,
            ),
            SourceSettings(
                name="reference",
                paths=(str(split.resolve() / "reference.jsonl"),),
                profile="text",
                priority=1,
            ),
            SourceSettings(name="noisy", paths=(str(noisy.resolve()),), profile="text"),
        ),
        tokenizer=TokenizerSettings(
            train=TrainTokenizerSettings(vocab_size=4096, max_bytes=8 << 20)
        ),
        sharding=ShardingSettings(max_tokens=1 << 20, min_tokens=1 << 10),
        ordering=OrderingSettings(sequence_length=256),
        engine=EngineSettings(processes=1),
        base_dir=str(folder),
    )


def clean(settings: Settings) -> Root:
    """Land and clean the sources; return their root."""
    root = Root(settings.root)
    names = tuple(source.name for source in settings.sources)
    log = land(root, settings)
    materialize_documents(root, settings, log, names)
    report = materialize_clean(root, settings, log, names)
    for name, counts in report.by_source().items():
        lost = sum(counts["dropped"].values())
        print(f"  {name}: {counts['in']:,d} documents, {lost:,d} dropped {counts['dropped']}")
    return root


def publish(settings: Settings, root: Root) -> Path:
    """Make a data set of what is clean; return its folder."""
    log = land(root, settings)
    materialize_unique(root, settings, log)
    materialize_tokenizer(root, settings, log)
    materialize_tokens(root, settings, log)
    materialize_shards(root, settings, log)
    publish_dataset(root, settings, log)
    return Path(settings.root) / "dataset"


def make_unfiltered(settings: Settings) -> tuple[Path, TokenizerSettings]:
    """Make the data set without the filter; return its folder and its tokenizer."""
    root = clean(settings)
    dataset = publish(settings, root)
    pin = read_pin(root)
    assert pin is not None, "a published data set has a tokenizer"
    return dataset, TokenizerSettings(path=str(Path(settings.root) / pin.file.name))


def make_filtered(settings: Settings) -> Path:
    """Learn the filter and make the data set with it."""
    root = clean(settings)
    model = learn_perplexity(root, ["reference"], order=3, bits=20, max_bytes=LEARNED_BYTES)
    percentiles = learn_perplexity_percentiles(
        root, ["noisy"], model=model.sha256, max_bytes=LEARNED_BYTES
    )
    limits = PerplexitySettings(
        model=model.sha256, percentiles=percentiles.sha256, drop_above=DROP_ABOVE
    )
    chosen = dataclasses.replace(settings, cleaning=CleaningSettings(perplexity=limits))
    return publish(chosen, clean(chosen))


def train(dataset: Path, evaluation: Path, steps: int, seed: int) -> tuple[float, float]:
    """Return the loss of the last training steps, and on what is held out of `evaluation`."""
    torch.manual_seed(seed)
    loader = build_train_dataloader(
        dataset, global_batch_size=8, generate_doc_lengths=True, drop_last=True
    )
    vocabulary = read_dataset_file(dataset).tokenizer["vocab_size"]
    model = TinyTransformer(vocabulary, loader.dataset.chunk_size, width=64, layers=2, heads=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses: list[float] = []
    while len(losses) < steps:
        for batch in loader:
            losses.append(train_step(model, optimizer, batch))
            if len(losses) == steps:
                break
    held_out = loss_per_domain(model, evaluation)
    return float(np.mean(losses[-10:])), float(np.mean(list(held_out.values())))


def main() -> None:
    """Make both data sets, train on both, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--work-dir", type=Path, required=True)
    parser.add_argument("--reference", type=Path, help="JSON lines; clean text")
    parser.add_argument("--noisy", type=Path, help="JSON lines; text to filter")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=2, help="how many weights to start from")
    options = parser.parse_args()
    if (options.reference is None) != (options.noisy is None):
        parser.error("--reference and --noisy go together")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    options.work_dir.mkdir(parents=True, exist_ok=True)
    reference, noisy = options.reference, options.noisy
    if reference is None:
        reference, noisy = write_corpora(options.work_dir)
    split = split_reference(options.work_dir, reference)
    given = (options.work_dir, split, noisy)
    unfiltered, tokenizer = make_unfiltered(settings_of("unfiltered", *given))
    filtered = make_filtered(
        dataclasses.replace(settings_of("filtered", *given), tokenizer=tokenizer)
    )
    print(f"\n{'data set':<12}{'weights':>8}{'training loss':>15}{'held-out loss':>15}")
    for seed in range(options.seeds):
        for name, dataset in (("unfiltered", unfiltered), ("filtered", filtered)):
            training, held_out = train(dataset, unfiltered, options.steps, seed)
            print(f"{name:<12}{seed:>8}{training:>15.4f}{held_out:>15.4f}", flush=True)


if __name__ == "__main__":
    main()
