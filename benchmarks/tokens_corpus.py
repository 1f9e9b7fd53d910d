"""Distinct texts of any machine: the standard library's files, and those of installed packages."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

MAX_TEXT = 1 << 20
PIECE_CHARACTERS = 2000
"""Least length of a short document; it goes on to the end of its line."""
FORBIDDEN = "<|"
"""Special-token strings: some of the others turn them into special tokens."""


def texts(num_bytes: int) -> Iterator[str]:
    """Yield texts of up to `num_bytes` UTF-8 bytes together, in order of path."""
    seen: set[str] = set()
    left = num_bytes
    for path in _files():
        data = path.read_bytes()[:MAX_TEXT]
        # Dolma takes white space off both ends; the others leave texts as they are.
        text = data.decode(errors="ignore").strip()
        if not text or text in seen or FORBIDDEN in text or "\0" in text:
            continue
        left -= len(data)
        if left < 0:
            return
        seen.add(text)
        yield text


def _files() -> Iterator[Path]:
    places = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))
    for place in places:
        for suffix in ("*.py", "*.rst", "*.txt", "*.md"):
            yield from sorted(Path(place).rglob(suffix))


def write_corpus(path: Path, num_bytes: int) -> int:
    """Write the texts as JSON lines; return the bytes of text in them."""
    return _write(path, texts(num_bytes))


def write_pieces(path: Path, corpus: Path) -> int:
    """Write the texts of a corpus cut into short documents; return the bytes of text in them."""
    with corpus.open(encoding="utf-8") as file:
        return _write(path, _pieces(json.loads(line)["text"] for line in file))


def _pieces(whole: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for text in whole:
        start = 0
        while start < len(text):
            end = text.find("\n", start + PIECE_CHARACTERS) + 1 or len(text)
            piece = text[start:end].strip()
            start = end
            if piece and piece not in seen:
                seen.add(piece)
                yield piece


def _write(path: Path, written: Iterable[str]) -> int:
    total = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(written):
            total += len(text.encode())
            record = {"id": str(number), "text": text, "source": "texts", "added": "2026-01-01"}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return total
