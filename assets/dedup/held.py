"""Which kept documents of a root an external set holds too: a question, nothing is changed.

The answer is that of the `against` setting, without its effect: each kept document is compared with
all external ones, exactly and by verified similarity. Memory is one part's signatures, and what the
external set takes while it is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from assets.dedup.decide import EXACT, Arrivals, decide
from assets.dedup.deciding import decision_limits
from assets.dedup.external import ExternalSet, prepare_external
from assets.dedup.generation import STAGE
from assets.dedup.minhash import SignatureSpec, band_keys
from assets.dedup.runs import KeptRuns, Run
from assets.dedup.shingles import ShingleSets
from assets.dedup.signatures import (
    STAGE as SIGNATURES,
    binary_rows,
    signature_spec,
    stored_sets,
    stored_signatures,
)
from assets.errors import ConfigurationError, StageError
from assets.manifest import Manifest, PartEntry
from assets.root import Root
from assets.settings.dedup import DedupSettings, TextSetSettings
from assets.settings.schema import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A kept document that an external set holds."""

    doc_id: bytes
    source: str
    similarity: float
    is_exact: bool
    """Their normalised texts are equal."""
    set_name: str
    item_id: str


def find_held(root: Root, settings: Settings, sets: tuple[TextSetSettings, ...]) -> Iterator[Held]:
    """Yield the kept documents that are in the sets, part by part in the order of the manifest.

    Raises:
        ConfigurationError: a set cannot be read, or signatures were made with other settings.
        StageError: nothing of this root has been deduplicated.
    """
    entries = [entry for entry in Manifest.load(root, STAGE).entries() if entry.source]
    if not entries:
        raise StageError(f"{root.url}: nothing has been deduplicated; run `olmo-data run` first")
    spec = signature_spec(settings.dedup)
    external = prepare_external(root, settings, sets, spec)
    assert external is not None
    run = external.open(root)
    signatures = {
        (entry.source, entry.part): entry for entry in Manifest.load(root, SIGNATURES).entries()
    }
    for entry in entries:
        signature = signatures[entry.source, entry.part]
        yield from _held_in_part(root, settings.dedup, entry, signature, spec, external, run)


def _held_in_part(
    root: Root,
    dedup: DedupSettings,
    unique: PartEntry,
    signature: PartEntry,
    spec: SignatureSpec | None,
    external: ExternalSet,
    run: Run,
) -> Iterator[Held]:
    keep = np.asarray(root.read_table(unique.objects["data"], ["keep"])["keep"])
    table = root.read_table(signature.objects["data"])
    _check_made_alike(root, signature, table, spec)
    table = table.filter(pa.array(keep[np.asarray(table["row"])]))
    decisions = decide(_arrivals(table, spec), KeptRuns((run,)), **decision_limits(dedup))
    survivors = decisions.survivor
    hits = np.flatnonzero((survivors >= 0) & (survivors < external.count))
    numbers, inverse = np.unique(survivors[hits], return_inverse=True)
    items = root.read_rows(external.objects["items"], numbers.tolist()) if len(numbers) else []
    ids = binary_rows(table["doc_id"])
    for at, which in zip(hits.tolist(), inverse.tolist(), strict=True):
        yield Held(
            doc_id=ids[at].tobytes(),
            source=unique.source,
            similarity=float(decisions.similarity[at]),
            is_exact=bool(decisions.rule[at] == EXACT),
            set_name=items[which]["set_name"],
            item_id=items[which]["item_id"],
        )


def _arrivals(table: pa.Table, spec: SignatureSpec | None) -> Arrivals:
    hashes = binary_rows(table["exact_hash"])
    if spec is None:
        nothing = ShingleSets(np.zeros(len(hashes) + 1, np.int64), np.empty(0, np.uint32))
        return Arrivals(hashes=hashes, keys=np.empty((len(hashes), 0), np.uint64), sets=nothing)
    keys = band_keys(stored_signatures(table), spec)
    return Arrivals(hashes=hashes, keys=keys, sets=stored_sets(table))


def _check_made_alike(
    root: Root, signature: PartEntry, table: pa.Table, spec: SignatureSpec | None
) -> None:
    about = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    wanted = {} if spec is None else spec.metadata
    other = sorted(name for name, value in wanted.items() if about.get(name) != value)
    if other:
        raise ConfigurationError(
            f"{root.url}: {signature.objects['data'].name} was made with another "
            f"{', '.join(other)} than dedup.minhash says; set it back, or run `olmo-data run` first"
        )
