"""Large files of formats with many records, written piece by piece, for the tests of memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CHARACTERS = 10_000


def _texts(megabytes: int) -> Iterator[str]:
    for number in range(megabytes * 100):
        yield (f"text {number} of many, " * 700)[:CHARACTERS]


def _parquet(path: Path, megabytes: int) -> None:
    # One row group: the largest unit there is.
    texts = list(_texts(megabytes))
    numbers = pa.array(range(len(texts)))
    pq.write_table(
        pa.table({"text": texts, "id": numbers}),
        path,
        row_group_size=len(texts),
        use_dictionary=False,
        write_page_checksum=True,
    )


def _lines(
    head: str, line: Callable[[int, str], str], tail: str = ""
) -> Callable[[Path, int], None]:
    def write(path: Path, megabytes: int) -> None:
        with path.open("w", encoding="utf-8") as file:
            file.write(head)
            for number, text in enumerate(_texts(megabytes)):
                file.write(line(number, text))
            file.write(tail)

    return write


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "parquet": _parquet,
    "csv": _lines("id,text\n", lambda number, text: f'{number},"{text}"\n'),
    "dolma": _lines("", lambda number, text: json.dumps({"id": number, "text": text}) + "\n"),
    "wiki_xml": _lines(
        "<mediawiki>\n",
        lambda number, text: (
            f"<page><title>T{number}</title><ns>0</ns><id>{number}</id>"
            f"<revision><text>{text}</text></revision></page>\n"
        ),
        "</mediawiki>\n",
    ),
    "stackexchange": _lines(
        "<posts>\n",
        lambda number, text: (
            f'<row Id="{number}" PostTypeId="{1 + number % 2}" ParentId="{number - 1}" '
            f'Body="{text}" />\n'
        ),
        "</posts>\n",
    ),
}
