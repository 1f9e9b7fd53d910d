"""Escape sequences of roff: characters by name, and all that only changes how text looks."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ESCAPE = re.compile(
    r"\\(?:"
    r"\((?P<two>..)"
    r"|\[(?P<long>[^\]\n]{1,60})\]"
    r"|\*(?:\((?P<string2>..)|\[(?P<string>[^\]\n]{1,60})\]|(?P<string1>[^(\[\n]))"
    r"|N'(?P<code>\d{1,7})'"
    r"|C'(?P<named>[^'\n]{1,60})'"
    r"|[fFmMgkVYnO](?:\(..|\[[^\]\n]{0,60}\]|[+-]?[^(\[\n])"
    r"|s(?:[+-]?\(\d\d|[+-]?\[[^\]\n]{0,20}\]|[+-]?'[^'\n]{0,20}'|[+-]?[1-3]\d|[+-]?\d)"
    r"|[hvwolLbDSHRxXABZ](?:'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|\x07[^\x07\n]{0,200}\x07)"
    r"|z(?=.)"
    r"|(?P<one>.|$)"
    r")",
)
_COMMENT = re.compile(r"\\[\"#].*")
_ONE = {
    "-": "-",
    "e": "\\",
    "\\": "\\",
    "'": "'",
    "`": "`",
    " ": " ",
    "~": " ",
    "0": " ",
    "t": "\t",
    "_": "_",
    ".": ".",
    "&": "",
    "%": "",
    "/": "",
    ",": "",
    ")": "",
    ":": "",
    "|": "",
    "^": "",
    "u": "",
    "d": "",
    "r": "",
    "p": "",
    "a": "",
    "c": "",
    "{": "",
    "}": "",
    "!": "",
    "?": "",
    "z": "",
}
_NAMED = {
    "bu": "\u2022",
    "em": "\u2014",
    "en": "\u2013",
    "hy": "-",
    "mi": "-",
    "pl": "+",
    "eq": "=",
    "lq": "\u201c",
    "rq": "\u201d",
    "oq": "\u2018",
    "cq": "\u2019",
    "aq": "'",
    "dq": '"',
    "ga": "`",
    "aa": "\u00b4",
    "ha": "^",
    "ti": "~",
    "rs": "\\",
    "bv": "|",
    "ba": "|",
    "lB": "[",
    "rB": "]",
    "lC": "{",
    "rC": "}",
    "la": "\u27e8",
    "ra": "\u27e9",
    "sl": "/",
    "co": "\u00a9",
    "rg": "\u00ae",
    "tm": "\u2122",
    "de": "\u00b0",
    "mc": "\u00b5",
    "sc": "\u00a7",
    "->": "\u2192",
    "<-": "\u2190",
    "<>": "\u2194",
    "ua": "\u2191",
    "da": "\u2193",
    "rA": "\u21d2",
    "mu": "\u00d7",
    "di": "\u00f7",
    "+-": "\u00b1",
    "<=": "\u2264",
    ">=": "\u2265",
    "!=": "\u2260",
    "~~": "\u2248",
    "==": "\u2261",
    "if": "\u221e",
    "sr": "\u221a",
    "12": "\u00bd",
    "14": "\u00bc",
    "34": "\u00be",
    "S1": "\u00b9",
    "S2": "\u00b2",
    "S3": "\u00b3",
    "dg": "\u2020",
    "dd": "\u2021",
    "Fo": "\u00ab",
    "Fc": "\u00bb",
    "fo": "\u2039",
    "fc": "\u203a",
    "Bq": "\u201e",
    "bq": "\u201a",
    "r!": "\u00a1",
    "r?": "\u00bf",
    "ct": "\u00a2",
    "Po": "\u00a3",
    "Ye": "\u00a5",
    "Eu": "\u20ac",
    "ss": "\u00df",
    "AE": "\u00c6",
    "ae": "\u00e6",
    "OE": "\u0152",
    "oe": "\u0153",
    "o/": "\u00f8",
    "O/": "\u00d8",
    "oa": "\u00e5",
    "oA": "\u00c5",
    "'a": "\u00e1",
    "'e": "\u00e9",
    "'i": "\u00ed",
    "'o": "\u00f3",
    "'u": "\u00fa",
    "'A": "\u00c1",
    "'E": "\u00c9",
    "'I": "\u00cd",
    "'O": "\u00d3",
    "'U": "\u00da",
    "`a": "\u00e0",
    "`e": "\u00e8",
    "`i": "\u00ec",
    "`o": "\u00f2",
    "`u": "\u00f9",
    "`A": "\u00c0",
    "`E": "\u00c8",
    ":a": "\u00e4",
    ":e": "\u00eb",
    ":i": "\u00ef",
    ":o": "\u00f6",
    ":u": "\u00fc",
    ":A": "\u00c4",
    ":O": "\u00d6",
    ":U": "\u00dc",
    "^a": "\u00e2",
    "^e": "\u00ea",
    "^i": "\u00ee",
    "^o": "\u00f4",
    "^u": "\u00fb",
    "~a": "\u00e3",
    "~n": "\u00f1",
    "~o": "\u00f5",
    "~N": "\u00d1",
    ",c": "\u00e7",
    ",C": "\u00c7",
    "vs": "\u0161",
    "vS": "\u0160",
    "vz": "\u017e",
    "*a": "\u03b1",
    "*b": "\u03b2",
    "*g": "\u03b3",
    "*d": "\u03b4",
    "*e": "\u03b5",
    "*l": "\u03bb",
    "*m": "\u03bc",
    "*p": "\u03c0",
    "*s": "\u03c3",
    "*h": "\u03b8",
    "*W": "\u03a9",
    "*D": "\u0394",
    "sq": "\u25a1",
    "ci": "\u25cb",
    "OK": "\u2713",
    "lh": "\u261c",
    "rh": "\u261e",
    "pc": "\u00b7",
    "br": "|",
    "ul": "_",
    "rn": "\u203e",
    "at": "@",
    "sh": "#",
    "Do": "$",
    "ff": "ff",
    "fi": "fi",
    "fl": "fl",
    "Fi": "ffi",
    "Fl": "ffl",
    "no": "\u00ac",
    "tno": "\u00ac",
    "md": "\u22c5",
    "**": "*",
    "pd": "\u2202",
    "is": "\u222b",
    "es": "\u2205",
    "mo": "\u2208",
}
_STRINGS = {"R": "\u00ae", "Tm": "\u2122", "lq": "\u201c", "rq": "\u201d", "S": ""}
"""Strings that the man macros define."""


def unescape(text: str, strings: Mapping[str, str]) -> str:
    """Return a line of roff without its escapes; `strings` are those the page defined, plain."""
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        name = match["string2"] or match["string"] or match["string1"]
        if name is not None:
            return strings.get(name, _STRINGS.get(name, ""))
        if match["one"] is not None:
            return _ONE.get(match["one"], match["one"])
        return _character(match)

    return _ESCAPE.sub(replace, _COMMENT.sub("", text))


def _character(match: re.Match[str]) -> str:
    number = match["code"]
    name = match["two"] or match["long"] or match["named"]
    if name is not None and name[0] == "u" and len(name) >= 5:
        number = _code_point(name[1:].partition("_")[0])
        name = None if number else name
    if number is not None:
        value = int(number)
        return chr(value) if 0x1F < value < 0xD800 or 0xDFFF < value < 0x110000 else ""
    return "" if name is None else _NAMED.get(name, "")


def _code_point(digits: str) -> str | None:
    try:
        return str(int(digits, 16))
    except ValueError:
        return None
