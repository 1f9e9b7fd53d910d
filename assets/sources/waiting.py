"""What the next landing would find: files that are new, changed or gone since the last one."""

from __future__ import annotations

from dataclasses import dataclass

from assets.settings.schema import Settings
from assets.settings.sources import SourceSettings
from assets.sources.hash_cache import HashCache
from assets.sources.landing import hash_found
from assets.sources.landing_log import LandingLog
from assets.sources.patterns import find_files


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """Files of one source beside what the log says of them."""

    found: int
    new: int
    """Not landed under their path; a moved file is one of these and one that is gone."""
    changed: int
    """Landed with other bytes."""
    gone: int
    """Landed and no longer there; their documents stay live."""


def count_waiting(source: SourceSettings, settings: Settings, log: LandingLog) -> Waiting:
    """Compare a source's files with the log; of those of the same size hashes are compared.

    New files are not read, others only if this machine has not hashed them since they changed.

    Raises:
        LandingError: the files cannot be listed or read.
    """
    landed = {path: item for (name, path), item in log.landed.items() if name == source.name}
    found = {item.landed_path: item for item in find_files(source, settings)}
    changed = 0
    with HashCache.open() as cache:
        for path in sorted(found.keys() & landed.keys()):
            scanned = hash_found(found[path], cache)
            changed += scanned.sha256 not in (None, landed[path].sha256)
    return Waiting(
        found=len(found),
        new=len(found.keys() - landed.keys()),
        changed=changed,
        gone=len(landed.keys() - found.keys()),
    )
