"""Print to a terminal: texts and ids of landed files must not be able to steer it.

pandas is imported where a table is printed: most of what is said is none, errors above all.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from typing_extensions import override

if TYPE_CHECKING:
    import pandas as pd

_LAYOUT = {"\n", "\t"}
# Cc: control, Cf: format (bidirectional overrides among them), Cs: surrogates, Co: private use,
# Zl, Zp: line and paragraph separators.
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def escape(text: str, *, one_line: bool = False) -> str:
    r"""Return `text` with every character that could steer a terminal shown as `\xNN`.

    Line feeds and tabs stay, unless `one_line`.
    """
    allowed = set() if one_line else _LAYOUT
    if text.isprintable():
        return text
    return "".join(
        char if char in allowed or unicodedata.category(char) not in _UNSAFE else _shown(char)
        for char in text
    )


def say(text: str = "") -> None:
    """Print lines to standard output, escaped."""
    sys.stdout.write(escape(text) + "\n")


def complain(message: str) -> None:
    """Print an error to standard error, escaped."""
    sys.stdout.flush()
    sys.stderr.write(f"olmo-data: {escape(message)}\n")
    sys.stderr.flush()


def format_table(table: pd.DataFrame) -> str:
    """Return a table as aligned text: numbers with thousands separators, nothing left out."""
    import pandas as pd  # noqa: PLC0415 - see the module

    shown = pd.DataFrame(
        {
            name: ["" if value is pd.NA else _cell(value) for value in table[name]]
            for name in table.columns
        }
    )
    numeric = {name for name in table.columns if pd.api.types.is_numeric_dtype(table[name])}
    widths = {
        name: max([len(str(name)), *(len(cell) for cell in shown[name])]) for name in shown.columns
    }
    lines = [_line([str(name) for name in shown.columns], widths, numeric)]
    lines += [_line(row, widths, numeric) for row in shown.itertuples(index=False)]
    return "\n".join(line.rstrip() for line in lines)


@contextlib.contextmanager
def show_progress() -> Iterator[list[str]]:
    """Print what the stages log meanwhile, one line each; yields the warnings among it."""
    handler = _ProgressHandler(sys.stdout)
    handler.setFormatter(_OneLine())
    logger = logging.getLogger("assets")
    level, propagate = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield handler.warnings
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


class _ProgressHandler(logging.StreamHandler[TextIO]):
    """Prints progress; a reader that has gone away (head, less) must not stop the work."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.warnings: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        """Print a line, and remember it if it is a warning or worse."""
        if record.levelno >= logging.WARNING:
            self.warnings.append(record.getMessage())
        super().emit(record)

    @override
    def handleError(self, record: logging.LogRecord) -> None:
        """Lose the line."""


class _OneLine(logging.Formatter):
    """A log record as one escaped line, with its level if that is a warning or worse."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        return "  " + level + escape(record.getMessage(), one_line=True)


def _line(cells: Sequence[Any], widths: dict[Any, int], numeric: set[Any]) -> str:
    return "  ".join(
        str(cell).rjust(width) if name in numeric else str(cell).ljust(width)
        for cell, (name, width) in zip(cells, widths.items(), strict=True)
    )


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,d}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return escape(str(value), one_line=True)


def _shown(char: str) -> str:
    code = ord(char)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
