"""The likeliest charset of bytes that nothing declares and that are not UTF-8.

chardet 7 ranks some ninety charsets, those of Macs, of DOS and of mainframes among them; it tells
most texts of a few dozen foreign letters. What is asked of it here is made safer in three ways: it
sees the lines from the first foreign byte on, wherever that stands; of rare charsets it hears only
if there are letters enough to tell; and the apostrophe of Macs is known beforehand.
"""

from __future__ import annotations

import codecs
import re

import chardet

DETECT_BYTES = 1 << 17
"""Bytes that are looked at, from the line of the first one beyond ASCII on."""
MIN_FOREIGN_BYTES = 16
"""Bytes beyond ASCII, in different words, from which on a rare charset may be found."""

_FOREIGN = re.compile(rb"[\x80-\xff]")
_WORD = re.compile(rb"[A-Za-z\x80-\xff]+")
_NEVER = frozenset({"utf-7", "hz", "utf-8", "utf-8-sig", "ascii"})
"""What fits ASCII is UTF-8 before it comes to detection; a guess of it is a guess of damage."""
_MAINFRAMES = frozenset({"cp273", "cp424", "cp500", "cp875", "cp1026", "cp1140"})
_RARE = _MAINFRAMES | {
    *("cp720", "cp737", "cp775", "cp856", "cp860", "cp861", "cp862", "cp863", "cp864", "cp865"),
    *("cp869", "cp1006", "cp1125", "hp-roman8", "koi8-t", "kz1048", "ptcp154"),
    *("mac-greek", "mac-iceland", "mac-latin2", "mac-turkish"),
    *("iso8859-3", "iso8859-4", "iso8859-10", "iso8859-13", "iso8859-14", "iso8859-16"),
}
_CAPITAL_IN_WORD = re.compile(rb"(?<=[a-z])[\x8a\x8c\x8e\x9f\xc0-\xd6\xd8-\xde]")
"""A capital of windows-1252 after a small letter: in Mac Roman the apostrophe of `it's`, an e."""
_SIGN_IN_WORD = re.compile(
    rb"(?<=[A-Za-z])(?:[\x80-\x84\x86-\x89\x8d\x8f\x90\x98\x9d\xa1\xa2\xa4-\xa6\xa8\xac\xaf\xb1"
    rb"\xb4-\xb6\xb8\xbc-\xbf\xd7\xf7]|[\x8b\x91\x93-\x95\x99\x9b\xa3\xa7\xa9-\xab\xae\xb0\xb2\xb3\xb9-"
    rb"\xbb](?=[a-z]))"
)
"""A sign of windows-1252 that never follows a letter, or never stands between two."""
WESTERN_BONUS = 0.5
"""How much likelier than windows-1252 another charset must be where one letter decides, as a share.

It goes down with the square root of the number of letters.
"""
_OTHER_SCRIPTS = frozenset(
    {
        *(
            "cp720",
            "cp737",
            "cp855",
            "cp856",
            "cp862",
            "cp864",
            "cp866",
            "cp869",
            "cp874",
            "cp1006",
        ),
        *("cp1125", "cp1251", "cp1253", "cp1255", "cp1256", "koi8-r", "koi8-u", "koi8-t", "kz1048"),
        *("iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "mac-cyrillic", "mac-greek"),
        *("ptcp154", "tis-620"),
    }
)
"""Single-byte charsets whose letters beyond ASCII never stand in one word with those of ASCII."""
_IN_WORD = re.compile(rb"(?:(?<=[A-Za-z])[\x80-\xff]|[\x80-\xff](?=[A-Za-z]))")
MIN_IN_WORD = 0.6
"""Share of foreign bytes beside an ASCII letter from which on a text is in the Latin script."""
_WESTERN = frozenset({"cp1252", "iso8859-1", "iso8859-15"})


def detect_charset(data: bytes) -> str | None:
    """Return the Python codec of the likeliest charset, None if none is likely."""
    sample = _foreign_lines(data)
    # What is repeated tells no more than what stands there once.
    words = b" ".join(word for word in set(_WORD.findall(sample)) if not word.isascii())
    num_foreign = len(_FOREIGN.findall(words))
    is_short = num_foreign < MIN_FOREIGN_BYTES
    left_out = (_NEVER | _RARE) if is_short else _NEVER
    if len(_IN_WORD.findall(words)) >= MIN_IN_WORD * num_foreign:
        left_out |= _OTHER_SCRIPTS
    guesses = chardet.detect_all(
        sample,
        ignore_threshold=True,
        max_bytes=DETECT_BYTES,
        compat_names=False,
        exclude_encodings=left_out,
    )
    scores = {
        codecs.lookup(guess["encoding"]).name: guess["confidence"]
        for guess in guesses
        if guess["encoding"] is not None
    }
    if not scores:
        return None
    best = max(scores, key=lambda codec: scores[codec])
    if is_short and "cp1252" in scores:
        if len(_CAPITAL_IN_WORD.findall(words)) == num_foreign:
            return "mac-roman"
        is_plausible = not (_SIGN_IN_WORD.search(words) or _CAPITAL_IN_WORD.search(words))
        bonus = 1 + WESTERN_BONUS / max(num_foreign, 1) ** 0.5
        if is_plausible and scores["cp1252"] * bonus > scores[best]:
            return "cp1252"
    return best


def _foreign_lines(data: bytes) -> bytes:
    """Return a piece of `data` that starts with the line of the first foreign byte."""
    first = _FOREIGN.search(data)
    start = first.start() if first else 0
    start = max(data.rfind(b"\n", 0, start) + 1, start - DETECT_BYTES // 2)
    return data[start : start + DETECT_BYTES]
