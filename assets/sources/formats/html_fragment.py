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
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,20})")
_VOID = frozenset({"br", "hr", "img", "input", "wbr", "p", "li", "td", "tr", "th"})


def html_to_text(source: str) -> Plain:
    """Return the text of a fragment: paragraphs, lists, code as it is, tables.

    Raises:
        UnusableError: it is longer, or nested deeper, than posts are.
    """
    if len(source) > MAX_BYTES:
        raise UnusableError("too_large", f"a fragment of more than {MAX_BYTES:,d} characters")
    depth = deepest = count = 0
    for match in _TAG.finditer(source):
        count += 1
        if match[2].lower() not in _VOID:
            depth = max(depth + (-1 if match[1] else 1), 0)
            deepest = max(deepest, depth)
    if count > MAX_TAGS or deepest > MAX_DEPTH:
        reason = f"{count:,d} tags, {deepest:,d} deep; limits {MAX_TAGS:,d} and {MAX_DEPTH:,d}"
        raise UnusableError("too_complex", reason)
    if "<" not in source and "&" not in source:
        return Plain(source)
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
