"""Memory of decoding and cleaning one large file in one task, as the system counted it.

    .venv/bin/python -m benchmarks.clean_memory [--megabytes N] [--folder DIR]

A WARC file of 1,000 MB and a jsonl file of half of it (`--megabytes`) are written from the pages of
`bench-clean`, then each is landed, decoded and cleaned in a process of its own, with all the rules
of that benchmark. Printed is the highest resident size above that after imports; "imports" are
the modules, and the kernels and models that the first page loads. A process that extracts main
texts is counted apart. The bar is 300 MB for each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from assets.cleaning.clean import materialize_clean
from assets.cleaning.pages.process import page_process
from assets.demo.warc_writer import Page, warc_bytes
from assets.root import Root
from assets.settings.cleaning import CleaningSettings
from assets.settings.extraction import PageLimits
from assets.settings.schema import EngineSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from benchmarks.clean import CHECKOUT, RULES, extracted, say
from benchmarks.clean_corpus import build_corpus, read_pages

LIMIT_MB = 300
MB = 1 << 20


def clean_file(path: Path, name: str, work: Path) -> None:
    """Land, decode and clean one file in this process."""
    source = SourceSettings(name="file", paths=(str(path),), format=name, languages=("en",))
    settings = Settings(
        root=str(work),
        sources=(source,),
        cleaning=CleaningSettings(rules=RULES),
        tokenizer=TokenizerSettings(path="none"),
        engine=EngineSettings(processes=1),
        base_dir=str(path.parent),
    )
    root = Root(settings.root)
    log = land(root, settings)
    materialize_documents(root, settings, log, ("file",))
    materialize_clean(root, settings, log, ("file",))


def _resident_mb(name: str) -> float:
    """Return VmRSS or VmHWM of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("this needs /proc")


def measure(path: Path, first: Path, name: str) -> None:
    """Clean a small file, then a large one; print the sizes in MB."""
    modules = _resident_mb("VmRSS")
    with tempfile.TemporaryDirectory() as folder:
        clean_file(first, name, Path(folder) / "first")
        Path("/proc/self/clear_refs").write_text("5")  # the highest size is that from here on
        before = _resident_mb("VmRSS")
        clean_file(path, name, Path(folder) / "root")
    page_process(CleaningSettings().extractor, PageLimits().max_cpu_seconds).close()
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        json.dumps(
            {"modules": modules, "imports": before, "most": _resident_mb("VmHWM"), "child": child}
        )
    )


def write_warc(path: Path, pages: list[tuple[str, str]], megabytes: int) -> None:
    """Write pages again and again, under other addresses, up to a size."""
    with path.open("wb") as file:
        copy = 0
        while file.tell() < megabytes * MB:
            chosen = [
                Page(url=f"https://pages.test/{copy}/{url}", html=html) for url, html in pages
            ]
            stored = warc_bytes(chosen, date="2024-01-01T00:00:00Z", software="bench-clean")
            file.write(gzip.decompress(stored))
            copy += 1


def write_jsonl(path: Path, texts: list[str], megabytes: int) -> None:
    """Write texts again and again up to a size, every copy another text."""
    with path.open("w", encoding="utf-8") as file:
        for line in _lines(texts, megabytes):
            file.write(line)


def _lines(texts: list[str], megabytes: int) -> Iterator[str]:
    size = copy = 0
    while True:
        for text in texts:
            line = json.dumps({"id": str(copy), "text": f"{copy}\n{text}"}) + "\n"
            size += len(line)
            yield line
            copy += 1
            if size >= megabytes * MB:
                return


def bench(folder: Path, megabytes: int) -> int:
    """Print the figures of both files; return the exit status."""
    corpus = build_corpus(folder)
    pages = read_pages(folder)
    texts = extracted(corpus)
    status = 0
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for name, size in (("warc", megabytes), ("jsonl", megabytes // 2)):
            path, first = Path(place) / f"large.{name}", Path(place) / f"first.{name}"
            if name == "warc":
                write_warc(path, pages, size)
                write_warc(first, pages[:20], 1)
            else:
                write_jsonl(path, texts, size)
                write_jsonl(first, texts, 1)
            command = [sys.executable, "-m", "benchmarks.clean_memory", "--measure"]
            done = subprocess.run(
                [*command, str(path), str(first), name],
                check=True, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT,
            )  # fmt: skip
            found = json.loads(done.stdout.splitlines()[-1])
            above = found["most"] - found["imports"]
            what = f"{name} of {path.stat().st_size / MB:,.0f} MB, decoded and cleaned in one task"
            say(f"{what}: MB above the imports", above)
            say("  imports, kernels and models, MB", found["imports"])
            say("  of them the modules before the first page, MB", found["modules"])
            say("  the largest process it started (main texts), MB in all", found["child"])
            print(f"{'PASS' if above <= LIMIT_MB else 'FAIL'}  at most {LIMIT_MB}")
            status |= int(above > LIMIT_MB)
            path.unlink()
    return status


def main() -> int:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=CHECKOUT / "data" / "bench-clean")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--measure", nargs=3, metavar=("FILE", "FIRST", "FORMAT"))
    arguments = parser.parse_args()
    if arguments.measure:
        path, first, name = arguments.measure
        measure(Path(path), Path(first), name)
        return 0
    return bench(arguments.folder, arguments.megabytes)


if __name__ == "__main__":
    sys.exit(main())
