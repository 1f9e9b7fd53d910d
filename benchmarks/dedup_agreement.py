"""Whether each preset finds what brute force finds, over real texts with many near-copies.

    .venv/bin/python -m benchmarks.dedup_agreement

Licence texts of the installed packages, and with SPDX_LICENSE_LIST (see `dedup_corpus.licences`)
those of the SPDX list, and made texts, some of them copies with up to 11 exchanged words. Brute
force compares every pair. Recall: of the pairs of Jaccard similarity >= .85 (the threshold .8 and
.05), those of which at most one document is kept. Precision: of the dropped documents, those whose
survivor has a similarity of at least .8.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import scipy.sparse  # type: ignore[import-untyped]

from assets.dedup.decide import KEPT, Arrivals, decide
from assets.dedup.exact import exact_hashes
from assets.dedup.kept import NothingKept
from assets.dedup.minhash import band_keys, signatures
from assets.dedup.shingles import ShingleSets, shingle_sets
from assets.dedup.signatures import signature_spec
from assets.settings.dedup import DedupSettings, MinHashSettings
from benchmarks.dedup_corpus import licences, texts

THRESHOLD, MARGIN = 0.8, 0.05
PRESETS: tuple[Literal["classic", "datatrove", "dolma3"], ...] = ("classic", "datatrove", "dolma3")


def all_similarities(sets: ShingleSets) -> np.ndarray:
    """Return the Jaccard similarity of every pair, (documents, documents) float64."""
    _, columns = np.unique(sets.values, return_inverse=True)
    ones = np.ones(len(columns), np.int32)
    members = scipy.sparse.csr_matrix((ones, columns, sets.offsets))
    shared = np.asarray((members @ members.T).todense(), np.float64)
    union = sets.sizes[:, None] + sets.sizes[None, :] - shared
    found: np.ndarray = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return found


def main() -> None:
    """Print recall and precision of every preset."""
    found = [*licences(), *texts(1500, num_words=200)]
    column = pa.array(found, pa.large_string())
    sets = shingle_sets(column)
    similarity = all_similarities(sets)
    clear = np.argwhere(np.triu(similarity >= THRESHOLD + MARGIN, 1))
    print(f"{len(found):,d} texts, {len(clear):,d} pairs of similarity >= {THRESHOLD + MARGIN}")
    print(f"{'preset':12} {'recall':>8} {'precision':>10} {'dropped':>9}")
    for preset in PRESETS:
        spec = signature_spec(DedupSettings(minhash=MinHashSettings(preset=preset)))
        assert spec is not None
        arrivals = Arrivals(
            hashes=exact_hashes(column), keys=band_keys(signatures(sets, spec), spec), sets=sets
        )
        made = decide(
            arrivals, NothingKept(), exact=True, threshold=THRESHOLD, max_kept_per_bucket=256
        )
        kept = made.rule == KEPT
        dropped = np.flatnonzero(~kept & (sets.sizes > 0))
        right = similarity[dropped, made.survivor[dropped]] >= THRESHOLD
        recall = 1.0 - (kept[clear[:, 0]] & kept[clear[:, 1]]).mean()
        print(f"{preset:12} {recall:8.4f} {right.mean():10.4f} {len(dropped):9,d}")


if __name__ == "__main__":
    main()
