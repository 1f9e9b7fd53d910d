"""Compile a function for UTF-8 bytes and numpy arrays, and keep the machine code between runs.

Two habits of numba are changed here, where it has no setting for them. It watches the file a kernel
stands in, not the files of the kernels and constants it uses: after an update it would go on with
old machine code for what those changed. So the stamp it compares is replaced by a hash of that file
and of every module of ours that it imports, directly or not. And it compiles a kernel again for
every constant it is called with inside another one, which doubles the time of the first compile.

And it is kept from loading what no kernel uses: extensions of other packages, which it imports
whole (half a second where awkward is installed), and SciPy's linear algebra.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit, types
from numba.core import entrypoints

F = TypeVar("F", bound=Callable[..., Any])

OUR_PACKAGES = ("assets", "olmo_loader")
"""Where kernels and the constants they use may come from; libraries are numba's own to notice."""


_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))",
    re.MULTILINE,
)
_COMMENT = re.compile(rb"#[^\n]*")
_NAME = re.compile(rb"[\w.]+")


def kernel(function: F) -> F:
    """Return the compiled `function`, which releases the GIL and is cached on disk.

    What it uses of other modules has to be imported at the top of its file.
    """
    dispatcher: Any = njit(cache=True, nogil=True)(function)
    _ignore_constants(dispatcher)
    index = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if index is not None:  # None where numba is switched off, or found no folder it may write to
        index._source_stamp = source_stamp(function.__code__.co_filename)  # noqa: SLF001 - numba offers no public way
    compiled: F = dispatcher
    return compiled


def inlined(function: F) -> F:
    """Return `function` for use inside kernels that write it out where they call it.

    It costs what the same lines cost there: for parts of loops run a hundred million times.
    """
    written_out: Any = njit(inline="always", nogil=True)(function)
    made: F = written_out
    return made


def _ignore_constants(dispatcher: Any) -> None:
    """Let calls with a constant use the machine code for any value of its type."""
    unliteral: Any = types.unliteral
    find_template = getattr(dispatcher, "get_call_template", None)
    if find_template is not None:  # None where numba is switched off
        dispatcher.get_call_template = lambda args, kws: find_template(
            tuple(unliteral(kind) for kind in args), kws
        )


@cache
def source_stamp(file: str) -> str:
    """Return a hash of the source of `file` and of all our modules it stands on, in hex."""
    found = {file}
    waiting = [file]
    while waiting:
        for imported in _imported_files(waiting.pop()):
            if imported not in found:
                found.add(imported)
                waiting.append(imported)
    digests = (hashlib.sha256(Path(path).read_bytes()).digest() for path in found)
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


@cache
def _imported_files(file: str) -> tuple[str, ...]:
    """Return the files of our modules that `file` names in its imports, all of them loaded."""
    names = _imported_names(Path(file).read_bytes())
    modules = (sys.modules.get(name) for name in names if name.split(".")[0] in OUR_PACKAGES)
    files = {getattr(module, "__file__", None) for module in modules}
    return tuple(sorted(path for path in files if path is not None))


def _imported_names(source: bytes) -> Iterator[str]:
    """Yield every name that may be a module: `from a import b` names `a` and `a.b`.

    A line of a docstring that reads like an import counts as one: too many names only make a stamp
    change more often. Parsing the sources instead would take longer than loading the kernels.
    """
    for origin, names, modules in _IMPORT.findall(source):
        found = [name.decode() for name in _NAME.findall(_COMMENT.sub(b"", names or modules))]
        if origin:
            yield origin.decode()
            yield from (f"{origin.decode()}.{name}" for name in found)
        else:
            yield from found


def _load_without_extensions() -> None:
    """Load the array functions of numba without SciPy, and nothing else.

    Stands in for `entrypoints.init_all`, which numba calls before it compiles or loads a kernel.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    linalg: Any = importlib.import_module("numba.np.linalg")
    ensure_blas = linalg.ensure_blas
    linalg.ensure_blas = _ensure_no_blas
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = ensure_blas


def _ensure_no_blas() -> None:
    raise ImportError("kernels use no linear algebra")


entrypoints.init_all = _load_without_extensions
