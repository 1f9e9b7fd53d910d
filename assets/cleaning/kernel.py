"""Compile a function for UTF-8 bytes and numpy arrays, and keep the machine code between runs.

Two habits of numba are changed here, where it has no setting for them. It watches the file a kernel
stands in, not the files of the kernels and constants it uses: after an update it would go on with
old machine code for what those changed. So the stamp it compares is replaced by a hash of every
module of this package. And it compiles a kernel again for every constant it is called with inside
another one, which doubles the time of the first compile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit, types

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Return the compiled `function`, which releases the GIL and is cached on disk."""
    dispatcher: Any = njit(cache=True, nogil=True)(function)
    _ignore_constants(dispatcher)
    index = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if index is not None:  # None where numba is switched off, or found no folder it may write to
        index._source_stamp = source_stamp()  # noqa: SLF001 - numba offers no public way
    compiled: F = dispatcher
    return compiled


def _ignore_constants(dispatcher: Any) -> None:
    """Let calls with a constant use the machine code for any value of its type."""
    unliteral: Any = types.unliteral
    find_template = getattr(dispatcher, "get_call_template", None)
    if find_template is not None:  # None where numba is switched off
        dispatcher.get_call_template = lambda args, kws: find_template(
            tuple(unliteral(kind) for kind in args), kws
        )


@cache
def source_stamp() -> str:
    """Return a hash of the source of every module of this package, in hex."""
    hashed = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        hashed.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return hashed.hexdigest()
