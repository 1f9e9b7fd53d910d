"""Compile a function for UTF-8 bytes and numpy arrays, and keep the machine code between runs.

Two habits of numba are changed here, where it has no setting for them. It watches the file a kernel
stands in, not the files of the kernels and constants it uses: after an update it would go on with
old machine code for what those changed. So the stamp it compares is replaced by a hash of that file
and of every module of ours that it imports, directly or not. And it compiles a kernel again for
every constant it is called with inside another one, which doubles the time of the first compile.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit, types

F = TypeVar("F", bound=Callable[..., Any])

OUR_PACKAGES = ("assets", "olmo_loader")
"""Where kernels and the constants they use may come from; libraries are numba's own to notice."""


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
    names = _imported_names(ast.parse(Path(file).read_bytes(), file))
    modules = (sys.modules.get(name) for name in names if name.split(".")[0] in OUR_PACKAGES)
    files = {getattr(module, "__file__", None) for module in modules}
    return tuple(sorted(path for path in files if path is not None))


def _imported_names(tree: ast.Module) -> Iterator[str]:
    """Yield every name that may be a module: `from a import b` names `a` and `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
