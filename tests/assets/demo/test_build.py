from __future__ import annotations

import gzip
from collections import Counter
from io import BytesIO
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator

from assets.demo import build, pydoc_pages
from assets.demo.build import build_demo_corpora, write_if_changed
from assets.demo.stdlib_files import find_modules, is_public, module_name, stdlib_dir
from assets.demo.warc_writer import Page, warc_bytes
from assets.errors import StageError
from tests.assets.sources.reading import only_found, read_file

TRICKY = (
    "ctypes/__init__.py",
    "difflib.py",
    "os.py",
    "antigravity.py",
    "this.py",
    "email/policy.py",
)
FORMATS = {"code": "text", "readmes": "jsonl", "licences": "text", "docs": "warc"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Path]]]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, build_demo_corpora(folder)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_four_corpora_of_twenty_megabytes(demo: tuple[Path, dict[str, list[Path]]]) -> None:
    folder, corpora = demo
    assert list(corpora) == ["code", "readmes", "licences", "docs"]
    total = 0
    for name, files in corpora.items():
        assert files == sorted(files)
        assert all(path.is_relative_to(folder / name) for path in files)
        for path in files:
            data = path.read_bytes()
            total += len(gzip.decompress(data) if path.suffix == ".gz" else data)
    assert total > 20_000_000


def test_every_record_is_a_document(demo: tuple[Path, dict[str, list[Path]]]) -> None:
    for name, files in demo[1].items():
        for path in files:
            records = read_file(path, format=FORMATS[name])
            assert len(only_found(records)) == len(records) > 0, path


def test_the_pages_say_nothing_about_this_machine(
    demo: tuple[Path, dict[str, list[Path]]],
) -> None:
    texts = [found.text for path in demo[1]["docs"] for found in only_found(read_file(path))]
    assert len(texts) > 300
    joined = "\n".join(texts)
    assert str(Path(__file__).parents[3]) not in joined
    assert str(Path.home()) + "/" not in joined
    assert "/usr/lib/python3" in joined or "/usr/lib" in joined


def test_building_again_touches_nothing_and_repairs_what_is_not_its_own(
    demo: tuple[Path, dict[str, list[Path]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, corpora = demo
    before = {path: path.stat().st_mtime_ns for files in corpora.values() for path in files}
    damaged = corpora["licences"][0]
    licence = damaged.read_bytes()
    damaged.write_bytes(b"changed")
    stale = folder / "licences" / "removed-package" / "license.txt"
    write_if_changed(stale, b"of a package that is gone")

    def fail(_: list[str]) -> str:
        raise AssertionError("the documentation was rendered before")

    monkeypatch.setattr(build, "_run_renderer", fail)
    assert build_demo_corpora(folder) == corpora
    after = {path: path.stat().st_mtime_ns for files in corpora.values() for path in files}
    assert {path for path in before if before[path] != after[path]} == {damaged}
    assert damaged.read_bytes() == licence
    assert not stale.exists()


def test_two_builds_are_the_same_bytes_whatever_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = [path for path in find_modules() if path.as_posix() in TRICKY]
    modules += find_modules()[::25]
    monkeypatch.setattr(build, "find_modules", lambda: modules)
    build_demo_corpora(tmp_path / "a")
    monkeypatch.setenv("PYTHONHASHSEED", "77")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SECRET_OF_THE_USER", "in the environment")
    monkeypatch.chdir(tmp_path)
    build_demo_corpora(tmp_path / "b")
    first, second = contents(tmp_path / "a"), contents(tmp_path / "b")
    assert first == second
    pages = b"".join(gzip.decompress(data) for name, data in first.items() if "warc" in name)
    assert b"ctypes" in pages
    assert b"SECRET_OF_THE_USER" not in pages


def test_modules_are_the_library_without_tests_and_builds_leftovers() -> None:
    modules = find_modules()
    names = Counter(module_name(path) for path in modules)
    assert {"os", "json", "json.decoder", "email.mime.text"} <= set(names)
    assert not [name for name in names if name.startswith(("idlelib", "test.", "_sysconfigdata"))]
    assert not [path for path in modules if "site-packages" in path.parts]
    assert all((stdlib_dir() / path).is_file() for path in modules)
    assert [is_public(name) for name in ("a.b", "_a", "a._b.c")] == [True, False, False]


def test_a_renderer_that_fails_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pydoc_pages, "__file__", str(tmp_path / "absent.py"))
    with pytest.raises(StageError, match=r"absent\.py failed with status"):
        build._run_renderer(["os"])


def test_the_archive_is_read_by_another_reader_and_dated() -> None:
    pages = [Page("https://a.example/1", "<html>caf\u00e9"), Page("https://a.example/2", "two")]
    data = warc_bytes(pages, date="2020-01-01T00:00:00Z", software="test")
    assert data == warc_bytes(pages, date="2020-01-01T00:00:00Z", software="test")
    found = []
    for record in ArchiveIterator(BytesIO(data), verify_digests=False):
        if record.headers["WARC-Type"] == "response":
            assert record.verify_payload_digest()
            found.append((record.headers["WARC-Target-URI"], record.reader.read().decode()))
    assert found == [(page.url, page.html) for page in pages]


def test_writing_leaves_equal_files_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.txt"
    write_if_changed(path, b"one")
    stamp = path.stat().st_mtime_ns
    write_if_changed(path, b"one")
    assert path.stat().st_mtime_ns == stamp
    write_if_changed(path, b"two")
    assert path.read_bytes() == b"two"
    assert [item.name for item in path.parent.iterdir()] == ["b.txt"]
