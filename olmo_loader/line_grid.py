"""Columns of lines of canonical JSON by arithmetic on arrays.

Records are canonical JSON, so all lines that say the same things have their colons in the same
order: where the colons of a line are, keys and values follow. That is done for many lines at once,
and every key is compared with what it should be. Lines of several shapes, or with escapes in their
strings, are not read here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.container import CONTAINER_SUFFIX
from olmo_loader.shard_columns import NUMBERS, STRINGS, Bytes, ShardColumns
from olmo_loader.shard_files import MASK_SUFFIX

_SEARCHED_AT_ONCE = 1 << 17
_QUOTE, _ZERO, _COLON = b'"0:'
_MOST_DIGITS = 18


def find_character(text: NDArray[np.uint8], character: int) -> NDArray[np.int64]:
    """Return every place of a character, int64; little memory is touched at a time."""
    parts = [
        np.flatnonzero(text[begin : begin + _SEARCHED_AT_ONCE] == character) + begin
        for begin in range(0, len(text), _SEARCHED_AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class LineGrid:
    """The colons of some lines, a row per line; all lines have the shape of the first."""

    def __init__(
        self, text: NDArray[np.uint8], colons: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> None:
        self.text, self.colons, self.ends = text, colons, ends
        self.keys: dict[str, int] = {}
        """Column of each key of the record itself, not of what is nested in it."""
        self.sidecars: dict[str, int] = {}
        """Column of the name of each sidecar."""
        self._key_of: list[str | None] = []
        self._before: list[int] = []
        """The character before each key of the first line."""
        self._sound: dict[int, bool] = {}

    @classmethod
    def parse(
        cls, data: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> ShardColumns | None:
        """Return the columns, None when the lines have several shapes or escapes."""
        text = np.frombuffer(data, np.uint8)
        colons = find_character(text, _COLON)
        if len(colons) == 0 or len(colons) % len(starts) or b"\\" in data:
            return None
        rows = colons.reshape(len(starts), -1)
        if (rows[:, 0] < starts).any() or (rows[:, -1] >= ends).any():
            return None
        grid = cls(text, rows, ends)
        if not grid.learn(data[: int(ends[0])]):
            return None
        return grid.columns()

    def learn(self, line: bytes) -> bool:
        """Note the keys of the first line; False when it is no record."""
        depth, inside, opened = 0, False, 0
        for place, character in enumerate(line):
            if character == _QUOTE:
                inside = not inside
                opened = place if inside else opened
            elif character == _COLON:
                key = None if inside else line[opened + 1 : place - 1].decode()
                if key is not None and depth == 1:
                    self.keys[key] = len(self._key_of)
                elif key is not None and depth == 2:
                    self.sidecars[key] = len(self._key_of)
                self._key_of.append(key)
                self._before.append(line[opened - 1])
            elif not inside:
                depth += (character == ord("{")) - (character == ord("}"))
        return self.keys.keys() >= {*NUMBERS, *STRINGS, "weight", "sidecars"}

    def columns(self) -> ShardColumns | None:
        """Return the columns of all lines."""
        if not all(self._is_key(column) for column in self.sidecars.values()):
            return None
        count = len(self.ends)
        values: dict[str, Any] = {}
        for name in NUMBERS:
            values[name] = self._number(name)
        for name in STRINGS:
            values[name] = self._string(name)
        weight = self._raw("weight")
        if weight is None or any(value is None for value in values.values()):
            return None
        retired = (weight == b"0.0") | (weight == b"0")
        return ShardColumns(
            **values,
            retired=retired,
            masked=np.full(count, MASK_SUFFIX in self.sidecars),
            packed=np.full(count, CONTAINER_SUFFIX in self.sidecars),
        )

    def _is_key(self, column: int) -> bool:
        """Return whether every line has the key of the first line there."""
        if column not in self._sound:
            key = self._key_of[column]
            self._sound[column] = key is not None and self._has_key(
                column, b'%c"%b"' % (self._before[column], key.encode())
            )
        return self._sound[column]

    def _has_key(self, column: int, text: bytes) -> bool:
        found = self._pieces(self.colons[:, column] - len(text), len(text))
        return bool((found == text).all())

    def _pieces(self, begins: NDArray[np.int64], width: int) -> Bytes:
        """Return ``width`` bytes of the text from each of these places on."""
        count = max(len(self.text) - width + 1, 0)
        every: Bytes = np.ndarray((count,), f"S{width}", self.text, 0, (1,))
        return every[begins]

    def _bounds(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return where the values of a key begin and end."""
        column = self.keys[name]
        following = next(
            (at for at in range(column + 1, len(self._key_of)) if self._key_of[at] is not None),
            None,
        )
        if not self._is_key(column) or (following is not None and not self._is_key(following)):
            return None
        begins = self.colons[:, column] + 1
        if following is None:
            return begins, self.ends - 2  # before the closing brace and the newline
        key = self._key_of[following] or ""
        return begins, self.colons[:, following] - len(key.encode()) - 3

    def _number(self, name: str) -> NDArray[np.int64] | None:
        bounds = self._bounds(name)
        if bounds is None:
            return None
        begins, ends = bounds
        widths = ends - begins
        width = int(widths.max())
        if not 0 < int(widths.min()) <= width <= _MOST_DIGITS:
            return None
        back = np.arange(width, 0, -1)
        pieces = self._pieces(ends - width, width).view(np.uint8).reshape(-1, width)
        digits = pieces.astype(np.int64) - _ZERO
        digits[back > widths[:, None]] = 0
        if ((digits < 0) | (digits > 9)).any():
            return None
        number: NDArray[np.int64] = digits @ (10 ** (back - 1))
        return number

    def _string(self, name: str) -> Bytes | None:
        bounds = self._bounds(name)
        if bounds is None:
            return None
        begins, ends = bounds
        quoted = (self.text[begins] == _QUOTE) & (self.text[ends - 1] == _QUOTE)
        if not (quoted | (self.text[begins] == ord("n"))).all():
            return None
        # "null" becomes empty; only a stratum may be null, and nothing else is compared with "".
        return self._cut(np.where(quoted, begins + 1, ends), np.where(quoted, ends - 1, ends))

    def _raw(self, name: str) -> Bytes | None:
        bounds = self._bounds(name)
        return None if bounds is None else self._cut(*bounds)

    def _cut(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> Bytes:
        widths = ends - begins
        width = max(int(widths.max()), 1)
        # The last line goes on behind its last value: nothing is read beyond the text.
        behind = begins > len(self.text) - width
        pieces = self._pieces(np.where(behind, 0, begins), width)
        if (widths < width).any():
            characters = pieces.view(np.uint8).reshape(-1, width)
            characters[np.arange(width) >= widths[:, None]] = 0
        for number in np.flatnonzero(behind).tolist():
            pieces[number] = self.text[int(begins[number]) : int(ends[number])].tobytes()
        return pieces
