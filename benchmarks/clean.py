"""What cleaning costs beside Dolma and datatrove: CPU seconds of process trees, same files.

    .venv/bin/python -m benchmarks.clean [--folder DIR] [--repeat N] [--only signals|pages]

- signals: word split, Gopher quality and repetition, C4 and FineWeb line statistics of extracted
  texts, one process each; datatrove's four filters on the same texts;
- pages: from WARC files to kept texts (main text, language, all those rules), two processes each.
  The CPU seconds are those of the whole tree, imports and start included and also reported apart.

The first call of a kernel compiles it, if it is not cached: measured first and reported apart. A
peer runs where its virtual environment is (`make .venv-clean-dolma/.installed`).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from assets.cleaning.c4_lines import keep_c4_lines
from assets.cleaning.clean import materialize_clean
from assets.cleaning.extractors import load_extractor
from assets.cleaning.language import model_path
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


def tree_cpu(command: list[str]) -> tuple[float, str]:
    """Run a command; return the CPU seconds of it and all its children, and its last line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=CHECKOUT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return seconds, done.stdout.strip().splitlines()[-1]


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


def bench_signals(texts: list[str], folder: Path) -> None:
    """Print MB/s of the signals, ours and datatrove's."""
    column = text_array(texts)
    size = column.nbytes / 1e6
    say(f"texts of {len(texts):,d} pages, MB", size)
    say("first call (compiles what is not cached), CPU s", cpu(lambda: signals_of(column[:1])))
    ours = min(cpu(lambda: signals_of(column)) for _ in range(3))
    say("signals, ours, CPU s", ours)
    say("signals, ours, MB/s", size / ours)
    if not DATATROVE.exists():
        return
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    script = str(CHECKOUT / "benchmarks" / "clean_datatrove.py")
    _, line = tree_cpu([str(DATATROVE), script, "signals", str(path)])
    theirs = json.loads(line)
    for name, seconds in theirs.items():
        say(f"  datatrove's filter {name}, CPU s", seconds)
    say("signals, datatrove, MB/s", size / sum(theirs.values()))
    say("  so many times ours (CPU)", sum(theirs.values()) / ours)


def bench_pages(corpus: Path, one_page: Path, folder: Path, extractors: list[str]) -> None:
    """Print the CPU seconds of the whole way, ours and the peers', and what a start costs each."""
    tools = {}
    for extractor in extractors:
        tools[f"ours with {extractor}"] = (
            [sys.executable, "-m", "benchmarks.clean", "--pages"],
            [extractor],
        )
    for name, python, words, last in (
        ("dolma", DOLMA, ["clean_dolma.py"], []),
        ("datatrove", DATATROVE, ["clean_datatrove.py", "pages"], [str(model_path())]),
    ):
        if python.exists():
            script = str(CHECKOUT / "benchmarks" / words[0])
            tools[name] = ([str(python), script, *words[1:]], last)
    costs = {}
    for name, (command, last) in tools.items():
        start, _ = tree_cpu([*command, str(one_page), str(folder / f"{name}-one"), *last])
        total, line = tree_cpu([*command, str(corpus), str(folder / name), *last])
        costs[name] = (total, total - start)
        if not all(json.loads(line).values()):
            raise SystemExit(f"{name} kept no page: {line}; its figures would mean nothing")
        say(f"pages, {name}, CPU s of the tree ({line})", total)
        say("  of it for one page: imports and start", start)
    for ours in (name for name in costs if name.startswith("ours")):
        for peer in (name for name in costs if not name.startswith("ours")):
            say(f"{peer} costs so many times {ours}", costs[peer][0] / costs[ours][0])
            say("  without imports and start", costs[peer][1] / costs[ours][1])


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


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=CHECKOUT / "data" / "bench-clean")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", choices=("signals", "pages"))
    parser.add_argument("--extractor", action="append", help="default: resiliparse")
    parser.add_argument("--pages", nargs=3, metavar=("CORPUS", "WORK", "EXTRACTOR"))
    arguments = parser.parse_args()
    if arguments.pages:
        corpus, work, extractor = arguments.pages
        run_pages(corpus, work, extractor)
        return
    paths = build_corpus(arguments.folder, repeat=arguments.repeat)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.only != "pages":
            bench_signals(extracted(build_corpus(arguments.folder)), Path(folder))
        if arguments.only != "signals":
            one = build_corpus(arguments.folder, repeat=0)
            extractors = arguments.extractor or ["resiliparse"]
            bench_pages(paths[0].parent, one[0].parent, Path(folder), extractors)


if __name__ == "__main__":
    main()
