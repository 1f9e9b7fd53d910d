"""The way in: the records of one landed file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from assets.settings.sources import READ_FORMATS, SourceSettings
from assets.sources.formats.compression import DecodedStream, StoredFile
from assets.sources.formats.jsonl import JsonFields, read_jsonl
from assets.sources.formats.record import Lost, Record
from assets.sources.formats.sniff import SNIFF_BYTES, find_format
from assets.sources.formats.warc import read_warc
from assets.sources.formats.whole_file import read_html_file, read_text_file


def read_records(
    open_stored: Callable[[], StoredFile], *, source: SourceSettings, landed_path: str
) -> Iterator[Record]:
    """Yield every record of a landed file in file order; the place in the order is its ordinal.

    Args:
        open_stored: Opens the file's stored bytes; called once, and closed at the end.
        source: Its format and the names of the fields with a meaning.
        landed_path: The file's name, for `format: auto`.

    A file that is empty, of an unknown format, cut or damaged gives one `Lost` for that, after the
    records before the fault.

    Raises:
        OSError: the store failed; what is wrong with the content never raises.
    """
    with closing(open_stored()) as raw:
        stream = DecodedStream(raw)
        num_records = 0
        last_rule = None
        for record in _read_stream(stream, source, landed_path):
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
            reason = "no byte" if stream.num_decoded == 0 else "nothing but blank lines"
            yield Lost(rule="empty_file", position=None, reason=reason)


def _read_stream(
    stream: DecodedStream, source: SourceSettings, landed_path: str
) -> Iterator[Record]:
    head = stream.peek(SNIFF_BYTES)
    if not head:
        return iter(())
    name = find_format(head, landed_path) if source.format == "auto" else source.format
    if name == "jsonl":
        fields = JsonFields(text=source.text_field, user_id=source.id_field, url=source.url_field)
        return read_jsonl(stream, fields)
    if name == "warc":
        return read_warc(stream)
    if name == "html":
        return read_html_file(stream)
    if name == "text":
        return read_text_file(stream)
    reason = (
        f"the content is {name}; this version reads {', '.join(READ_FORMATS[1:])} "
        "(format: text reads any text as it is)"
    )
    return iter([Lost(rule="format_not_in_this_version", position=None, reason=reason)])
