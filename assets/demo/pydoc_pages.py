"""Render modules' documentation with pydoc; run as a script, alone, in a child process.

    python -s -S -P pydoc_pages.py < module names, one a line > JSON lines {"module", "html"}

Importing a module can do anything, so it happens in a process of its own, without the user's
environment. The pages say nothing about this process: sets of objects are sorted, because their
order depends on addresses, and addresses are cut out. Modules that cannot be imported here are left
out. Needs nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import pydoc
import re
import sys
import warnings
from collections.abc import Iterable
from typing import Any

LEFT_OUT = frozenset(
    {
        "antigravity",  # opens a browser
        "this",  # prints a poem
        "sys",  # tells about this process
        "os.path",  # documented as posixpath
        "__main__",
        "__phello__",  # prints
        "__hello__",
    }
)
MAX_PAGE_CHARACTERS = 1 << 20
_ADDRESS = re.compile(
    r"(?:&nbsp;|\s)at(?:&nbsp;|\s)0x[0-9a-fA-F]{4,16}|,(?:&nbsp;|\s)handle(?:&nbsp;|\s)[0-9a-f]{6,16}"
)


class StableRepr(pydoc.HTMLRepr):
    """pydoc's short representation, with sets in the order of their members' representations."""

    # typing.override comes with Python 3.12, and no package can be imported here.
    def repr_set(self, value: Any, level: int) -> str:  # type: ignore[explicit-override]
        """Return a set, sorted."""
        return self._sorted(value, level, "{", "}")

    def repr_frozenset(self, value: Any, level: int) -> str:  # type: ignore[explicit-override]
        """Return a frozenset, sorted."""
        return self._sorted(value, level, "frozenset({", "})")

    def _sorted(self, value: Any, level: int, left: str, right: str) -> str:
        if not value:
            return left + right if left != "{" else "set()"
        if level <= 0:
            return f"{left}...{right}"
        members = sorted(self.repr1(member, level - 1) for member in value)
        shown = members[: self.maxset] + (["..."] if len(members) > self.maxset else [])
        return left + ", ".join(shown) + right


class StableDoc(pydoc.HTMLDoc):
    """pydoc's renderer with `StableRepr`."""

    _repr_instance = StableRepr()
    repr = _repr_instance.repr
    escape = _repr_instance.escape


def render(name: str) -> str | None:
    """Return the page of a module, None if it cannot be imported or rendered here."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            module = importlib.import_module(name)
            renderer = StableDoc()
            page = renderer.page(pydoc.describe(module), renderer.document(module, name))
        except (Exception, SystemExit):  # noqa: BLE001 (a module may fail in any way; it is left out)
            return None
    page = _ADDRESS.sub("", page)
    if len(sys.base_prefix) > len("/usr"):
        page = page.replace(sys.base_prefix, "/usr")
    # Text that is not Unicode (lone surrogates in codec tables) has no place in a page.
    page = page.encode("utf-8", "replace").decode()
    return page if len(page) <= MAX_PAGE_CHARACTERS else None


def main(names: Iterable[str]) -> None:
    """Write a JSON line per module that has a page."""
    out = sys.stdout
    warnings.simplefilter("ignore")
    for name in names:
        page = None if name in LEFT_OUT or name.endswith("__main__") else render(name)
        if page is not None:
            out.write(json.dumps({"module": name, "html": page}) + "\n")


if __name__ == "__main__":
    main([line.strip() for line in sys.stdin if line.strip()])
