"""Reads ``<stem>.npy``, ``.crc`` and ``.docs.npy`` of shards that lie in ``.tok`` containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from olmo_loader.byte_range import ByteRanges
from olmo_loader.container import CONTAINER_SUFFIX, ContainerLayout, Section
from olmo_loader.errors import IntegrityError, ShortReadError
from olmo_loader.shard_files import CRC_SUFFIX, DOCS_SUFFIX, sidecar_name

_Places = Mapping[str, tuple[str, Section, int]]
"""Name -> (name of the container, section, bytes of the container)."""


class ContainerRanges:
    """`ByteRanges` in which the sections of containers are files of their own.

    Args:
        inner: reads the containers, and everything else.
        places: see `with_containers`.
    """

    def __init__(self, inner: ByteRanges, places: _Places) -> None:
        self._inner, self._places = inner, places

    @property
    def granularity(self) -> int:
        """See `ByteRanges`."""
        return self._inner.granularity

    @property
    def is_local(self) -> bool:
        """See `ByteRanges`."""
        return self._inner.is_local

    def expect(self, sizes: Mapping[str, int]) -> None:
        """Note the sizes of the containers in place of those of their sections."""
        found = dict(sizes)
        for name in sizes.keys() & self._places.keys():
            container, _, size = self._places[name]
            del found[name]
            found[container] = size
        self._inner.expect(found)

    def forget(self, name: str, offset: int, length: int) -> None:
        """See `ByteRanges`."""
        self._inner.forget(*self._place(name, offset), length)

    def size(self, name: str) -> int:
        """Return the bytes of a section; its container is asked for its size.

        Raises:
            IntegrityError: the container has another size than its record says.
        """
        place = self._places.get(name)
        if place is None:
            return self._inner.size(name)
        container, section, expected = place
        size = self._inner.size(container)
        if size != expected:
            raise IntegrityError(f"{container}: {size} bytes, the index says {expected}")
        return section.size

    def sizes(self, names: Sequence[str]) -> list[int]:
        """See `ByteRanges`."""
        return [self.size(name) for name in names]

    def read_file(self, name: str) -> bytes:
        """See `ByteRanges`."""
        place = self._places.get(name)
        if place is None:
            return self._inner.read_file(name)
        return bytes(self._inner.read(place[0], place[1].offset, place[1].size))

    def read(self, name: str, offset: int, length: int) -> bytearray:
        """See `ByteRanges`."""
        self._check(name, offset, length)
        return self._inner.read(*self._place(name, offset), length)

    def read_many(self, reads: Sequence[tuple[str, int, memoryview]]) -> None:
        """See `ByteRanges`."""
        moved = []
        for name, offset, buffer in reads:
            self._check(name, offset, len(buffer))
            moved.append((*self._place(name, offset), buffer))
        self._inner.read_many(moved)

    def _place(self, name: str, offset: int) -> tuple[str, int]:
        place = self._places.get(name)
        return (name, offset) if place is None else (place[0], place[1].offset + offset)

    def _check(self, name: str, offset: int, length: int) -> None:
        """Refuse to read on into the next section, which a file of its own would not have."""
        place = self._places.get(name)
        if place is not None and offset + length > place[1].size:
            raise ShortReadError(
                f"{name}: wanted bytes {offset}..{offset + length}, "
                f"its section of {place[0]} ends at {place[1].size}"
            )


def with_containers(
    ranges: ByteRanges, shards: Iterable[tuple[str, ContainerLayout]]
) -> ByteRanges:
    """Return what reads shards in containers too.

    Args:
        ranges: reads plain files.
        shards: address of the ids, and the layout of the container, of each such shard.
    """
    places: dict[str, tuple[str, Section, int]] = {}
    for name, layout in shards:
        container = sidecar_name(name, CONTAINER_SUFFIX)
        places[name] = (container, layout.ids, layout.size)
        for suffix, section in ((CRC_SUFFIX, layout.crcs), (DOCS_SUFFIX, layout.docs)):
            places[sidecar_name(name, suffix)] = (container, section, layout.size)
    return ContainerRanges(ranges, places) if places else ranges
