"""Lines of mdoc, the semantic macros of BSD manual pages, as text."""

from __future__ import annotations

import re
from typing import Any

_WORD = re.compile(r'"((?:[^"]|"")*)"?|(\S+)')
_ENCLOSURES = {
    "Op": "[]",
    "Dq": "\u201c\u201d",
    "Sq": "\u2018\u2019",
    "Pq": "()",
    "Bq": "[]",
    "Brq": "{}",
    "Aq": "<>",
    "Ql": "\u2018\u2019",
    "Qq": '""',
}
_OPENERS = {"Oo": "[", "Po": "(", "Do": "\u201c", "So": "\u2018", "Bo": "[", "Ao": "<", "Bro": "{"}
_CLOSERS = {"Oc": "]", "Pc": ")", "Dc": "\u201d", "Sc": "\u2019", "Bc": "]", "Ac": ">", "Brc": "}"}
_PLAIN = frozenset(
    {"Ad", "An", "Ar", "Cd", "Cm", "Dv", "Em", "Er", "Ev", "Fa", "Fd", "Fr", "Ft", "Ic", "In", "Li"}
    | {
        "Lk",
        "Ms",
        "Mt",
        "Nd",
        "No",
        "Pa",
        "St",
        "Sx",
        "Sy",
        "Tn",
        "Va",
        "Vt",
        "Xo",
        "Xc",
        "Dl",
        "D1",
    }
    | {
        "Bx",
        "Bsx",
        "Nx",
        "Fx",
        "Ox",
        "Dx",
        "Ux",
        "At",
        "Lb",
        "Fn",
        "Fo",
        "Fc",
        "Nm",
        "Fl",
        "Xr",
        "Ns",
    }
)
_NAMES = {"Bx": "BSD", "Nx": "NetBSD", "Fx": "FreeBSD", "Ox": "OpenBSD", "Dx": "DragonFly"}
_PUNCTUATION = frozenset(".,:;)]?!")


def mdoc_line(name: str, rest: str, metadata: dict[str, Any]) -> str | None:
    """Return a macro line as text with roff escapes still in it, None if it shows nothing.

    Two line ends stand for the start of a paragraph. `metadata` takes the page's title and section,
    and remembers its name for lines that repeat it.
    """
    words = [
        (match[1] or "").replace('""', '"') if match[2] is None else match[2]
        for match in _WORD.finditer(rest)
    ]
    if name == "Dt":
        metadata |= dict(zip(("title", "section"), words, strict=False))
        return None
    if name in ("It", "Bd"):
        shown = _join(words, metadata) if name == "It" else ""
        return f"\n\n{shown}"
    if name in ("Bl", "El", "Ed"):
        return "\n\n"
    if name.startswith("%") and len(name) == 2:
        return " ".join(words)
    if name in _PLAIN or name in _ENCLOSURES or name in _OPENERS or name in _CLOSERS:
        return _join([name, *words], metadata)
    return None


def _join(words: list[str], metadata: dict[str, Any]) -> str:
    line = _Line(words, metadata)
    while line.words:
        line.take(line.words.pop())
    return line.text()


class _Line:
    """A macro line on its way to text."""

    def __init__(self, words: list[str], metadata: dict[str, Any]) -> None:
        self.words = words[::-1]
        """What is still to be read, the next one last."""
        self._metadata = metadata
        self._out: list[str] = []
        self._pending: list[str] = []
        self._glue = True
        self._flags = False

    def text(self) -> str:
        """Return the line, what is still open closed."""
        return "".join(self._out + self._pending[::-1])

    def take(self, word: str) -> None:
        """Take a macro's name or a word of text."""
        if word == "Ns":
            self._glue = True
        elif word in _ENCLOSURES:
            self._pending.append(_ENCLOSURES[word][1])
            self._open(_ENCLOSURES[word][0])
        elif word in _OPENERS:
            self._open(_OPENERS[word])
        elif word in _CLOSERS:
            self._glue = True
            self._add(_CLOSERS[word])
        elif word in _PLAIN:
            self._macro(word)
        else:
            self._add(f"-{word}" if self._flags and word not in _PUNCTUATION else word)

    def _macro(self, name: str) -> None:
        self._flags = name == "Fl"
        is_bare = not self.words or self.words[-1] in _PUNCTUATION
        if name == "Fl" and is_bare:
            self._flags = False
            self._add("-")
        elif name == "Nm" and is_bare:
            self._add(str(self._metadata.get("name") or self._metadata.get("title", "")).lower())
        elif name == "Nm":
            self._metadata.setdefault("name", self.words[-1])
        elif name == "Xr" and len(self.words) > 1:
            self._add(f"{self.words.pop()}({self.words.pop()})")
        elif name in _NAMES:
            self._add(_NAMES[name])

    def _open(self, sign: str) -> None:
        self._add(sign)
        self._glue = True

    def _add(self, word: str) -> None:
        glue = self._glue or word in _PUNCTUATION
        self._out.append(("" if glue else " ") + word)
        self._glue = False
