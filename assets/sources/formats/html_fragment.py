"""HTML fragments, such as the bodies of posts, to plain text; all of a fragment is its main text.

Whole pages stay HTML in `documents`, for cleaning finds their main text.
"""

from __future__ import annotations

import re

from resiliparse.extract.html2text import extract_plain_text

from assets.sources.formats.plain_text import Plain, join_lines
from assets.sources.formats.record import UnusableError

MAX_BYTES = 1 << 20
MAX_TAGS = 20_000
"""The parser takes time with the square of depth: more than this is not converted."""
MAX_DEPTH = 200
MAX_ATTRIBUTES = 100
"""Of one tag: the parser takes time with their square as well."""
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,20})(?=[\s/>])")
_ATTRIBUTE = re.compile(r"""[\s/]*[^\s/>][^\s/>=]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]*))?""")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_NO_TAG = re.compile(r"<(?!/?(?:[A-Za-z][A-Za-z0-9]{0,20})[\s/>]|!|\?)")
_ELEMENTS = frozenset(
    {"a", "abbr", "address", "article", "aside", "audio", "b", "big", "blockquote", "body", "br"}
    | {"button", "caption", "center", "cite", "code", "col", "colgroup", "dd", "del", "details"}
    | {
        "dfn",
        "div",
        "dl",
        "dt",
        "em",
        "embed",
        "fieldset",
        "figcaption",
        "figure",
        "font",
        "footer",
    }
    | {"form", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "i", "iframe"}
    | {"img", "input", "ins", "kbd", "label", "legend", "li", "link", "main", "map", "mark", "meta"}
    | {"nav", "noscript", "object", "ol", "option", "p", "picture", "pre", "q", "s", "samp"}
    | {"script", "section", "select", "small", "source", "span", "strike", "strong", "style", "sub"}
    | {"summary", "sup", "svg", "table", "tbody", "td", "textarea", "tfoot", "th", "thead", "time"}
    | {
        "title",
        "tr",
        "tt",
        "u",
        "ul",
        "var",
        "video",
        "wbr",
        "path",
        "g",
        "math",
        "ruby",
        "rt",
        "rp",
    }
)
"""Elements of HTML; what else stands between angle brackets is text, such as a generic type."""
_VOID = frozenset({"br", "hr", "img", "input", "wbr", "p", "li", "td", "tr", "th"})


def html_to_text(source: str) -> Plain:
    """Return the text of a fragment: paragraphs, lists, code as it is, tables.

    Raises:
        UnusableError: it is longer, or nested deeper, than posts are.
    """
    if len(source) > MAX_BYTES:
        raise UnusableError("too_large", f"a fragment of more than {MAX_BYTES:,d} characters")
    pieces: list[str] = []
    depth = deepest = count = end = 0
    for match in _TAG.finditer(source):
        name = match[2].lower()
        if name not in _ELEMENTS:
            pieces += [source[end : match.start()], "&lt;"]
            end = match.start() + 1
            continue
        count += 1
        _check_attributes(source, match.end())
        if name not in _VOID:
            depth = max(depth + (-1 if match[1] else 1), 0)
            deepest = max(deepest, depth)
    if count > MAX_TAGS or deepest > MAX_DEPTH:
        reason = f"{count:,d} tags, {deepest:,d} deep; limits {MAX_TAGS:,d} and {MAX_DEPTH:,d}"
        raise UnusableError("too_complex", reason)
    if not count and _ENTITY.search(source) is None:
        # No HTML at all: its line ends are line ends.
        return Plain(source)
    source = _NO_TAG.sub("&lt;", "".join([*pieces, source[end:]]))
    text = extract_plain_text(
        source,
        main_content=False,
        preserve_formatting=True,
        list_bullets=True,
        links=False,
        alt_texts=False,
        noscript=True,
    )
    return Plain(join_lines(text.split("\n")))


def _check_attributes(source: str, position: int) -> None:
    """Refuse a tag with more attributes than any; `position` is behind its name."""
    for _ in range(MAX_ATTRIBUTES):
        match = _ATTRIBUTE.match(source, position)
        if match is None:
            return
        position = match.end()
    raise UnusableError("too_complex", f"a tag of {MAX_ATTRIBUTES} attributes or more")
