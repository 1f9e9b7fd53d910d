"""The extracting process: what dies takes one page with it, and what is decided stays decided."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time

import pytest

from assets.cleaning.pages import process as module
from assets.cleaning.pages.child import MEMORY_BYTES
from assets.cleaning.pages.html import Page, Rejected, extract_main_texts
from assets.cleaning.pages.process import (
    CRASHED,
    EXTRACTION_FAILED,
    TIMEOUT,
    Failure,
    PageProcess,
)
from assets.cleaning.pages.verdicts import PageVerdicts
from assets.errors import IntegrityError, StageError
from assets.root import Root
from assets.settings.extraction import PageLimits

PAGE = b"<p>Some words of a page.</p>"
TEXT = b"Some words of a page."

# Extractors for the child: a page that names one of these does it, in C code where it can.
CHILD = f"""
import os, signal, sys
import assets.cleaning.pages.child as child

def extract(page):
    if page == "loop":
        return str(len("a" * 40_000_000) and sum(range(10 ** 12)))
    if page == "memory":
        return "x" * {2 * MEMORY_BYTES}
    if page == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if page == "sleep":
        signal.pause()
    if page == "raise":
        raise ValueError("no page")
    print("a library talks")
    return f"{{os.getpid()}} {{page}}"

child.load_extractor = lambda name: extract
child.main()
"""


@pytest.fixture
def process(monkeypatch, tmp_path):
    child = tmp_path / "child.py"
    child.write_text(CHILD)

    def start(command, **options):
        return popen([command[0], str(child), *command[-2:]], **options)

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    process = PageProcess("resiliparse", 1)
    yield process
    process.close()


def words(result):
    assert isinstance(result, bytes)
    return result.decode().split()


def test_a_page_that_loops_in_c_is_stopped_and_the_others_are_done(process, monkeypatch):
    monkeypatch.setattr(module, "WALL_FACTOR", 120)  # the machine may be busy with others
    started = time.process_time()
    before, lost, after = process.extract([b"before", b"loop", b"after"])
    assert words(before)[1] == "before"
    assert words(after)[1] == "after"
    assert words(before)[0] != words(after)[0]  # another child
    assert lost == Failure(TIMEOUT, "more than 1 CPU seconds")
    assert time.process_time() - started < 1.0  # none of it is ours


def test_what_else_a_page_can_do(process, monkeypatch):
    monkeypatch.setattr(module, "WALL_FACTOR", 0.2)
    memory, die, sleep, wrong, last = process.extract([b"memory", b"die", b"sleep", b"raise", b"z"])
    assert memory.rule == EXTRACTION_FAILED
    assert memory.reason.startswith("MemoryError")
    assert die == Failure(CRASHED, "the extracting process ended with SIGSEGV")
    assert sleep.rule == TIMEOUT
    assert wrong == Failure(EXTRACTION_FAILED, "ValueError: no page")
    assert words(last)[1] == "z"


def test_one_child_serves_many_pages_until_it_is_recycled(process, monkeypatch):
    pages = [str(number).encode() for number in range(300)]
    found = [words(result) for result in process.extract(pages)]
    assert [page for _, page in found] == [page.decode() for page in pages]
    assert len({pid for pid, _ in found}) == 1
    monkeypatch.setattr(module, "RECYCLE_BYTES", 1)
    assert words(process.extract([b"a"])[0])[0] != found[0][0]


def test_a_child_that_was_killed_between_pages_costs_nothing(process):
    (first,) = process.extract([b"a"])
    os.kill(int(words(first)[0]), signal.SIGKILL)
    (second,) = process.extract([b"b"])
    assert words(second)[1] == "b"


def interrupt():
    raise KeyboardInterrupt


def test_an_interrupted_request_leaves_no_answer_behind(process, monkeypatch):
    process.extract([b"a"])
    with monkeypatch.context() as stopped:
        stopped.setattr(process, "_next_answer", interrupt)
        with pytest.raises(KeyboardInterrupt):
            process.extract([b"b", b"c"])
    assert words(process.extract([b"d"])[0])[1] == "d"


def test_an_extractor_that_does_not_start_is_one_error():
    process = PageProcess("no-such-extractor", 1)
    with pytest.raises(StageError, match="no-such-extractor does not start"):
        process.extract([PAGE])


def given(markup: bytes) -> Page:
    return Page(markup, hashlib.sha256(markup).digest())


def extract(page: Page, verdicts: PageVerdicts) -> bytes | Rejected:
    (result,) = extract_main_texts([page], "resiliparse", PageLimits(), verdicts)
    return result


def test_a_stored_verdict_is_taken_over_by_later_runs(tmp_path):
    root = Root(str(tmp_path / "root"))
    page = given(PAGE)
    assert extract(page, PageVerdicts("a 1", root)) == TEXT
    failure = Failure(TIMEOUT, "more than 60 CPU seconds")
    assert PageVerdicts("a 1", root).store(page.content_hash, failure) == failure
    assert extract(page, PageVerdicts("a 1", root)) == Rejected(TIMEOUT, reason=failure.reason)
    assert extract(given(PAGE + b"<p>"), PageVerdicts("a 1", root)) == TEXT
    assert extract(page, PageVerdicts("a 2", root)) == TEXT
    # The first verdict holds, whoever writes later.
    assert PageVerdicts("a 1", root).store(page.content_hash, Failure(CRASHED, "x")) == failure


def test_a_damaged_verdict_is_named(tmp_path):
    root = Root(str(tmp_path / "root"))
    verdicts = PageVerdicts("a 1", root)
    verdicts.store(given(PAGE).content_hash, Failure(TIMEOUT, "x"))
    (path,) = (tmp_path / "root" / "verdicts").rglob("*.json")
    for damaged in ("{", "[]", '{"rule": "kept", "reason": ""}'):
        path.write_text(damaged)
        with pytest.raises(IntegrityError, match=path.name):
            PageVerdicts("a 1", root)
