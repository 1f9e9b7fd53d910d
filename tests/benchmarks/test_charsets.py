from __future__ import annotations

# ruff: noqa: RUF001 (letters of other scripts are what this is about)
from pathlib import Path

import pytest

from benchmarks.charsets import folder_charsets, print_table

RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах. " * 3


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("windows-1250-polish", "cp1250"),
        ("iso-8859-2-czech", "iso8859-2"),
        ("utf-8-sig", "utf-8-sig"),
        ("IBM855", "cp855"),
        ("MacCyrillic", "mac-cyrillic"),
        ("cp037-english", "cp037"),
    ],
)
def test_folders_are_named_after_codecs(name: str, codec: str) -> None:
    assert folder_charsets(name)[0] == codec
    assert folder_charsets("EUC-TW") == []


def test_the_table_counts_folders_and_files(tmp_path: Path) -> None:
    for folder, data in (
        ("KOI8-R", RUSSIAN.encode("koi8-r")),
        ("IBM866", RUSSIAN.encode("cp866")),
        ("windows-1251-wrong", RUSSIAN.encode("koi8-r")),
        ("EUC-TW", b"\xa4\xa4"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "one.txt").write_bytes(data)
    lines: list[str] = []
    assert print_table(tmp_path, lines.append) == 2
    assert "2 of 4 folders are right in every file (2 with nothing declared)" in lines[-1]
    assert "one.txt: koi8-r" in lines[0]
    assert "Python has no such codec" in lines[0]
