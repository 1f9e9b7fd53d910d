"""Large XML files as the elements that repeat in them, each cut out and parsed on its own.

A dump is one element with millions of children of one name. Each child is found by its tags, which
in well-formed XML stand nowhere else, and parsed alone: a damaged one costs only itself, memory
holds one, and no document type is ever in force, so that no entity can be declared, expanded or
fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from assets.sources.formats.record import MAX_RECORD_BYTES, UnusableError
from assets.sources.formats.transcode import ByteStream

MAX_DEPTH = 32
MAX_HEAD_BYTES = 1 << 20


@dataclass(slots=True)
class Element:
    """The bytes of one element, or None if it was longer than is read."""

    position: int
    """Offset of its first byte in the UTF-8 text."""
    data: bytes | None
    is_whole: bool = True
    """Its end tag was found before the file's end or another start."""


@dataclass(slots=True)
class Leaves:
    """What an element holds: the text of its leaves by path, and attributes as path@name."""

    values: dict[str, str] = field(default_factory=dict)


class ElementCutter:
    """Cuts the elements of one name out of a stream."""

    def __init__(self, stream: ByteStream, start: bytes, end: bytes) -> None:
        """Prepare.

        Args:
            stream: UTF-8.
            start: How the elements start, as `<page>` or `<row `.
            end: How they end, as `</page>`; empty where they have no content: before the next tag.
        """
        self.head = b""
        """What stands before the first element, at most `MAX_HEAD_BYTES`; set by iterating."""
        self._stream = stream
        self._start = start
        self._end = end or b"<"
        self._has_content = bool(end)
        self._mark = end or b"/>"
        """Stands in every whole element: where it is skipped, an element had no start."""
        self._lost_start = False
        self._buffer = bytearray()
        self._position = 0
        self._end_from = 0
        """No end tag that has not been passed stands before this offset."""
        self._end_found = False
        """One stands there."""

    def __iter__(self) -> Iterator[Element]:
        """Yield the elements in file order."""
        if not self._seek_start(keep_head=True):
            return
        if self._lost_start and self._has_content:
            yield Element(0, b"", is_whole=False)
        while True:
            element = self._cut()
            position = self._position
            found = self._seek_start(keep_head=False)
            # Of an element that a tag inside it ended, what is skipped is its own rest.
            is_closed = element.data is not None and element.data.rstrip().endswith(self._mark)
            yield element
            del element
            if self._lost_start and is_closed:
                yield Element(position, b"", is_whole=False)
            if not found:
                return

    def _seek_start(self, *, keep_head: bool) -> bool:
        """Drop what stands before the next start; False if there is none."""
        self._lost_start = False
        while (place := self._buffer.find(self._start)) < 0:
            spare = max(len(self._buffer) - max(len(self._start), len(self._mark)), 0)
            self._lost_start |= self._buffer.find(self._mark) >= 0
            self._drop(spare, keep_head=keep_head)
            if not self._fill():
                return False
        self._lost_start |= self._buffer.find(self._mark, 0, place) >= 0
        self._drop(place, keep_head=keep_head)
        return True

    def _cut(self) -> Element:
        """Return the element at the start of the buffer and drop it."""
        position, searched = self._position, len(self._start)
        dropped = False
        while True:
            end = self._find_end(searched)
            again = self._buffer.find(self._start, len(self._start)) if self._has_content else -1
            if again >= 0 and not 0 <= end < again:
                return self._take(position, again, dropped=dropped, is_whole=False)
            if end >= 0:
                size = end + len(self._end) if self._has_content else end
                return self._take(position, size, dropped=dropped, is_whole=True)
            searched = max(len(self._buffer) - len(self._end), len(self._start))
            if len(self._buffer) > MAX_RECORD_BYTES:
                dropped = True
                # The start stays, so that the search for another one begins behind it.
                excess = len(self._buffer) - len(self._end) - len(self._start)
                del self._buffer[len(self._start) : len(self._start) + excess]
                self._position += excess
                searched = len(self._start)
            if not self._fill():
                return self._take(position, len(self._buffer), dropped=dropped, is_whole=False)

    def _find_end(self, start: int) -> int:
        """Return the place in the buffer of the first end tag from `start` on, -1 if there is none.

        What was found for one element holds for the next: a million starts before a single end
        cost one search, not a million.
        """
        known = self._end_from - self._position
        if self._end_found and known >= start:
            return known
        place = self._buffer.find(self._end, max(start, known))
        self._end_found = place >= 0
        if place < 0:
            known = max(len(self._buffer) - len(self._end) + 1, 0)
        self._end_from = self._position + (place if place >= 0 else known)
        return place

    def _take(self, position: int, size: int, *, dropped: bool, is_whole: bool) -> Element:
        data = None if dropped or size > MAX_RECORD_BYTES else bytes(self._buffer[:size])
        self._drop(size, keep_head=False)
        return Element(position, data, is_whole)

    def _drop(self, size: int, *, keep_head: bool) -> None:
        if keep_head and len(self.head) < MAX_HEAD_BYTES:
            self.head += bytes(self._buffer[:size])
        del self._buffer[:size]
        self._position += size

    def _fill(self) -> bool:
        chunk = self._stream.read()
        self._buffer += chunk
        return bool(chunk)


def parse_element(data: bytes) -> Leaves:
    """Return what an element holds; of a leaf that repeats, the last one counts.

    Raises:
        UnusableError: it is not well-formed, declares entities, or is nested too deep.
    """
    leaves = Leaves()
    path: list[str] = []
    pieces: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        path.append(name)
        pieces.clear()
        if len(path) > MAX_DEPTH:
            raise UnusableError("bad_xml", f"nested more than {MAX_DEPTH} levels deep")
        where = "/".join(path)
        for key, value in attributes.items():
            leaves.values[f"{where}@{key}"] = value

    def end(_name: str) -> None:
        leaves.values["/".join(path)] = "".join(pieces)
        pieces.clear()
        path.pop()

    def refuse(*_arguments: object) -> None:
        raise UnusableError("bad_xml", "a document type or an entity is declared in it")

    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = pieces.append
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise UnusableError("bad_xml", f"not well-formed: {error}") from None
    return leaves
