"""Bytes to text: byte-order mark, then what is declared, then what fits.

Browsers trust a declaration; corpora cannot. The order here is

1. a byte-order mark;
2. a declared multi-byte charset (gbk, euc-jp, utf-16, ...) if every byte fits it;
3. UTF-8 if every byte fits it: text of another charset practically never does;
4. a declared single-byte charset (nearly every byte fits these, so they come after UTF-8);
5. UTF-8 with replacements, if damaged characters are fewer than whole ones;
6. a declared multi-byte charset with replacements, if those are rare;
7. the charset that a detector finds likeliest, or else Western European.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from resiliparse.parse.encoding import map_encoding_to_html5

from assets.sources.formats.charset_detection import detect_charset

META_BYTES = 4096
"""How far into a page a declared charset is looked for; the HTML standard asks for 1024."""
MAX_REPLACED = 0.01
"""Share of replaced characters up to which a declared charset counts as damaged, not wrong."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META = re.compile(
    rb"<(?:meta\s[^>]{0,512}?charset|\?xml\s[^>]{0,256}?encoding)\s{0,8}=\s{0,8}[\"']?\s{0,8}"
    rb"([A-Za-z0-9_.:+-]{1,40})",
    re.IGNORECASE,
)
_WIDER = {
    "gbk": "gb18030",
    "gb2312": "gb18030",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "iso8859-11": "cp874",
}
"""Supersets that pages mean by the narrower name, as the Encoding Standard has it."""
_CONTROLS = bytes([*range(0x09), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])
_SAMPLE_CHARACTERS = 1 << 16
MAX_CONTROLS = 0.05
"""Share of control and replacement characters above which a decoded file is not text."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text, the Python codec that gave it, and how many U+FFFD stand for undecodable bytes."""

    text: str
    charset: str
    num_replaced: int = 0


def describe(decoded: Decoded) -> dict[str, Any]:
    """Return what a document's metadata says about its decoding: nothing for sound UTF-8."""
    metadata: dict[str, Any] = {}
    if decoded.charset != "utf-8":
        metadata["charset"] = decoded.charset
    if decoded.num_replaced:
        metadata["num_replaced"] = decoded.num_replaced
    return metadata


def decode_text(data: bytes, declared: Iterable[str | None] = ()) -> Decoded:
    """Decode `data`; `declared` are charset labels from outside, the most trusted first."""
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return _replacing(data[len(mark) :], codec)
    known = [name for label in declared if (name := find_charset(label)) is not None]
    wide = [codec for codec in known if _is_wide(codec)] + _undeclared_wide(data)
    narrow = [codec for codec in known if not _is_wide(codec) and codec != "utf-8"]
    for codec in [*wide, "utf-8"]:
        text = _strict(data, codec)
        if text is not None:
            return Decoded(text, codec)
    if narrow:
        return _replacing(data, narrow[0])
    return _best_fit(data, wide)


def find_charset(label: str | None) -> str | None:
    """Return the Python codec that a charset label of the web means, None if it means none."""
    if not label:
        return None
    mapped = map_encoding_to_html5(label.strip().strip("\"'"), fallback_utf8=False)
    if mapped is None:
        return None
    codec = _WIDER.get(mapped, mapped)
    try:
        return codec if codecs.lookup(codec)._is_text_encoding else None  # noqa: SLF001
    except LookupError:
        return None


def declared_in_markup(data: bytes) -> str | None:
    """Return the charset label of a page's meta element or XML declaration.

    A page that says utf-16 in ASCII letters is not UTF-16: the label is then utf-8, as browsers do.
    """
    match = _META.search(data, 0, META_BYTES)
    if match is None:
        return None
    label = match.group(1).decode("ascii")
    return "utf-8" if label.lower().startswith(("utf-16", "utf16", "utf-32")) else label


def looks_binary(text: str) -> bool:
    """Tell whether decoded text is no text: full of control or undecodable characters."""
    sample = text[:_SAMPLE_CHARACTERS]
    data = sample.encode("utf-8", "replace")
    controls = len(data) - len(data.translate(None, _CONTROLS)) + sample.count("\ufffd")
    return controls > MAX_CONTROLS * len(sample)


def _is_wide(codec: str) -> bool:
    """Tell whether a codec checks its input: multi-byte, and not UTF-8, which comes anyway."""
    return not codec.startswith(("cp12", "iso8859", "koi8", "mac", "cp866", "cp874", "utf-8"))


def _undeclared_wide(data: bytes) -> list[str]:
    """Return codecs that show themselves in the bytes and would pass as UTF-8."""
    if b"\x1b$)C" in data[:META_BYTES]:
        return ["iso2022_kr"]
    if b"\x1b$" in data[:META_BYTES] or b"\x1b(" in data[:META_BYTES]:
        return ["iso2022_jp"]
    codec = find_unmarked_unicode(data)
    return [] if codec is None else [codec]


def find_unmarked_unicode(data: bytes) -> str | None:
    """Return the codec of UTF-16 or UTF-32 without a mark, None if `data` is neither.

    Latin text in UTF-16 has a zero in every other byte, any text in UTF-32 one in every fourth and
    at most 0x10 beside it; nothing else that is text has.
    """
    head = data[: META_BYTES & ~3]
    if b"\0" not in head:
        return None
    if len(head) >= 8 and len(head) % 4 == 0:
        for codec, high, plane, low in (("utf-32-be", 0, 1, 3), ("utf-32-le", 3, 2, 0)):
            has_text = head[low::4].count(0) < len(head) / 8
            if has_text and not any(head[high::4]) and max(head[plane::4]) <= 0x10:
                return codec
    head = head[: len(head) & ~1]
    few = 0.4 * len(head) / 2
    even, odd = head[::2].count(0), head[1::2].count(0)
    if odd > few and not even:
        return "utf-16-le"
    return "utf-16-be" if even > few and not odd else None


def _strict(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except (UnicodeDecodeError, UnicodeError):
        return None


def _replacing(data: bytes, codec: str) -> Decoded:
    text = data.decode(codec, "replace")
    return Decoded(text, codec, text.count("\ufffd"))


def _best_fit(data: bytes, wide: list[str]) -> Decoded:
    """Choose a charset for bytes that no declared one and not UTF-8 fits whole."""
    damaged = _replacing(data, "utf-8")
    num_ascii = len(damaged.text.encode("ascii", "ignore"))
    if len(damaged.text) - num_ascii - damaged.num_replaced > damaged.num_replaced:
        return damaged
    for codec in wide:
        decoded = _replacing(data, codec)
        if decoded.num_replaced <= MAX_REPLACED * len(decoded.text):
            return decoded
    guess = detect_charset(data)
    if guess is not None:
        decoded = _replacing(data, _WIDER.get(guess, guess))
        if decoded.num_replaced <= MAX_REPLACED * len(decoded.text):
            return decoded
    return _replacing(data, "cp1252")
