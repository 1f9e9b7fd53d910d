"""Check the shards under a plan that is made outside a publication: an extension, OLMo's mix."""

from __future__ import annotations

from assets.ordering.held_out import check_held_out
from assets.ordering.published import Published, dataset_dir, read_shard_index
from assets.ordering.shard_checks import check_shards
from assets.root import Root
from olmo_loader.plan import Plan


def check_shards_of(root: Root, plan: Plan, published: Published) -> None:
    """Check that the published shards are there, and that the plan trains on none held out.

    Their bytes were read when they were published; now sizes and headers are compared.

    Raises:
        IntegrityError: names a shard that is missing, of another size, or held out.
    """
    index = read_shard_index(root).log
    assert index is not None, "read with its log"
    last = published.file.snapshot.seq
    records = index.shards(last)
    check_shards(dataset_dir(root), records, read_after=last, processes=1)
    check_held_out(dataset_dir(root), plan, records, read_after=last)
