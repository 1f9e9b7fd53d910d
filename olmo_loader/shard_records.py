"""The lines of ``shards.jsonl`` as columns, without a Python object per shard.

Opening a plan needs a dozen fields of every record. Records are canonical JSON, so all lines that
say the same things have their colons in the same order: where the colons of a line are, keys and
values follow by arithmetic on arrays. That is done for blocks of lines at once, and every key is
compared with what it should be. Lines of several shapes, or with escapes in their strings, go
through the JSON parser instead: slower, same columns.

Whole records are read again when somebody asks for one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from olmo_loader.container import CONTAINER_SUFFIX
from olmo_loader.errors import IntegrityError, LoaderError
from olmo_loader.overriding import override
from olmo_loader.records import sha256_hex
from olmo_loader.shard_files import MASK_SUFFIX
from olmo_loader.shard_index import TRAIN_SPLIT, check_index_record, parse_index_record

_BLOCK_BYTES = 1 << 22
_SEARCHED_AT_ONCE = 1 << 17
_NEWLINE, _QUOTE, _ZERO, _COLON = b'\n"0:'
_MOST_DIGITS = 18
_NUMBERS = ("n_tokens", "n_docs", "size", "max_id", "vocab_size")
_STRINGS = ("shard", "source", "split", "dtype", "sha256", "stratum", "op")

Bytes = NDArray[np.bytes_]


@dataclass(frozen=True, kw_only=True)
class ShardColumns:
    """One entry per record, in the order of the records: int64, or UTF-8 bytes."""

    n_tokens: NDArray[np.int64]
    n_docs: NDArray[np.int64]
    size: NDArray[np.int64]
    max_id: NDArray[np.int64]
    vocab_size: NDArray[np.int64]
    shard: Bytes
    source: Bytes
    split: Bytes
    dtype: Bytes
    sha256: Bytes
    stratum: Bytes
    """Empty for none."""
    op: Bytes
    retired: NDArray[np.bool_]
    """True where the weight is 0."""
    masked: NDArray[np.bool_]
    """True where the record names a label mask."""
    packed: NDArray[np.bool_]
    """True where the shard lies in a ``.tok`` container."""

    def __len__(self) -> int:
        return len(self.size)

    def take(self, which: NDArray[Any]) -> ShardColumns:
        """Return some entries, by number or by truth."""
        return ShardColumns(**{item.name: getattr(self, item.name)[which] for item in fields(self)})

    def train(self, keep: Collection[str] = ()) -> NDArray[np.bool_]:
        """Return which shards a training plan numbers, see `plan_identity.train_records`."""
        train: NDArray[np.bool_] = self.split == TRAIN_SPLIT.encode()
        kept = np.array([name.encode() for name in keep], np.bytes_)
        return train & (~self.retired | np.isin(self.shard, kept))


def columns_of(records: Sequence[Mapping[str, Any]]) -> ShardColumns:
    """Return the columns of records that are there as dicts."""
    values: dict[str, Any] = {
        name: np.array([record[name] for record in records], np.int64) for name in _NUMBERS
    }
    values |= {
        name: np.array([(record[name] or "").encode() for record in records], np.bytes_)
        for name in _STRINGS
    }
    retired = [record["weight"] == 0 for record in records]
    masked = [MASK_SUFFIX in record["sidecars"] for record in records]
    packed = [CONTAINER_SUFFIX in record["sidecars"] for record in records]
    return ShardColumns(
        **values,
        retired=np.array(retired, bool),
        masked=np.array(masked, bool),
        packed=np.array(packed, bool),
    )


class ShardRecords(Sequence[dict[str, Any]]):
    """Some lines of ``shards.jsonl``: columns in memory, whole records from the file.

    Args:
        path: the file.
        sha256: what it must have.
        starts: first byte of each line, int64 ``(records,)``.
        ends: the byte after each line's newline.
        columns: of these lines.
    """

    def __init__(
        self,
        path: Path,
        sha256: str,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        columns: ShardColumns,
    ) -> None:
        self._path, self._sha256 = path, sha256
        self._starts, self._ends = starts, ends
        self.columns = columns

    @override
    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, number: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, number: slice) -> ShardRecords: ...
    @override
    def __getitem__(self, number: int | slice) -> dict[str, Any] | ShardRecords:
        """Return one record, or some of them.

        Raises:
            IntegrityError: the file is not what it was when it was opened.
        """
        if isinstance(number, slice):
            return self.take(np.arange(len(self))[number])
        start, end = int(self._starts[number]), int(self._ends[number])
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                line = file.read(end - start)
        except FileNotFoundError as error:
            raise IntegrityError(f"{self._path}: missing, it was there at the start") from error
        return parse_index_record(line, f"{self._path}, bytes {start}..{end}")

    @override
    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield every record; the file is read once."""
        data = self._path.read_bytes() if len(self) else b""
        if len(self) and sha256_hex(data) != self._sha256:
            raise IntegrityError(f"{self._path}: changed since it was opened")
        for start, end in zip(self._starts.tolist(), self._ends.tolist(), strict=True):
            yield json.loads(data[start:end])

    def take(self, which: NDArray[Any]) -> ShardRecords:
        """Return some records, by number or by truth."""
        return ShardRecords(
            self._path,
            self._sha256,
            self._starts[which],
            self._ends[which],
            self.columns.take(which),
        )


def columns_in(records: Sequence[dict[str, Any]]) -> ShardColumns:
    """Return the columns of records, however they are held."""
    return records.columns if isinstance(records, ShardRecords) else columns_of(records)


def read_shard_records(path: Path, sha256: str) -> ShardRecords:
    """Read ``shards.jsonl``, `_BLOCK_BYTES` at a time.

    Args:
        path: the file.
        sha256: what its plan says it has; then the seals of its lines would say nothing new.

    Raises:
        IntegrityError: another file, or lines that are no index records.
    """
    found, problem = [], None
    all_starts, all_ends = [], []
    hashed = hashlib.sha256()
    for begin, block in _blocks(path):
        hashed.update(block)
        try:
            starts, ends, columns = _parse(block)
            found.append(columns)
            all_starts.append(starts + begin)
            all_ends.append(ends + begin)
        except (ValueError, KeyError, TypeError, LoaderError) as error:
            problem = error  # of damage, the hash says more
    if hashed.hexdigest() != sha256:
        raise IntegrityError(f"{path}: not the file that plan.json describes")
    columns = _joined(found)
    if problem is not None or (columns.op != b"add").any():
        raise IntegrityError(f"{path}: a line is no record that adds a shard: {problem}")
    none = [np.zeros(0, np.int64)]
    starts, ends = np.concatenate(all_starts or none), np.concatenate(all_ends or none)
    return ShardRecords(path, sha256, starts, ends, columns)


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines, and where they begin; a last line without an end comes alone."""
    begin, rest = 0, b""
    with path.open("rb") as file:
        # Sized to the file, so that nothing of a small one is copied.
        step = min(_BLOCK_BYTES, path.stat().st_size + 1)
        while data := file.read(step):
            data, rest = rest + data if rest else data, b""
            end = data.rfind(b"\n") + 1
            if end < len(data):
                data, rest = data[:end], data[end:]
            if data:
                yield begin, data
                begin += end
    if rest:
        yield begin, rest


def _parse(block: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64], ShardColumns]:
    """Return where each line begins and ends, and the columns."""
    ends = _find(np.frombuffer(block, np.uint8), _NEWLINE) + 1
    if len(ends) == 0:
        raise ValueError("the last line has no end")
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    columns = _Grid.parse(block, starts, ends)
    if columns is None:
        bounds = zip(starts.tolist(), ends.tolist(), strict=True)
        lines = [json.loads(block[start:end]) for start, end in bounds]
        if not all(isinstance(line, dict) for line in lines):
            raise ValueError("a line is no JSON object")
        columns = columns_of([check_index_record(line, "a line") for line in lines])
    return starts, ends, columns


def _find(text: NDArray[np.uint8], character: int) -> NDArray[np.int64]:
    """Return every place of a character, int64; little memory is touched at a time."""
    parts = [
        np.flatnonzero(text[begin : begin + _SEARCHED_AT_ONCE] == character) + begin
        for begin in range(0, len(text), _SEARCHED_AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _joined(blocks: Sequence[ShardColumns]) -> ShardColumns:
    if not blocks:
        return columns_of([])
    if len(blocks) == 1:
        return blocks[0]
    names = [item.name for item in fields(ShardColumns)]
    return ShardColumns(
        **{name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}
    )


class _Grid:
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
        colons = _find(text, _COLON)
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
        return self.keys.keys() >= {*_NUMBERS, *_STRINGS, "weight", "sidecars"}

    def columns(self) -> ShardColumns | None:
        """Return the columns of all lines."""
        if not all(self._is_key(column) for column in self.sidecars.values()):
            return None
        count = len(self.ends)
        values: dict[str, Any] = {}
        for name in _NUMBERS:
            values[name] = self._number(name)
        for name in _STRINGS:
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
