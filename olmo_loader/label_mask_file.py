"""The label mask beside a shard, written while the shard is: one byte per token, 1 counts, 0 not.

It is OLMo's raw `bool` file. A shard of which every token counts has none: the file begins with the
first token that does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from olmo_loader.errors import ConfigurationError

_CHUNK = 1 << 20


class LabelMaskFile:
    """Collects the label mask of a shard in a file that exists only if it is needed.

    Args:
        path: of the file in the making.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._size = 0

    def append(self, mask: NDArray[Any] | None, num_tokens: int) -> None:
        """Add the mask of some tokens.

        Args:
            mask: 0 or 1, bool or integers ``(num_tokens,)``; None: all of them count.
            num_tokens: tokens appended to the shard.

        Raises:
            ConfigurationError: another length, or other values.
        """
        if mask is not None:
            found = np.asarray(mask)
            if found.shape != (num_tokens,) or not np.isin(found, (0, 1)).all():
                raise ConfigurationError(
                    f"a label mask has 0 or 1 for each of {num_tokens} tokens, not shape "
                    f"{found.shape} with values {found.min(initial=0)}..{found.max(initial=0)}"
                )
            if not found.all() and self._file is None:
                self._file = self._path.open("wb")
                self._write_ones(self._size)
        if self._file is not None:
            if mask is None:
                self._write_ones(num_tokens)
            else:
                self._file.write(np.ascontiguousarray(mask, np.uint8).data)
        self._size += num_tokens

    @property
    def file(self) -> BinaryIO | None:
        """The open file; None if every token counts."""
        return self._file

    def _write_ones(self, count: int) -> None:
        assert self._file is not None
        for first in range(0, count, _CHUNK):
            self._file.write(b"\1" * min(_CHUNK, count - first))
