"""Find the format of a file (`format: auto`) by its first bytes, then by its name.

In this order:

1. bytes that only one format has: WARC, ARC, Parquet, PDF, zip, tar, and zero bytes (binary data);
2. the name: an extension after any compression suffix (.jsonl .csv .rst .tex .md .txt, man sections
   .1 to .9, source code such as .py), or a name such as Makefile;
3. what the text looks like: MediaWiki or other XML, HTML, a JSON object on one line, LaTeX, roff, a
   `#!` line, a header of names with rows of as many fields;
4. plain text.

A format without a reader (PDF, feeds, archives) is one loss per file; `format: text` on the source
reads what is text among them as it is.
"""

from __future__ import annotations

import codecs
import csv
import re
from pathlib import PurePosixPath

import msgspec

from assets.sources.formats.charset import find_unmarked_unicode
from assets.sources.formats.code_languages import CODE_EXTENSIONS, find_language, is_code_name

SNIFF_BYTES = 1 << 16
_COMPRESSED = frozenset({".gz", ".bz2", ".xz", ".zst", ".lz4"})
_JSON_LINES_TRIED = 10
MAX_ZEROS = 0.01
"""Share of zero bytes that a text may have by accident."""

_MAGIC = (
    (b"WARC/", "warc"),
    (b"filedesc://", "arc"),
    (b"PAR1", "parquet"),
    (b"%PDF-", "pdf"),
    (b"PK\x03\x04", "zip"),
    (b"Obj\x01", "avro"),
    (b"ARROW1", "arrow"),
)
_EXTENSIONS = {
    "jsonl": "jsonl ndjson jsonlines",
    "html": "html htm xhtml",
    "text": "txt text",
    "warc": "warc wet",
    "csv": "csv",
    "tsv": "tsv tab",
    "rst": "rst rest",
    "latex": "tex latex sty cls",
    "markdown": "md markdown mkd",
    "man": "1 2 3 4 5 6 7 8 9 man roff 3pm 3perl 1p 7l",
    "code": " ".join(sorted(CODE_EXTENSIONS)),
}
_BY_EXTENSION = {
    extension: name for name, extensions in _EXTENSIONS.items() for extension in extensions.split()
}
_COLUMN = re.compile(rb"[A-Za-z_][\w.-]{0,40}")
_ROWS_TRIED = 50
_LEAST_ROWS = 3
_WHOLE_PAGE = re.compile(
    rb"(?:<\?xml[^>]{0,200}>\s{0,99})?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE
)
_HTML = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|link|style|script|div|section|article|main"
    rb"|table|h[1-6]|p)[\s>]",
    re.IGNORECASE,
)
_SAYS_LITTLE = frozenset({"", "txt", "text", "data", "out", "html", "htm"})
"""Extensions under which anything may stand."""
_JSON_START = re.compile(rb"\{\s{0,9}\"[^\"\\]{1,99}\"\s{0,9}:")
_PROSE_BYTES = 1 << 15
_RST_TITLE = re.compile(rb"^([^\s][^\n]{0,199})\n([=]{3,200}|[-]{3,200}|[~]{3,200})$", re.MULTILINE)
_RST_DIRECTIVE = re.compile(rb"^\.\. [a-z][a-z-]{2,30}::", re.MULTILINE)
_RST_ROLE = re.compile(rb":[a-z]{2,20}:`[^`\n]{1,200}`|``[^`\n]{1,200}``")
_MD_HEADING = re.compile(rb"^#{1,6} [^\s#][^\n]{0,199}$", re.MULTILINE)
_MD_LINK = re.compile(rb"\[[^\]\n]{1,200}\]\((?:https?:|[\w./#-]{1,200}\))")
_MD_FENCE = re.compile(rb"^```", re.MULTILINE)
_LATEX = re.compile(
    rb"^\s{0,16}\\(?:documentclass|documentstyle|begin\{document\}|input\{)", re.MULTILINE
)
_LATEX_BODY = re.compile(rb"^\\(?:section|chapter|label|begin)\{", re.MULTILINE)
_ROFF = re.compile(
    rb"^(?:\.?[ \t]{0,9}\n){0,99}(?:'\\\"|\.\\\"|\.(?:TH|Dd|SH|so|ds|de)\s)", re.MULTILINE
)


def find_format(head: bytes, landed_path: str) -> str:
    """Return the name of a file's format; `head` are its first `SNIFF_BYTES` decoded bytes.

    One of jsonl, warc, html, text, or the name of a format that this version does not read.
    """
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        head = head.decode("utf-32", "ignore").encode("utf-8", "ignore")
    elif head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        head = head.decode("utf-16", "ignore").encode("utf-8", "ignore")
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    return (
        _by_magic(head)
        or _by_certain_content(start, landed_path)
        or _by_extension(landed_path)
        or _by_content(start)
    )


def extension_of(landed_path: str) -> str:
    """Return the last extension in lower case, compression suffixes apart, without its dot."""
    path = PurePosixPath(landed_path)
    while path.suffix.lower() in _COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower().removeprefix(".")


def _by_magic(head: bytes) -> str | None:
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[257:262] == b"ustar":
        return "tar"
    start = head[:4096]
    if start.count(0) > MAX_ZEROS * len(start) and find_unmarked_unicode(start) is None:
        return "binary data"
    return None


def _by_extension(landed_path: str) -> str | None:
    name = PurePosixPath(landed_path).name
    if is_code_name(name):
        return "code"
    return _BY_EXTENSION.get(extension_of(landed_path))


def _by_certain_content(start: bytes, landed_path: str) -> str | None:
    """Return a format that the content shows beyond doubt, whatever the name says.

    Source code is left to its name: it holds markup and data of every kind.
    """
    extension = extension_of(landed_path)
    if extension in CODE_EXTENSIONS or is_code_name(PurePosixPath(landed_path).name):
        return None
    found = _by_content(start)
    if found == "jsonl":
        is_certain = _is_json_lines(start)
    elif found == "html":
        is_certain = _WHOLE_PAGE.match(_without_comments(start)) is not None
    elif found in {"latex", "man"}:
        is_certain = extension in _SAYS_LITTLE
    else:
        is_certain = found in {"wiki_xml", "stackexchange"} or (
            found in {"csv", "tsv"} and extension in {"csv", "tsv"}
        )
    return found if is_certain else None


def _is_json_lines(start: bytes) -> bool:
    """Tell whether the first lines are JSON objects, each of them, or the start of a long one."""
    *lines, rest = start.split(b"\n")
    tried = [line for line in lines[:_JSON_LINES_TRIED] if line.strip()]
    try:
        objects = [isinstance(msgspec.json.decode(line), dict) for line in tried]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return all(objects) if objects else _JSON_START.match(rest) is not None


def _by_content(start: bytes) -> str:
    if start.startswith(b"<"):
        return _markup_or_text(start)
    if start[:1] in (b"{", b"["):
        return _json_or_text(start)
    if _LATEX.search(start[:8192]) or len(_LATEX_BODY.findall(start[:8192])) > 1:
        return "latex"
    if start.startswith(b"#!") and find_language("", start[:256].decode("latin-1")):
        return "code"
    if _ROFF.match(start):
        return "man"
    return _table_format(start) or _prose_markup(start[:_PROSE_BYTES]) or "text"


def _prose_markup(start: bytes) -> str | None:
    """Return rst or markdown for prose with marks of at least two kinds of one of them."""
    titles = sum(len(under) >= len(title.rstrip()) for title, under in _RST_TITLE.findall(start))
    if titles and _RST_DIRECTIVE.search(start):
        return "rst"
    if titles > 1 and _RST_ROLE.search(start):
        return "rst"
    headings = len(_MD_HEADING.findall(start))
    if headings and (_MD_LINK.search(start) or _MD_FENCE.search(start)):
        return "markdown"
    return None


def _table_format(start: bytes) -> str | None:
    """Return csv or tsv for lines with a header of names and as many fields in each row."""
    first = start.split(b"\n", 1)[0].strip()
    for delimiter, name in ((b"\t", "tsv"), (b",", "csv"), (b";", "csv")):
        names = [field.strip(b'"') for field in first.split(delimiter)]
        is_header = all(_COLUMN.fullmatch(field) for field in names)
        if len(names) < 2 or len(set(names)) < len(names) or not is_header:
            continue
        # The last line of the head may be cut.
        lines = start.decode("utf-8", "replace").splitlines(keepends=True)[:-1]
        try:
            rows = list(csv.reader(lines[:_ROWS_TRIED], delimiter=delimiter.decode()))
        except csv.Error:
            continue
        if len(rows) >= _LEAST_ROWS and all(len(row) == len(names) for row in rows if row):
            return name
    return None


def _markup_or_text(start: bytes) -> str:
    if start.startswith(b"<mediawiki"):
        return "wiki_xml"
    if start.startswith(b"<?xml") and b"<mediawiki" in start[:1024]:
        return "wiki_xml"
    if b"<posts>" in start[:1024] and start.startswith((b"<?xml", b"<posts>")):
        return "stackexchange"
    if start.startswith(b"<?xml"):
        return "html" if b"<html" in start[:4096].lower() else "xml"
    return "html" if _HTML.match(_without_comments(start)) else "text"


def _without_comments(start: bytes) -> bytes:
    while start.startswith(b"<!--"):
        start = start.partition(b"-->")[2].lstrip()
    return start


def _json_or_text(start: bytes) -> str:
    lines = start.split(b"\n")
    whole = lines[:-1] if len(lines) > 1 else lines
    for line in whole[:_JSON_LINES_TRIED]:
        try:
            if isinstance(msgspec.json.decode(line), dict):
                return "jsonl"
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    if len(start) >= SNIFF_BYTES // 2 and len(lines) == 1:
        return "jsonl" if start.startswith(b'{"') else "json"
    # One value over many lines: a JSON document, or a text that starts with a bracket.
    return "json" if re.match(rb"[\[{]\s*[\"\[{\]}0-9]", start) else "text"
