"""The order in which the documents of one generation are looked at: who comes first is kept.

Documents are gathered in the order of priority, source, path and record. A policy sorts them by one
value, the best first, and leaves equal ones as they are; a value that is missing comes last. With
`url`, the fetches of one url change places among themselves so that the newest comes first.

Between kept documents of earlier generations the order stays that of gathering: a policy decides
within its generation only. Memory: about 50 bytes for each document of the generation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from assets.dedup.arrivals import ArrivedGeneration, PartRows
from assets.manifest import PartEntry
from assets.root import Root
from assets.settings.dedup import DedupSettings

_MISSING = np.iinfo(np.int64).min


def decision_order(
    root: Root,
    dedup: DedupSettings,
    parts: Sequence[tuple[PartEntry, PartEntry]],
    arrived: ArrivedGeneration,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the positions of arrivals in the order of decision, and the number of each url.

    Args:
        root: where the parts lie.
        dedup: policy and whether urls count.
        parts: (clean entry, signatures entry) pairs in the order of `arrived.parts`.
        arrived: the generation.

    Returns:
        An int64 permutation, null if it would change nothing; int64 by arrival, -1 without a url,
        null where urls do not count.
    """
    if dedup.policy == "priority" and not dedup.url:
        return None, None
    pairs = list(zip(arrived.parts, (signature for _, signature in parts), strict=True))
    order = np.arange(len(arrived.arrivals))
    if dedup.policy != "priority":
        values = _joined([_policy_values(root, dedup.policy, *pair) for pair in pairs])
        order = np.argsort(-values, kind="stable")
    if not dedup.url:
        return order, None
    urls = _numbered(_joined([_url_hashes(root, part) for part, _ in pairs]))
    fetched = _joined([_fetch_times(root, part) for part, _ in pairs])
    return newest_first(order, urls, fetched), urls


def newest_first(order: np.ndarray, urls: np.ndarray, fetched: np.ndarray) -> np.ndarray:
    """Let the documents of each url change places in an order so that the newest comes first.

    Args:
        order: positions of documents, int64.
        urls: by position, the number of the url, or -1.
        fetched: by position, when it was fetched; int64.
    """
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    with_url = np.flatnonzero(urls >= 0)
    places = with_url[np.lexsort((ranks[with_url], urls[with_url]))]
    # Equal times keep their order; the least int64 has no negative, so bits are inverted.
    members = with_url[np.lexsort((ranks[with_url], ~fetched[with_url], urls[with_url]))]
    found = ranks.copy()
    found[members] = ranks[places]
    return np.argsort(found)


def _policy_values(root: Root, policy: str, part: PartRows, signature: PartEntry) -> np.ndarray:
    """Return what a part's documents are sorted by, float64; the highest comes first."""
    if policy == "newest":
        return _fetch_times(root, part).astype(np.float64)
    if policy == "longest":
        table = root.read_table(signature.objects["data"], ["row", "num_bytes"])
        is_here = np.isin(np.asarray(table["row"]), part.rows)
        return np.asarray(table["num_bytes"], np.float64)[is_here]
    signals = root.read_table(part.clean.objects["data"], ["signals"])["signals"]
    quality = pc.fill_null(pc.struct_field(signals, "quality"), -np.inf)
    found: np.ndarray = np.asarray(quality, np.float64)[part.rows]
    return found


def _fetch_times(root: Root, part: PartRows) -> np.ndarray:
    """Return microseconds since 1970, int64; where unknown, before everything else."""
    column = root.read_table(part.clean.objects["data"], ["fetched_at"])["fetched_at"]
    micros = pc.fill_null(column.cast(pa.int64()), _MISSING)
    found: np.ndarray = np.asarray(micros, np.int64)[part.rows]
    return found


def _url_hashes(root: Root, part: PartRows) -> np.ndarray:
    """Return a hash of each url without its fragment, 0 where there is none; int64."""
    column = root.read_table(part.clean.objects["data"], ["url"])["url"].take(pa.array(part.rows))
    bare = pc.list_element(pc.split_pattern(pc.fill_null(column, ""), "#", max_splits=1), 0)
    hashes = [xxhash.xxh3_64_intdigest(url.encode()) if url else 0 for url in bare.to_pylist()]
    return np.array(hashes, np.uint64).view(np.int64)


def _numbered(hashes: np.ndarray) -> np.ndarray:
    """Return the number of each distinct hash, -1 for 0."""
    _, numbers = np.unique(hashes, return_inverse=True)
    return np.where(hashes == 0, -1, numbers).astype(np.int64)


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
