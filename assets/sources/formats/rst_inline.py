"""Inline markup of reStructuredText: roles, references, emphasis, code, escapes."""

from __future__ import annotations

import re

from assets.sources.formats.record import UnusableError

MAX_EXPANDED = 1 << 22
"""Characters that substitutions may put into one document."""

_INLINE = re.compile(
    r"``(?P<code>[^`\n](?:[^`]|`(?!`)){0,2000}?)``"
    r"|:(?P<role>[a-zA-Z][\w:.+-]{0,40}):`(?P<target>[^`]{1,1000})`"
    r"|`(?P<text>[^`\s][^`]{0,1000})`(?P<reference>__?)?"
    r"|\*\*(?P<strong>[^\s*](?:[^*]|\*(?!\*)){0,2000}?)\*\*"
    r"|(?<![\w*])\*(?P<emphasis>[^\s*][^*]{0,2000}?)\*(?!\w)"
    r"|\|(?P<substitution>[^\s|][^|\n]{0,200})\|_{0,2}"
    r"|\[(?P<note>\#?[\w.-]{0,60}|\*)\]_(?!\w)"
    r"|_`(?P<inline_target>[^`\n]{1,500})`"
    r"|(?<![\w`])(?P<word>[A-Za-z][\w.-]{0,80}?)__?(?![\w`])"
    r"|\\(?P<escaped>.|\n|$)",
)
_ADDRESS = re.compile(r"([^<>]*)<([^<>]{1,900})>")
_NUMBERED = {"pep": "PEP ", "rfc": "RFC "}


class Substitutions:
    """What stands for each |name| of a document; it may grow a text, but not without end."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._expanded = 0

    def define(self, name: str, text: str) -> None:
        """Note the text of a name; the last one counts."""
        self._texts[name] = text

    def hide(self, name: str) -> None:
        """Note a name that shows nothing, such as an image."""
        self._texts.setdefault(name, "")

    def expand(self, name: str, written: str) -> str:
        """Return the text of a name, `written` if it has none.

        Raises:
            UnusableError: all that was expanded is more than `MAX_EXPANDED` characters.
        """
        text = self._texts.get(name, written)
        self._expanded += len(text)
        if self._expanded > MAX_EXPANDED:
            reason = f"substitutions expand to more than {MAX_EXPANDED:,d} characters"
            raise UnusableError("too_complex", reason)
        return text


def plain_inline(text: str, substitutions: Substitutions, targets: frozenset[str]) -> str:
    """Return a paragraph without inline markup.

    Args:
        text: The paragraph, its lines joined.
        substitutions: What stands for each |name| of the document.
        targets: Names, lower case, that a word with an underscore behind it refers to.

    Raises:
        UnusableError: the substitutions expand without measure.
    """

    def replace(match: re.Match[str]) -> str:  # noqa: PLR0911 (one for each kind)
        kind = match.lastgroup
        if match["role"] is not None:
            return _role(match["role"], match["target"])
        if match["text"] is not None:
            return _label(match["text"])
        if kind == "substitution":
            name = match["substitution"]
            return substitutions.expand(name, match[0])
        if kind == "note":
            return f"[{match['note'].lstrip('#')}]"
        if kind == "word":
            return match["word"] if match["word"].lower() in targets else match[0]
        if kind == "escaped":
            return "" if match["escaped"].isspace() else match["escaped"]
        return str(match[str(kind)])

    return _INLINE.sub(replace, text)


def _role(role: str, target: str) -> str:
    label = _label(target)
    name = role.rpartition(":")[2].lower()
    if name in _NUMBERED and label == target:
        return _NUMBERED[name] + label.partition("#")[0]
    if label != target:
        return label
    if name == "math":
        return f"${target}$"
    if label.startswith("~"):
        return label[1:].rpartition(".")[2]
    return label.lstrip("!")


def _label(text: str) -> str:
    """Return the label of `label <target>`, or the text itself; an address alone shows itself."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        return text
    return match[1].rstrip() or match[2]
