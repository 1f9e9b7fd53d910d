"""What the HTML standard says about tag names, as numbers for the page scan.

Each name becomes a 63-bit code (the scan computes the same from a page's bytes) with the classes it
belongs to. Names that are not listed are ordinary inline elements.
"""

from __future__ import annotations

import numpy as np

CODE_FACTOR = 257
CODE_MASK = (1 << 54) - 1
"""Applied before multiplying: an int64 that overflows is undefined in compiled code."""


def tag_code(name: str) -> int:
    """Return the number that stands for a lower-case tag name."""
    code = 0
    for byte in name.encode():
        code = (code & CODE_MASK) * CODE_FACTOR + byte
    return code


VOID = 1
"""Has no content, never stays open."""
RAW = 2
"""Holds text up to its own end tag, whatever looks like a tag in it."""
FORMATTING = 4
"""Is opened again in the next block when its own closed before it did."""
BLOCK = 8
"""Ends an open paragraph."""
SPECIAL = 16
"""Stops the search of an ordinary end tag for its element."""
SCOPE = 32
"""Stops the search of every end tag."""
CELL = 64
"""Part of a table: clears everything down to the table when it opens."""
IGNORED = 128
"""Exists once per page, wherever its tags stand."""
HEADING = 256
FOREIGN = 512
"""Starts SVG or MathML."""
BREAKOUT = 1024
"""Ends SVG or MathML when it opens inside."""
SVG_INTEGRATION = 2048
MATH_INTEGRATION = 4096
"""HTML goes on inside this element of SVG, or of MathML."""
NO_REOPEN = 8192
"""Does not open formatting elements again, though no block."""

_NAMES = {
    VOID: "area base basefont bgsound br col embed frame hr image img input keygen link meta param"
    " source track wbr",
    RAW: "script style textarea title xmp iframe noembed noframes",
    FORMATTING: "a b big code em font i nobr s small strike strong tt u",
    BLOCK: "address article aside blockquote center details dialog dir div dl fieldset figcaption"
    " figure footer form header hgroup hr li listing main menu nav ol p pre search section summary"
    " ul xmp h1 h2 h3 h4 h5 h6 dd dt",
    SPECIAL: "address applet area article aside base basefont bgsound blockquote br button caption"
    " center col colgroup dd details dir div dl dt embed fieldset figcaption figure footer form"
    " frame frameset h1 h2 h3 h4 h5 h6 header hgroup hr iframe img input keygen li link listing"
    " main marquee menu meta nav noembed noframes noscript object ol p param plaintext pre script"
    " search section select source style summary table tbody td template textarea tfoot th thead"
    " title tr track ul wbr xmp",
    SCOPE: "applet marquee object template select table td th caption tr tbody thead tfoot"
    " colgroup",
    CELL: "td th caption tr tbody thead tfoot colgroup",
    IGNORED: "html head body frameset",
    HEADING: "h1 h2 h3 h4 h5 h6",
    FOREIGN: "svg math",
    BREAKOUT: "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr"
    " i img li listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u"
    " ul var",
    NO_REOPEN: "base basefont bgsound link meta param source track table template rb rp rt rtc",
    SVG_INTEGRATION: "foreignobject desc title",
    MATH_INTEGRATION: "mi mo mn ms mtext annotation-xml",
}


def _build_table() -> tuple[np.ndarray, np.ndarray]:
    flags_of: dict[int, int] = {}
    for flag, names in _NAMES.items():
        for name in names.split():
            code = tag_code(name)
            flags_of[code] = flags_of.get(code, 0) | flag
    codes = np.array(sorted(flags_of), np.int64)
    return codes, np.array([flags_of[int(code)] for code in codes], np.int64)


TAG_CODES, TAG_FLAGS = _build_table()
"""Codes in ascending order and the flags of each, both int64 of shape (number of names,)."""
