"""Pages that once could not be extracted in time: what was decided then is decided again.

Whether a page takes too long depends on the machine, so the first such verdict is kept in the root,
under the page's content hash and the extractor's version, and every later run takes it over. To
give a page another chance, remove its file and clean into another root, or change the extractor.
"""

from __future__ import annotations

import json

from assets.canonical import canonical_json, fingerprint
from assets.cleaning.pages.process import CRASHED, TIMEOUT, Failure
from assets.errors import IntegrityError
from assets.root import Root

FOLDER = "verdicts/extraction"
STORED_RULES = (TIMEOUT, CRASHED)


class PageVerdicts:
    """The stored verdicts of one extractor version; of no root, they live as long as this."""

    def __init__(self, extractor: str, root: Root | None = None) -> None:
        self._extractor = extractor
        self._root = root
        self._folder = f"{FOLDER}/{fingerprint(extractor=extractor)[:16]}/"
        self._found: dict[str, Failure] = {}
        """By content hash in hex."""
        if root is not None:
            for name, _ in root.storage.list(self._folder):
                content = name.removeprefix(self._folder).removesuffix(".json")
                self._found[content] = self._read(root, name)

    def find(self, content_hash: bytes) -> Failure | None:
        """Return the verdict on a page, if there is one."""
        return self._found.get(content_hash.hex())

    def store(self, content_hash: bytes, failure: Failure) -> Failure:
        """Keep a verdict; return the one that holds, which may be another writer's."""
        content = content_hash.hex()
        if self._root is not None:
            name = f"{self._folder}{content}.json"
            record = {
                "content_hash": content,
                "extractor": self._extractor,
                "reason": failure.reason,
                "rule": failure.rule,
            }
            if not self._root.storage.create(name, canonical_json(record)):
                failure = self._read(self._root, name)
        self._found[content] = failure
        return failure

    def _read(self, root: Root, name: str) -> Failure:
        try:
            record = json.loads(root.storage.read(name))
            rule, reason = record["rule"], record["reason"]
        except (ValueError, KeyError, TypeError) as error:
            raise IntegrityError(
                f"{root.url}: {name} is no stored verdict ({error}); remove it to decide again"
            ) from error
        if rule not in STORED_RULES:
            raise IntegrityError(f"{root.url}: {name} names the rule {rule!r}, which is not stored")
        return Failure(rule, str(reason))
