"""Charset detection on files whose folders name their charset, such as chardet's public test set.

    pip download --no-deps --no-binary :all: chardet==5.2.0 && tar xzf chardet-5.2.0.tar.gz
    .venv/bin/python -m benchmarks.charsets chardet-5.2.0/tests

A folder is named after a charset, or a charset and a language (`windows-1250-polish`). A file is
right if its text is what its folder's charset says, or the charset that the web means by that name
(gb18030 for gb2312), to the last character. Pages are read with what they declare, as sources are;
the second figure is for the same files with nothing declared.
"""

from __future__ import annotations

import argparse
import codecs
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from assets.sources.formats.charset import declared_in_markup, decode_text, find_charset

PAGES = frozenset({".html", ".htm", ".xml"})


def folder_charsets(name: str) -> list[str]:
    """Return the codecs that a folder's name means, its own first; none if Python has none."""
    parts = name.split("-")
    for length in range(len(parts), 0, -1):
        label = "-".join(parts[:length])
        try:
            codec = codecs.lookup(label).name
        except LookupError:
            continue
        wider = find_charset(label)
        return [codec] if wider is None else [codec, wider]
    return []


def is_right(text: str, data: bytes, charsets: list[str]) -> bool:
    """Tell whether `text` is `data` in one of the charsets, byte-order marks aside."""
    return any(
        data.decode(charset, "replace").removeprefix("\ufeff") == text for charset in charsets
    )


def measure_folder(folder: Path) -> dict[str, object]:
    """Return the row of one folder: its files, how many are right, and what others were taken for.

    Its figures are `files`, `right` and `right_undeclared`.
    """
    charsets = folder_charsets(folder.name)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    right = undeclared = 0
    taken_for: list[str] = []
    for path in files:
        data = path.read_bytes()
        declared = [declared_in_markup(data)] if path.suffix.lower() in PAGES else []
        decoded = decode_text(data, declared)
        fits = is_right(decoded.text, data, charsets)
        right += fits
        undeclared += (
            fits if not any(declared) else is_right(decode_text(data).text, data, charsets)
        )
        if not fits:
            taken_for.append(f"{path.name}: {decoded.charset}")
    return {
        "folder": folder.name,
        "files": len(files),
        "right": right,
        "right_undeclared": undeclared,
        "wrong": "; ".join(taken_for[:3]) if charsets else "Python has no such codec",
    }


def print_table(base: Path, write: Callable[[str], object] = print) -> int:
    """Print a line per folder of `base` and the sums; return the number of folders all right.

    Raises:
        SystemExit: `base` holds no folders.
    """
    folders = sorted(path for path in base.iterdir() if path.is_dir())
    if not folders:
        raise SystemExit(f"{base} holds no folders named after charsets")
    table = pd.DataFrame([measure_folder(folder) for folder in folders])
    write(table.to_string(index=False))
    whole = table.right == table.files
    write(
        f"\n{int(whole.sum())} of {len(table)} folders are right in every file "
        f"({int((table.right_undeclared == table.files).sum())} with nothing declared); "
        f"{int(table.right.sum())} of {int(table.files.sum())} files "
        f"({int(table.right_undeclared.sum())})"
    )
    return int(whole.sum())


def main() -> None:
    """Print the table of the folder named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="folder of folders named after charsets")
    print_table(parser.parse_args().folder)


if __name__ == "__main__":
    main()
