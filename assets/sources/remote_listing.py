"""Find what globs over urls name: by a bucket's listing, or by the links of a server's index pages.

A landed path is the path below the glob's wildcard-free folder, as it is for files of this machine.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from assets.errors import LandingError
from assets.sources.allowed_hosts import HostGuard
from assets.sources.path_globs import (
    expand_braces,
    has_wildcard,
    match_part,
    matches,
    split_wildcards,
)
from assets.sources.stored_files import read_page, remote_stamp
from assets.sources.stored_objects import SourceObjects
from olmo_loader.errors import ConfigurationError

MOST_PAGE_BYTES = 16 << 20
MOST_PAGES = 10_000
MOST_DEPTH = 64
MOST_FILES = 1_000_000
"""Files that one pattern may name: each takes half a kilobyte while it is landed."""
MOST_SECONDS = 1800
"""Time for the index pages of one pattern, so that slow servers end as an error."""
_LINK = re.compile(
    r"""<a\s[^<>]{0,4000}?\bhref\s{0,9}=\s{0,9}(?:"([^"<>]{1,4000})"|'([^'<>]{1,4000})'|([^\s"'<>]{1,4000}))""",
    re.IGNORECASE,
)
_PARALLEL = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteFile:
    """A file found at a url."""

    landed_path: str
    url: str
    size: int
    stamp: str | None
    """Changes with the content; None if the server tells nothing that does."""


@dataclass(slots=True)
class _Budget:
    """What one pattern may still cost; each method raises `LandingError` when it is used up."""

    pages: int = field(default_factory=lambda: MOST_PAGES)
    files: int = field(default_factory=lambda: MOST_FILES)
    until: float = field(default_factory=lambda: time.monotonic() + MOST_SECONDS)

    def take_page(self, folder: str) -> None:
        self.take_time(folder)
        self.pages -= 1
        if self.pages < 0:
            raise LandingError(
                f"{folder}: more than {MOST_PAGES:,d} index pages; narrow the pattern"
            )
        if folder.count("/") > MOST_DEPTH:
            raise LandingError(f"{folder}: folders more than {MOST_DEPTH} levels deep")

    def take_files(self, folder: str, count: int) -> None:
        self.files -= count
        if self.files < 0:
            raise LandingError(
                f"{folder}: more than {MOST_FILES:,d} names; make it several sources"
            )

    def take_time(self, folder: str) -> None:
        if time.monotonic() > self.until:
            raise LandingError(
                f"{folder}: the listing took more than {MOST_SECONDS:,d} s; narrow the pattern"
            )


def find_remote(pattern: str, *, source: str) -> list[RemoteFile]:
    """Return the files that a url with wildcards names.

    Raises:
        LandingError: the place may not be read, or cannot be; a server lists no such folder; a name
            cannot be a path.
    """
    try:
        if urlsplit(pattern).scheme == "s3":
            return [file for item in expand_braces(pattern) for file in _find_objects(item)]
        urls = [url for item in expand_braces(pattern) for url in _find_links(item)]
        with ThreadPoolExecutor(_PARALLEL) as pool:
            return list(pool.map(_ask, urls))
    except (OSError, LandingError) as error:
        raise LandingError(f"source {source!r}: {error}") from error


def _checked(path: list[str]) -> str:
    """Return the landed path of the parts of a remote name."""
    landed_path = "/".join(path)
    parts = landed_path.split("/")
    is_plain = not any(part in ("", ".", "..") for part in parts) and landed_path.isprintable()
    if not is_plain or "\\" in landed_path:
        raise LandingError(
            f"a remote file is named {landed_path!r}, which is no plain path; "
            "rename it, or keep it out of `paths`"
        )
    return landed_path


def _find_objects(pattern: str) -> list[RemoteFile]:
    """Return the objects of a bucket that a pattern names, from one listing of its folder."""
    bucket, *parts = pattern.removeprefix("s3://").split("/")
    folder, rest = split_wildcards(parts)
    place = "s3://" + "/".join([bucket, *folder])
    HostGuard().check_url(place)
    found: list[RemoteFile] = []
    budget = _Budget()
    for entry in _list_bucket(bucket, "/".join([*folder, ""]), budget):
        key, size = entry["Key"], int(entry["Size"])
        path = key.split("/")[len(folder) :]
        if not key.endswith("/") and matches(path, rest):
            budget.take_files(place, 1)
            stamp = f"{size}-{entry.get('ETag')}-{entry.get('LastModified')}"
            url = f"s3://{bucket}/{key}"
            found.append(RemoteFile(landed_path=_checked(path), url=url, size=size, stamp=stamp))
    return found


def _list_bucket(bucket: str, prefix: str, budget: _Budget) -> Iterator[dict[str, Any]]:
    """Yield what S3 lists below a prefix, page by page: a bucket can hold more than memory does."""
    place = f"s3://{bucket}/{prefix}"
    objects = SourceObjects()
    token: str | None = None
    tokens: set[str] = set()
    while True:
        budget.take_time(place)
        try:
            page = objects.list_page(bucket, prefix, token)
        except (OSError, ConfigurationError) as error:
            raise LandingError(f"{place} cannot be listed: {error}") from error
        if "IsTruncated" not in page:
            raise LandingError(f"{place} cannot be listed: the answer is no listing of a bucket")
        yield from page.get("Contents", ())
        if not page["IsTruncated"]:
            return
        token = page.get("NextContinuationToken")
        if not token or token in tokens:
            said = f"the token {token[:60]!r} again" if token else "no token"
            raise LandingError(f"{place} cannot be listed: {said} for the pages that follow")
        tokens.add(token)


def _ask(link: tuple[str, str]) -> RemoteFile:
    url, landed_path = link
    size, stamp = remote_stamp(url)
    return RemoteFile(landed_path=landed_path, url=url, size=size, stamp=stamp)


def _find_links(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield (url, landed path) of what a pattern names; folders with wildcards are listed."""
    # In a url a question mark is no wildcard: it begins the query, which is refused.
    HostGuard().check_url(pattern)
    parts = urlsplit(pattern)
    base = f"{parts.scheme}://{parts.netloc}/"
    folder, rest = split_wildcards(parts.path.lstrip("/").split("/"))
    start = base + "".join(f"{_quoted(name)}/" for name in folder)
    budget = _Budget()
    for url, path in _walk(start, [], rest, budget):
        yield url, _checked(path)


def _walk(
    folder: str, path: list[str], pattern: list[str], budget: _Budget
) -> Iterator[tuple[str, list[str]]]:
    """Yield what lies at `folder` (a url that ends with `/`) and below by the rest of a pattern."""
    part, *rest = pattern
    if part == "**":
        yield from (
            (url, [*path, *below])
            for url, below in _everything(folder, budget)
            if matches(below, pattern)
        )
    elif not has_wildcard(part):
        yield from _descend(folder, [*path, unquote(part)], rest, budget)
    else:
        for name, is_folder in _links(folder, budget):
            if match_part(name, part) and is_folder == bool(rest):
                yield from _descend(folder, [*path, name], rest, budget)


def _descend(
    folder: str, path: list[str], rest: list[str], budget: _Budget
) -> Iterator[tuple[str, list[str]]]:
    """Yield the file `path` ends with, or what the rest of a pattern names below that folder."""
    url = f"{folder}{_quoted(path[-1])}"
    if rest:
        yield from _walk(f"{url}/", path, rest, budget)
    else:
        yield url, path


def _everything(folder: str, budget: _Budget) -> Iterator[tuple[str, list[str]]]:
    """Yield (url, path below `folder`) of all files below it that are not hidden."""
    for name, is_folder in _links(folder, budget):
        if is_folder and not name.startswith("."):
            for url, path in _everything(f"{folder}{_quoted(name)}/", budget):
                yield url, [name, *path]
        elif not is_folder:
            yield f"{folder}{_quoted(name)}", [name]


def _links(folder: str, budget: _Budget) -> list[tuple[str, bool]]:
    """Return (name, is a folder) of what an index page links to directly below itself, sorted.

    Pages that link to ever new folders are the server's; `budget` holds how many may still be read.
    """
    budget.take_page(folder)
    address, page = read_page(folder, MOST_PAGE_BYTES)
    found = set()
    for match in _LINK.finditer(page.decode("utf-8", "replace")):
        link = unescape(match[1] or match[2] or match[3] or "").strip()
        with contextlib.suppress(ValueError):  # not a url at all
            target = urljoin(address, link)
            if not target.startswith(address) or urlsplit(target).query:
                continue
            name = target[len(address) :].partition("#")[0]
            plain, is_folder = name.removesuffix("/"), name.endswith("/")
            if plain and "/" not in plain:
                found.add((unquote(plain), is_folder))
    budget.take_files(folder, len(found))
    return sorted(found)


def _quoted(name: str) -> str:
    return quote(unquote(name), safe="!$&'()*+,;=:@~")
