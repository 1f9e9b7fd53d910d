"""What cleaning costs beside Dolma and datatrove: CPU seconds of process trees, same files.

    .venv/bin/python -m benchmarks.clean [--folder DIR] [--repeat N] [--only signals|pages]

- signals: word split, Gopher quality and repetition, C4 and FineWeb line statistics of extracted
  texts, one process each; datatrove's four filters on the same texts;
- pages: from WARC files to kept texts (main text, language, all those rules), two processes each.
  The CPU seconds are those of the whole tree, imports and start included and also reported apart.
  Dolma takes the pages `--repeat` times (a minute), datatrove once (two minutes); ours does both.

The first call of a kernel compiles it, if it is not cached: measured first and reported apart. A
peer runs where its virtual environment is (`make .venv-clean-dolma/.installed`). Bars are judged on
the whole cost, start included; a missed one, or a missing peer, is exit status 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from assets.cleaning.c4_lines import keep_c4_lines
from assets.cleaning.clean import materialize_clean
from assets.cleaning.language import model_path
from assets.cleaning.pages.extractors import load_extractor
from assets.cleaning.rule_groups import fineweb, gopher_quality, gopher_repetition
from assets.cleaning.rule_groups.group import Measured
from assets.cleaning.text import normalise
from assets.cleaning.text_column import text_array
from assets.root import Root
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.extraction import Extractor
from assets.settings.rules import C4Rules, FineWebRules, GopherRepetitionRules
from assets.settings.schema import EngineSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from benchmarks.clean_corpus import build_corpus
from benchmarks.process_tree import run_tree

CHECKOUT = Path(__file__).resolve().parents[1]
DOLMA = CHECKOUT / ".venv-clean-dolma" / "bin" / "python"
DATATROVE = CHECKOUT / ".venv-clean-datatrove" / "bin" / "python"
RULES = CleaningRules(
    c4=C4Rules(enabled=True, require_end_mark=False),
    fineweb=FineWebRules(enabled=True),
    gopher_repetition=GopherRepetitionRules(enabled=True),
)


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call in this process."""
    started = time.process_time()
    work()
    return time.process_time() - started


def run_pages(corpus: str, work: str, extractor: Extractor) -> None:
    """Land, decode and clean the corpus with two processes; print how many texts stay."""
    cleaning = CleaningSettings(extractor=extractor, rules=RULES)
    source = SourceSettings(
        name="pages", paths=(f"{corpus}/*.warc.gz",), format="warc", languages=("en",)
    )
    settings = Settings(
        root=f"{work}/root",
        sources=(source,),
        cleaning=cleaning,
        tokenizer=TokenizerSettings(path="none"),
        engine=EngineSettings(processes=2),
        base_dir=corpus,
    )
    root = Root(settings.root)
    log = land(root, settings)
    materialize_documents(root, settings, log, ("pages",))
    figures = materialize_clean(root, settings, log, ("pages",)).by_source()["pages"]
    print(json.dumps({"in": figures["in"], "kept": figures["documents"]}))


def signals_of(texts: pa.LargeStringArray) -> None:
    """Measure what the four groups of rules ask of texts."""
    keep_c4_lines(texts, RULES.c4)
    measured = Measured(texts, ["en"] * len(texts))
    gopher_quality.GROUP.signals(measured, RULES.gopher_quality)
    fineweb.GROUP.signals(measured, RULES.fineweb)
    gopher_repetition.GROUP.signals(measured, RULES.gopher_repetition)


def bench_signals(texts: list[str], folder: Path) -> float:
    """Print MB/s of the signals, ours and datatrove's; return how many times ours theirs cost.

    It is 0 where datatrove is not installed.
    """
    column = text_array(texts)
    size = column.nbytes / 1e6
    say(f"texts of {len(texts):,d} pages, MB", size)
    say("first call (compiles what is not cached), CPU s", cpu(lambda: signals_of(column[:1])))
    ours = min(cpu(lambda: signals_of(column)) for _ in range(3))
    say("signals, ours, CPU s", ours)
    say("signals, ours, MB/s", size / ours)
    if not DATATROVE.exists():
        return 0.0
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    script = str(CHECKOUT / "benchmarks" / "clean_datatrove.py")
    _, line = run_tree([str(DATATROVE), script, "signals", str(path)], CHECKOUT)
    theirs = json.loads(line)
    for name, seconds in theirs.items():
        say(f"  datatrove's filter {name}, CPU s", seconds)
    say("signals, datatrove, MB/s", size / sum(theirs.values()))
    factor: float = sum(theirs.values()) / ours
    return factor


OURS = ("resiliparse", "trafilatura")


def command_of(tool: str) -> tuple[list[str], list[str]]:
    """Return the words of a tool's command before and behind corpus and work folder."""
    scripts = CHECKOUT / "benchmarks"
    if tool == "dolma":
        return [str(DOLMA), str(scripts / "clean_dolma.py")], []
    if tool == "datatrove":
        script = str(scripts / "clean_datatrove.py")
        return [str(DATATROVE), script, "pages"], [str(model_path())]
    return [sys.executable, "-m", "benchmarks.clean", "--pages"], [tool]


def bench_pages(
    tools: list[str], corpus: Path, one_page: Path, folder: Path
) -> dict[str, tuple[float, float]]:
    """Print and return the CPU seconds of the whole way by each tool: in all, and without start."""
    costs = {}
    for tool in tools:
        first, last = command_of(tool)
        name = f"ours with {tool}" if tool in OURS else tool
        # A run that nobody counts, after which bytecode and kernels are where they are kept.
        run_tree(
            [*first, str(one_page), str(folder / f"{corpus.name}-{tool}-first"), *last], CHECKOUT
        )
        start, _ = run_tree(
            [*first, str(one_page), str(folder / f"{corpus.name}-{tool}-one"), *last], CHECKOUT
        )
        total, line = run_tree(
            [*first, str(corpus), str(folder / f"{corpus.name}-{tool}"), *last], CHECKOUT
        )
        costs[tool] = (total, total - start)
        if not all(json.loads(line).values()):
            raise SystemExit(f"{name} kept no page: {line}; its figures would mean nothing")
        say(f"{corpus.name}, {name}, CPU s of the tree ({line})", total)
        say("  of it for one page: imports and start", start)
    return costs


def compare(
    costs: dict[str, tuple[float, float]], peer: str, ours: str, bar: float
) -> tuple[str, float, float]:
    """Print how many times ours a peer costs, and return it with the bar it has to reach."""
    what = f"{peer} costs so many times ours with {ours}"
    say(what, costs[peer][0] / costs[ours][0])
    say("  without imports and start", costs[peer][1] / costs[ours][1])
    return what, costs[peer][0] / costs[ours][0], bar


def judge(results: list[tuple[str, float, float]]) -> int:
    """Print every bar and whether it holds; return the exit status."""
    for what, value, bar in results:
        print(f"{'PASS' if value >= bar else 'FAIL'}  {what}: {value:.2f}, at least {bar:g}")
    return int(any(value < bar for _, value, bar in results))


def extracted(paths: list[Path]) -> list[str]:
    """Return the main texts of a corpus by resiliparse, normalised as the pipeline does."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType  # noqa: PLC0415 - only here

    extract = load_extractor("resiliparse")
    texts = []
    for path in paths:
        with path.open("rb") as file:
            texts += [
                extract(record.reader.read().decode("utf-8", "replace"))
                for record in ArchiveIterator(file, record_types=WarcRecordType.response)
            ]
    found: list[str] = normalise(text_array(texts))[0].to_pylist()
    return found


def say(what: str, value: float) -> None:
    """Print one line."""
    print(f"{what:88} {value:12,.2f}", flush=True)


def bench(arguments: argparse.Namespace, folder: Path) -> int:
    """Print all figures; return the exit status."""
    results = []
    once = build_corpus(arguments.folder)
    if arguments.only != "pages":
        factor = bench_signals(extracted(once), folder)
        results.append(("signals, datatrove costs so many times ours", factor, 20.0))
    if arguments.only == "signals":
        return judge(results)
    one = build_corpus(arguments.folder, repeat=0)[0].parent
    missing = [str(python) for python in (DOLMA, DATATROVE) if not python.exists()]
    if DOLMA.exists():
        many = build_corpus(arguments.folder, repeat=arguments.repeat)[0].parent
        costs = bench_pages(["resiliparse", "dolma"], many, one, folder)
        results.append(compare(costs, "dolma", "resiliparse", 6.0))
    if DATATROVE.exists():
        costs = bench_pages([*OURS, "datatrove"], once[0].parent, one, folder)
        results.append(compare(costs, "datatrove", "resiliparse", 7.0))
        results.append(compare(costs, "datatrove", "trafilatura", 2.0))
    for path in missing:
        print(f"FAIL  {path} is missing: see `make bench-clean`")
    return judge(results) or int(bool(missing))


def main() -> int:
    """Print all figures; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=CHECKOUT / "data" / "bench-clean")
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--only", choices=("signals", "pages"))
    parser.add_argument("--pages", nargs=3, metavar=("CORPUS", "WORK", "EXTRACTOR"))
    arguments = parser.parse_args()
    if arguments.pages:
        corpus, work, extractor = arguments.pages
        run_pages(corpus, work, extractor)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return bench(arguments, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
