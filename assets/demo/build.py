"""Build the demo's corpora into a folder; files that would not change are not touched."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from email import message_from_string
from importlib.metadata import Distribution, distributions
from pathlib import Path

from assets.demo import pydoc_pages
from assets.demo.stdlib_files import find_modules, is_public, module_name, stdlib_dir
from assets.demo.warc_writer import Page, warc_bytes
from assets.errors import StageError

DATE = "2020-01-01T00:00:00Z"
"""When the pages say they were captured; a fixed date, so that the bytes are."""
PAGES_PER_FILE = 200
OWN_PACKAGE = "olmo-loader"
VERSION = 1
"""Raised when the documentation would be rendered differently."""
_LICENCE = re.compile(r"(?:licen[cs]e|copying|notice|copyright)", re.IGNORECASE)
_TIMEOUT_S = 300


def build_demo_corpora(folder: Path) -> dict[str, list[Path]]:
    """Write the four corpora below `folder` and return the files of each, sorted.

    Files of an earlier build that no longer belong to a corpus (a package was removed) are deleted.

    Raises:
        StageError: the documentation cannot be rendered.
        OSError: the folder cannot be written.
    """
    corpora = {
        "code": _code(),
        "readmes": _readmes(),
        "licences": _licences(),
        "docs": _docs(folder / "docs"),
    }
    return {name: _write_corpus(folder / name, files) for name, files in corpora.items()}


def _write_corpus(folder: Path, files: Iterator[tuple[str, bytes]]) -> list[Path]:
    written: list[Path] = []
    for name, data in files:
        path = folder / name
        write_if_changed(path, data)
        written.append(path)
    stale = {path for path in folder.rglob("*") if path.is_file() and path.name[0] != "."}
    for path in stale - set(written):
        path.unlink()
    return sorted(written)


def write_if_changed(path: Path, data: bytes) -> None:
    """Write a file whole, unless it holds `data` already."""
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(data)
    temporary.replace(path)


def _code() -> Iterator[tuple[str, bytes]]:
    for path in find_modules():
        data = (stdlib_dir() / path).read_bytes()
        if data.strip():
            yield path.as_posix(), data


def _packages() -> list[Distribution]:
    """Return the installed packages by name; this one's description changes with every edit."""
    folders = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    found = {
        _normalised(package): package
        for package in distributions(path=folders)
        if _normalised(package) != OWN_PACKAGE
    }
    return [found[name] for name in sorted(found)]


def _normalised(package: Distribution) -> str:
    return re.sub(r"[-_.]+", "-", package.metadata["Name"] or "").lower()


def _readmes() -> Iterator[tuple[str, bytes]]:
    lines = []
    for package in _packages():
        metadata = message_from_string(package.read_text("METADATA") or "")
        payload = metadata.get_payload()
        text = payload if isinstance(payload, str) and payload.strip() else ""
        text = (text or metadata.get("Description", "")).strip()
        if text:
            record = {
                "id": f"{_normalised(package)}=={package.version}",
                "text": text.encode("utf-8", "replace").decode(),
                "url": f"https://pypi.org/project/{_normalised(package)}/",
                "summary": metadata.get("Summary"),
            }
            lines.append(json.dumps(record, ensure_ascii=False, sort_keys=True) + "\n")
    yield "readmes.jsonl.gz", gzip.compress("".join(lines).encode(), 6, mtime=0)


def _licences() -> Iterator[tuple[str, bytes]]:
    for package in _packages():
        files = sorted(package.files or [], key=str)
        taken: set[str] = set()
        for file in files:
            inside = file.parts[0].endswith(".dist-info")
            if not inside or not _LICENCE.search(file.name) or file.suffix in (".py", ".pyc"):
                continue
            path = Path(str(file.locate()))
            data = path.read_bytes() if path.is_file() else b""
            # Some packages ship one file under several names, or lower and upper case of one.
            name = f"{_normalised(package)}/{'-'.join(file.parts[1:])}.txt".lower()
            if data.strip() and name not in taken:
                taken.add(name)
                yield name, data


def _docs(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield WARC files of the documentation; what was rendered before is not rendered again."""
    modules = {module_name(path) for path in find_modules()} | set(sys.builtin_module_names)
    names = sorted(filter(is_public, modules))
    stamp = _stamp(names)
    stamp_path = folder / ".stamp.json"
    made = _made_before(folder, stamp_path, stamp)
    if made is None:
        made = dict(_render_docs(names))
        listing = {name: hashlib.sha256(data).hexdigest() for name, data in made.items()}
        yield from made.items()
        write_if_changed(stamp_path, json.dumps({"stamp": stamp, "files": listing}).encode())
    else:
        yield from made.items()


def _stamp(names: list[str]) -> str:
    """Hash what the documentation depends on: this interpreter, its modules, and the renderer."""
    sizes = [[path.as_posix(), (stdlib_dir() / path).stat().st_size] for path in find_modules()]
    renderer = Path(pydoc_pages.__file__).read_text(encoding="utf-8")
    inputs = [VERSION, sys.version, sys.base_prefix, names, sizes, renderer]
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()


def _made_before(folder: Path, stamp_path: Path, stamp: str) -> dict[str, bytes] | None:
    try:
        record = json.loads(stamp_path.read_bytes())
        made = {name: (folder / name).read_bytes() for name in record["files"]}
    except (OSError, ValueError, KeyError):
        return None
    whole = all(
        hashlib.sha256(made[name]).hexdigest() == sha for name, sha in record["files"].items()
    )
    return made if whole and record.get("stamp") == stamp else None


def _render_docs(names: list[str]) -> Iterator[tuple[str, bytes]]:
    release = f"{sys.version_info.major}.{sys.version_info.minor}"
    pages = [
        Page(f"https://docs.example/python-{release}/{item['module']}.html", item["html"])
        for item in map(json.loads, _run_renderer(names).splitlines())
    ]
    for number, start in enumerate(range(0, len(pages), PAGES_PER_FILE)):
        group = pages[start : start + PAGES_PER_FILE]
        name = f"pydoc-{number:02d}.warc.gz"
        yield name, warc_bytes(group, date=DATE, software=f"pydoc of Python {release}")


def _run_renderer(names: list[str]) -> str:
    """Run `pydoc_pages` with the base interpreter and an environment that tells nothing."""
    interpreter = getattr(sys, "_base_executable", None) or sys.executable
    environment = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": "/nonexistent"}
    command = [interpreter, "-s", "-S", "-P", "-B", "-W", "ignore", pydoc_pages.__file__]
    done = subprocess.run(  # noqa: S603 (our own interpreter and script)
        command,
        input="\n".join(names),
        env=environment,
        cwd="/",
        capture_output=True,
        encoding="utf-8",
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0 or not done.stdout:
        raise StageError(
            f"{' '.join(command)} failed with status {done.returncode}: {done.stderr[-500:]}; "
            "the demo renders the standard library's documentation with it"
        )
    return done.stdout
