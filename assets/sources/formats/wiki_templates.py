"""Templates that only format the text they are given; every other one is left out and counted."""

from __future__ import annotations

_FIRST = frozenset(
    {"nowrap", "small", "smaller", "big", "larger", "sc", "smallcaps", "nobr", "nobold", "abbr"}
    | {"abbrlink", "tooltip", "quote", "blockquote", "cquote", "quotation", "strong", "em", "mono"}
    | {"code", "tt", "kbd", "var", "sup", "sub", "visible anchor", "center", "resize", "lc", "uc"}
    | {"nihongo2", "circa", "angbr", "verse", "poemquote", "nbhyph", "math", "mvar"}
)
"""Their first argument is the text."""
_LAST = frozenset({"lang", "language", "transl", "transliteration", "tlit", "script"})
"""Their last positional argument is the text."""
_IPA = frozenset(["ipa", "ipac-en", "ipa-en"])
_SIGNS = {
    "!": "|",
    "=": "=",
    "(": "{",
    ")": "}",
    "'": "'",
    "'s": "'s",
    "ndash": "\u2013",
    "endash": "\u2013",
    "mdash": "\u2014",
    "emdash": "\u2014",
    "spaced ndash": " \u2013 ",
    "snd": " \u2013 ",
    "snds": " \u2013 ",
    "nbsp": " ",
    "space": " ",
    "dot": " \u00b7 ",
    "middot": "\u00b7",
    "bullet": " \u2022 ",
    "pi": "\u03c0",
    "times": "\u00d7",
    "minus": "\u2212",
    "shy": "",
    "zwj": "",
    "clear": "",
    "-": "",
}
_RANGE = frozenset({"to", "-", "\u2013", "and", "by", "x", "or"})


def expand_template(arguments: list[str]) -> str | None:
    """Return the text of a template call, name first; None if it is not known."""
    name = " ".join(arguments[0].replace("_", " ").lower().split())
    function, colon, inline = name.partition(":")
    if colon and function == "formatnum":
        return inline.strip()
    if name in _SIGNS:
        return _SIGNS[name]
    given = _positional(arguments[1:])
    return _format(name, given) if given else None


def _format(name: str, given: list[str]) -> str | None:
    text = None
    if name in _FIRST:
        text = given[0]
    elif name in _LAST or name in _IPA or name.startswith("lang-"):
        text = given[-1]
    elif name in ("convert", "cvt"):
        text = _convert(given)
    elif name in ("frac", "sfrac"):
        text = "/".join(item.strip() for item in given[-2:])
    return None if text is None else text.strip()


def _positional(arguments: list[str]) -> list[str]:
    """Return the arguments without a name, then those named 1, 2 and text."""
    named = [argument.partition("=") for argument in arguments if _is_named(argument)]
    values = {key.strip(): value for key, _, value in named}
    given = [argument for argument in arguments if not _is_named(argument)]
    return given + [values[key] for key in ("1", "2", "text") if key in values]


def _is_named(text: str) -> bool:
    """Tell whether an argument has a name; an equals sign in a longer text is no name."""
    name, equals, _ = text.partition("=")
    return bool(equals) and len(name.strip()) <= 20 and "<" not in name and "[" not in name


def _convert(positional: list[str]) -> str:
    """Return what `convert` is given: a number or range of numbers with its unit."""
    words = [positional[0].strip()]
    for number, text in enumerate(positional[1:], start=1):
        words.append(text.strip())
        if text.strip() in _RANGE and number + 1 < len(positional):
            continue
        if words[-2] not in _RANGE:
            break
    return " ".join(words)
