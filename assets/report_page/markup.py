"""Pieces of HTML: everything that came from data is escaped here, and nowhere else."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def escape(value: object) -> str:
    """Return a value as text for HTML; what cannot be seen is shown by its code point."""
    text = "".join(
        char
        if char in "\n\t" or char.isprintable() or unicodedata.category(char) not in _UNSEEN
        else f"\u27e8U+{ord(char):04X}\u27e9"
        for char in str(value)
    )
    return html.escape(text, quote=True)


def number(value: float | None, *, digits: int = 2) -> str:
    """Return a number for people; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,d}"
    return f"{value:,.{digits}f}"


def percent(share: float | None) -> str:
    """Return a share as per cent; nothing for None."""
    return "" if share is None else f"{share:.1%}"


def short(value: float) -> str:
    """Return a number with a unit: 12.3k, 4.5M."""
    for unit in ("", "k", "M", "G", "T"):
        if abs(value) < 1000:
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:.3g}P"


def table(
    columns: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]], *, caption: str = ""
) -> str:
    """Return a table.

    Args:
        columns: (title, whether it holds numbers); titles are escaped here.
        rows: cells in the same order, already HTML.
        caption: already HTML.
    """
    kinds = ["num" if is_number else "txt" for _, is_number in columns]
    head = "".join(
        f'<th class="{kind}">{escape(title)}</th>'
        for (title, _), kind in zip(columns, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{cell}</td>' for cell, kind in zip(row, kinds, strict=True))
        + "</tr>\n"
        for row in rows
    )
    title = f"<caption>{caption}</caption>" if caption else ""
    inside = f"{title}<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody>"
    return f'<div class="scroll"><table>{inside}</table></div>'


def details(title: str, content: str) -> str:
    """Return content that opens on a click; the title is escaped here, the content is HTML."""
    return f"<details><summary>{escape(title)}</summary><div>{content}</div></details>\n"
