from __future__ import annotations

import gzip

import pytest

from assets.settings.reading import ReadSettings
from assets.sources.formats.code_languages import find_language
from assets.sources.formats.record import Found
from assets.sources.formats.sniff import find_format
from tests.assets.sources.reading import only_found, outcomes, read_bytes


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("a/b.py", "", "Python"),
        ("src\\main.RS", "", "Rust"),
        ("Makefile", "", "Makefile"),
        ("CMakeLists.txt", "", "CMake"),
        ("x.hpp", "", "C++"),
        ("tool", "#!/usr/bin/env python3\n", "Python"),
        ("tool", "#!/usr/bin/env -S node --x\n", "JavaScript"),
        ("tool", "#!/bin/bash -e\n", "Shell"),
        ("tool", "#!/opt/unknown\n", None),
        ("README", "words", None),
        ("noext.", "", None),
    ],
)
def test_languages_by_name_and_first_line(path: str, text: str, language: str | None) -> None:
    assert find_language(path, text) == language


def test_a_source_file_is_a_document_with_its_language() -> None:
    code = "#!/usr/bin/perl\r\n\tprint 1;\n"
    (record,) = read_bytes(gzip.compress(code.encode()), "a/run.pl.gz", format="auto")
    assert record == Found(
        text=code,
        position=0,
        content_type="text/x-source",
        metadata={"programming_language": "Perl"},
    )
    (record,) = only_found(read_bytes(b"no language", "LICENSE", format="code"))
    assert record.metadata == {}


def test_code_is_found_by_name_or_first_line() -> None:
    assert find_format(b"all:\n", "src/Makefile") == "code"
    assert find_format(b"#!/bin/sh\necho\n", "bin/run") == "code"
    assert find_format(b"#! a heading", "notes") == "text"


def test_binary_files_in_a_source_tree_are_a_loss() -> None:
    assert outcomes(b"\x7fELF\0\0\0", "a.py", format="code") == ["<not_text>"]


def test_code_in_jsonl_has_the_language_of_its_path() -> None:
    line = b'{"content": "x = 1", "path": "a.jl", "lang": "julia"}\n'
    read = ReadSettings(path_field="path")
    (record,) = only_found(read_bytes(line, text_field="content", read=read))
    assert record.metadata == {"path": "a.jl", "lang": "julia", "programming_language": "Julia"}
