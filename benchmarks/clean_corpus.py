"""The corpus of `bench-clean`: documentation pages of Debian packages as WARC files.

    python -m benchmarks.clean_corpus FOLDER [--repeat N]

The packages are fetched with `apt-get download` and unpacked, never installed. Each file holds an
equal share of the pages, so that two processes have the same work; with `--repeat` every page
stands in the corpus so many times, under other addresses.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path

from assets.demo.warc_writer import Page, warc_bytes

PACKAGES = ("postgresql-doc-15", "maint-guide", "debian-reference-en")
NUM_FILES = 8
MAX_PAGE_BYTES = 1 << 20
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>\s*")
_DATE = "2024-01-01T00:00:00Z"


def build_corpus(folder: Path, *, repeat: int = 1) -> list[Path]:
    """Write the WARC files below `folder` unless they are there; return their paths.

    With `repeat` 0 there is a file of one page: what remains of a tool's cost is its start.

    Raises:
        CalledProcessError: a package cannot be fetched or unpacked.
    """
    target = folder / f"html-{repeat}"
    paths = [target / f"pages-{number}.warc.gz" for number in range(NUM_FILES)]
    if all(path.exists() for path in (paths[:1] if repeat == 0 else paths)):
        return paths[:1] if repeat == 0 else paths
    pages = read_pages(folder)
    if repeat == 0:
        pages, paths = pages[:1], paths[:1]
    target.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(paths):
        chosen = [
            Page(url=f"https://pages.test/{copy}/{url}", html=html)
            for copy in range(max(repeat, 1))
            for url, html in pages[number::NUM_FILES]
        ]
        path.write_bytes(warc_bytes(chosen, date=_DATE, software="bench-clean"))
    return paths


def read_pages(folder: Path) -> list[tuple[str, str]]:
    """Return (path, page) of every page of the packages, fetched unless they are there."""
    unpacked = folder / "unpacked"
    if not unpacked.exists():
        packages = folder / "packages"
        shutil.rmtree(packages, ignore_errors=True)
        packages.mkdir(parents=True)
        subprocess.run(["apt-get", "--quiet", "download", *PACKAGES], check=True, cwd=packages)
        partial = folder / "unpacked.partial"
        for package in sorted(packages.glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", str(package), str(partial)], check=True)
        partial.rename(unpacked)
    found = []
    for path in sorted(unpacked.rglob("*.html")):
        html = path.read_bytes()
        if path.is_file() and len(html) <= MAX_PAGE_BYTES:
            # datatrove's reader takes a page with an XML declaration for no page.
            page = _DECLARATION.sub("", html.decode("utf-8", "replace"))
            found.append((path.relative_to(unpacked).as_posix(), page))
    return found


def main() -> None:
    """Write the corpus and name its files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    for path in build_corpus(arguments.folder, repeat=arguments.repeat):
        print(path)


if __name__ == "__main__":
    main()
