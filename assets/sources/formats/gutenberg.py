"""Books of Project Gutenberg: the licence before and after the book is recognised and cut.

The header ends with the line `*** START OF THE PROJECT GUTENBERG EBOOK ... ***`, in files of the
nineties with `*END*THE SMALL PRINT! ...*END*`; the footer starts with `*** END OF ...`, or with
a line `End of Project Gutenberg's ...` before it. What the header says of the book is metadata.
How many characters were cut stands in the metadata and in the statistics of the stage.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from assets.sources.formats.record import Found, Record

_NAME = re.compile(r"project\s{1,4}gutenberg", re.IGNORECASE)
_START = re.compile(
    r"^[ \t]{0,8}\*{3}[ \t]?START OF (?:THE|THIS) PROJECT GUTENBERG[^\n]{0,300}$"
    r"|^[* \t]{0,12}END[* \t]{0,6}THE SMALL PRINT![^\n]{0,200}$",
    re.IGNORECASE | re.MULTILINE,
)
_END = re.compile(
    r"^[ \t]{0,8}\*{3}[ \t]?END OF (?:THE|THIS) PROJECT GUTENBERG", re.IGNORECASE | re.MULTILINE
)
_END_LINE = re.compile(
    r"^[ \t*]{0,12}End of (?:the |this )?Project Gutenberg[^\n]{0,200}$",
    re.IGNORECASE | re.MULTILINE,
)
_FIELD = re.compile(
    r"^(Title|Author|Translator|Editor|Illustrator|Release Date|Posting Date|Language"
    r"|Character set encoding): *([^\n]{1,300})$",
    re.MULTILINE,
)
HEADER_CHARACTERS = 1 << 16
"""How far into a file its header may reach."""
_BEFORE_END = 1000
"""How far before the end's own line `End of Project Gutenberg's ...` may stand."""
_LINES_OF_START = 3


def cut_book(record: Found) -> Found:
    """Return a record without the licence around its text; any other text as it is."""
    head = record.text[:HEADER_CHARACTERS].replace("\r\n", "\n")
    if _NAME.search(head) is None:
        return record
    # Line ends of the text stay as they are: what is cut is measured in the text itself.
    text = record.text
    start = _find_start(text)
    end = _find_end(text, start)
    if start == 0 and end == len(text):
        return record
    body = text[start:end].strip("\r\n")
    if not body.strip():
        return record
    cut = {"gutenberg_header": start, "gutenberg_footer": len(text) - end}
    fields = {name.lower().replace(" ", "_"): value.strip() for name, value in _FIELD.findall(head)}
    return dataclasses.replace(
        record,
        text=body,
        metadata=({"book": fields} if fields else {}) | record.metadata,
        cut={name: count for name, count in cut.items() if count},
    )


def cut_books(records: Iterator[Record]) -> Iterator[Record]:
    """Yield records, books of Project Gutenberg among them cut."""
    for record in records:
        yield cut_book(record) if isinstance(record, Found) else record


def _find_start(text: str) -> int:
    """Return where the book starts, 0 if there is no header."""
    found = None
    head = text[:HEADER_CHARACTERS].replace("\r", " ")
    for found in _START.finditer(head):  # noqa: B007 (the last one counts)
        pass
    if found is None:
        return 0
    place = found.end()
    # A long title goes on on the next line, up to the closing asterisks.
    if "***" not in found[0].strip(" *\t") and not found[0].rstrip().endswith("*"):
        for line in head[place : place + 300].split("\n")[:_LINES_OF_START]:
            closing = line.find("***")
            if closing >= 0:
                return head.index("***", place) + 3
    return place


def _find_end(text: str, start: int) -> int:
    """Return where the book ends, the text's length if there is no footer."""
    found = _END.search(text, start)
    lines = _END_LINE.search(text.replace("\r", " "), max(start, len(text) * 3 // 4))
    if found is None:
        return len(text) if lines is None else lines.start()
    before = max(found.start() - _BEFORE_END, start)
    line = _END_LINE.search(text[before : found.start()].replace("\r", " "))
    return found.start() if line is None else before + line.start()
