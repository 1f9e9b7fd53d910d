"""The way in: the records of one landed file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from assets.settings.sources import READ_FORMATS, SourceSettings
from assets.sources.formats.compression import DecodedStream, StoredFile
from assets.sources.formats.csv_rows import read_csv
from assets.sources.formats.dolma import read_dolma
from assets.sources.formats.fields import Fields
from assets.sources.formats.gutenberg import cut_books
from assets.sources.formats.jsonl import read_jsonl
from assets.sources.formats.markup import convert, read_markup_file
from assets.sources.formats.parquet import read_parquet
from assets.sources.formats.record import Found, Lost, Record
from assets.sources.formats.row_filters import apply_filters
from assets.sources.formats.sniff import SNIFF_BYTES, find_format
from assets.sources.formats.stackexchange import read_posts
from assets.sources.formats.warc import read_warc
from assets.sources.formats.whole_file import read_code_file, read_html_file, read_text_file
from assets.sources.formats.wiki_xml import read_wiki_xml


def read_records(
    open_stored: Callable[[], StoredFile],
    *,
    source: SourceSettings,
    landed_path: str,
    scratch: Path | None = None,
    beside: Mapping[str, StoredFile | None] | None = None,
    most_records: int | None = None,
) -> Iterator[Record]:
    """Yield every record of a landed file in file order; the place in the order is its ordinal.

    Args:
        open_stored: Opens the file's stored bytes; called once, and closed at the end.
        source: Its format and the names of the fields with a meaning.
        landed_path: The file's name, for `format: auto` and the language of code.
        scratch: Folder on a local disk for formats that are not read from start to end; None is the
            system's for temporary files.
        beside: Files read beside this one (the attributes of Dolma documents), by name.
        most_records: Records after which one `too_many_records` stands for the rest, if any.

    A file that is empty, of an unknown format, cut or damaged gives one `Lost` for that, after the
    records before the fault.

    Raises:
        OSError: the store failed; what is wrong with the content never raises.
    """
    with closing(open_stored()) as raw:
        stream = DecodedStream(raw)
        num_records = 0
        last_rule = None
        for record in _read_stream(_File(stream, source, landed_path, scratch, beside or {})):
            if num_records == most_records:
                yield Lost(
                    rule="too_many_records",
                    position=stream.tell(),
                    reason=f"more than {most_records:,d} records, the most for a file of its size; "
                    "if they are meant so, raise limits.records_per_byte",
                )
                return
            num_records += 1
            last_rule = record.rule if isinstance(record, Lost) else None
            yield record
            # Not two records at once: one can be large.
            del record
        if stream.problem is not None:
            # A record that the cut went through tells the same already.
            if not last_rule == stream.problem.rule == "truncated":
                yield Lost(
                    rule=stream.problem.rule, position=stream.tell(), reason=stream.problem.reason
                )
        elif num_records == 0:
            reason = "no byte" if stream.num_decoded == 0 else "no record, or only blank lines"
            yield Lost(rule="empty_file", position=None, reason=reason)


@dataclass(frozen=True, slots=True)
class _File:
    """An open file and all that a reader may want to know of it."""

    stream: DecodedStream
    source: SourceSettings
    landed_path: str
    scratch: Path | None
    beside: Mapping[str, StoredFile | None]


_READERS: dict[str, Callable[[_File], Iterator[Record]]] = {
    "jsonl": lambda file: _read_rows(file, read_jsonl(file.stream, Fields.of(file.source))),
    "parquet": lambda file: _read_rows(file, read_parquet(file.stream, file.source, file.scratch)),
    "dolma": lambda file: _read_rows(
        file, read_dolma(file.stream, file.source, file.landed_path, file.beside)
    ),
    "csv": lambda file: _read_rows(file, read_csv(file.stream, file.source, is_tsv=False)),
    "tsv": lambda file: _read_rows(file, read_csv(file.stream, file.source, is_tsv=True)),
    "latex": lambda file: read_markup_file(file.stream, "latex", file.source.read),
    "rst": lambda file: read_markup_file(file.stream, "rst", file.source.read),
    "markdown": lambda file: read_markup_file(file.stream, "markdown", file.source.read),
    "man": lambda file: read_markup_file(file.stream, "man", file.source.read),
    "warc": lambda file: read_warc(file.stream),
    "wet": lambda file: read_warc(file.stream),
    "html": lambda file: read_html_file(file.stream),
    "text": lambda file: (
        cut_books(read_text_file(file.stream))
        if file.source.read.gutenberg == "cut"
        else read_text_file(file.stream)
    ),
    "stackexchange": lambda file: read_posts(file.stream, file.landed_path, file.scratch),
    "wiki_xml": lambda file: read_wiki_xml(file.stream, file.source.read),
    "code": lambda file: read_code_file(file.stream, file.landed_path),
}


def _read_rows(file: _File, records: Iterator[Record]) -> Iterator[Record]:
    """Yield the records of a format with rows: filtered, and converted if they are markup."""
    read = file.source.read
    for record in records:
        current = record
        del record
        if isinstance(current, Found) and read.drop:
            current = apply_filters(current, read.drop)
        if isinstance(current, Found) and read.text_markup is not None:
            current = convert(current, read.text_markup)
        yield current
        del current


def _read_stream(file: _File) -> Iterator[Record]:
    head = file.stream.peek(SNIFF_BYTES)
    if not head:
        return iter(())
    name = file.source.format
    if name == "auto":
        name = find_format(head, file.landed_path)
    if name in _READERS:
        return _READERS[name](file)
    reason = (
        f"the content is {name}; this version reads {', '.join(READ_FORMATS[1:])} "
        "(format: text reads any text as it is)"
    )
    return iter([Lost(rule="format_not_in_this_version", position=None, reason=reason)])
