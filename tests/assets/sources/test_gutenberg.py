from __future__ import annotations

from pathlib import Path

import pytest

from assets.root import Root
from assets.settings.reading import ReadSettings
from tests.assets.sources.landed import decode, land, rows_of
from tests.assets.sources.reading import only_found, outcomes, read_bytes, read_file
from tests.shared_data import shared_folder

HEAD = (
    "The Project Gutenberg EBook of Some Book, by A. Writer\n\nTitle: Some Book\n"
    "Author: A. Writer\nLanguage: English\n\n"
)
FOOT = (
    "\n\nEnd of Project Gutenberg's Some Book\n\n"
    "*** END OF THIS PROJECT GUTENBERG EBOOK X ***\nlaw\n"
)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "start",
    [
        "*** START OF THIS PROJECT GUTENBERG EBOOK SOME BOOK ***\n",
        "***START OF THE PROJECT GUTENBERG EBOOK SOME\nLONG BOOK***\n",
        "*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*\n",
        "**END THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.08.01*END**\n",
    ],
)
def test_the_licence_is_cut_and_counted(start: str, line_end: str) -> None:
    text = f"{HEAD}{start}\n\nChapter 1\n\nwords *** more\n{FOOT}".replace("\n", line_end)
    (record,) = only_found(read_bytes(text.encode(), "book.txt"))
    assert record.text == "Chapter 1\n\nwords *** more".replace("\n", line_end)
    assert record.metadata["book"] == {
        "title": "Some Book", "author": "A. Writer", "language": "English"
    }  # fmt: skip
    assert set(record.cut) == {"gutenberg_header", "gutenberg_footer"}
    assert sum(record.cut.values()) < len(text) - len(record.text)
    keep = ReadSettings(gutenberg="keep")
    assert outcomes(text.encode(), "book.txt", read=keep) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "A text about Project Gutenberg and its books.\n",
        f"{HEAD}*** START OF THIS PROJECT GUTENBERG EBOOK X ***\n{FOOT}",
        "*** START OF THE GAME ***\nwords\n*** END OF THE GAME ***\n",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert outcomes(text.encode(), "a.txt") == [text]


def test_the_statistics_of_the_stage_count_what_was_cut(tmp_path: Path) -> None:
    root = Root(str(tmp_path / "root"))
    text = f"{HEAD}*** START OF THIS PROJECT GUTENBERG EBOOK X ***\nwords{FOOT}"
    files = [land(tmp_path, name, text.encode()) for name in ("a.txt", "b.txt")]
    (entry,) = entries = decode(root, *files)
    start, end = text.index("\nwords"), text.index("\n\nEnd of") + 2
    assert entry.statistics["cut"] == {
        "gutenberg_footer": 2 * (len(text) - end),
        "gutenberg_header": 2 * start,
    }
    assert '"cut":{"gutenberg_footer":' in rows_of(root, entries)[0]["metadata"]


def test_editions_of_two_centuries() -> None:
    for path in sorted(shared_folder("demo", "books").rglob("*.txt")):
        (record,) = only_found(read_file(path))
        assert record.cut["gutenberg_header"] > 200, path
        assert "GUTENBERG EBOOK" not in record.text, path
        assert "SMALL PRINT" not in record.text, path
        assert len(record.text) > 100_000
