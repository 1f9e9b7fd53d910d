"""A plan that reads what an OLMo mix lists, in the order in which OLMo numbers it.

The files of the mix are shards of the data set, listed several times where they are repeated. The
plan's order is OLMo's permutation of as many instances with the mix's seed, so a run of OLMo over
the same files and a run of our loader read the same instances at every position.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from assets.errors import ConfigurationError, RootError
from assets.ordering.drafts import with_id
from assets.ordering.olmo_mix import OlmoMix, shard_key
from assets.ordering.plan_checks import check_mixed_order, check_plan_provenance
from assets.ordering.plan_files import BuiltPlan, publish_files, write_mixed
from assets.ordering.published import (
    in_dataset,
    loader_errors,
    open_plan,
    read_published,
    read_shard_index,
)
from assets.ordering.published_shards import check_shards_of
from assets.root import Root
from assets.settings.schema import Settings
from olmo_loader.dataset_file import DATASET_FILE
from olmo_loader.plan import plan_name
from olmo_loader.plan_identity import train_records
from olmo_loader.plan_writing import describe_plan
from olmo_loader.shard_index import in_plan_order


def publish_mix(root: Root, settings: Settings, mix: OlmoMix) -> BuiltPlan:
    """Make the plan of a mix and add it to those of the data set; the current one stays.

    Args:
        root: its shards are what the mix lists, by any address.
        settings: sequence length and seed where the mix names none; licences.
        mix: see `read_mix`.

    Raises:
        ConfigurationError: nothing is published, or the mix lists files that are no shards of it.
        IntegrityError: the plan is not what it should be, or a shard of the snapshot is not whole;
            nothing has changed then.
        RootError: another run published meanwhile.
    """
    published = read_published(root)
    if published is None:
        raise ConfigurationError(f"{root.url}: no data set has been published yet")
    index = read_shard_index(root).log
    assert index is not None, "read with its log"
    records = index.shards(published.file.snapshot.seq)
    shards = train_records(in_plan_order(records))
    with loader_errors(root):
        described = describe_plan(
            records,
            snapshot=published.file.snapshot,
            generation=published.file.generation,
            sequence_length=mix.sequence_length or settings.ordering.sequence_length,
            seed=settings.ordering.seed if mix.seed is None else mix.seed,
        )
    described = with_id(shards, described | _uses(described, shards, find_uses(mix, shards)))
    plan_id = described["plan_id"]
    is_new = root.storage.size(in_dataset(plan_name(plan_id))) is None
    if is_new:
        licences = {source.name: source.licence for source in settings.sources}
        with root.workspace() as folder:
            write_mixed(folder, described, records, licences)
            publish_files(root, plan_id, folder)
    plan = open_plan(root, plan_id)
    check_mixed_order(plan, rebuild=True)
    check_plan_provenance(plan)
    check_shards_of(root, plan, published)
    if plan_id not in published.file.plans:
        file = dataclasses.replace(published.file, plans=(*published.file.plans, plan_id))
        name = in_dataset(DATASET_FILE)
        if not root.storage.replace(name, file.to_bytes(), expected=published.version):
            raise RootError(f"{root.url}: another run published meanwhile; run the command again")
    return BuiltPlan(plan=plan, is_new=is_new)


def find_uses(mix: OlmoMix, shards: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the number of the shard that each file of a mix is.

    Raises:
        ConfigurationError: a file is none, or could be several.
    """
    numbers = {shard_key(record["shard"]): number for number, record in enumerate(shards)}
    uses, missing = [], []
    for path in mix.paths:
        # A shard's name is its last three parts: shards/<source>/<file>.
        number = numbers.get("/".join(shard_key(path).split("/")[-3:]))
        if number is None:
            missing.append(path)
        else:
            uses.append(number)
    if missing:
        raise ConfigurationError(
            f"{mix.where}: {len(missing):,d} of {len(mix.paths):,d} files are no training shards "
            f"of the published data set, the first {missing[0]}; olmo-data index list names them"
        )
    return uses


def _uses(
    described: Mapping[str, Any], shards: Sequence[Mapping[str, Any]], uses: list[int]
) -> dict[str, Any]:
    length = described["segments"][0]["sequence_length"]
    count = sum(shards[number]["n_tokens"] // length for number in uses)
    if count == 0:
        raise ConfigurationError(
            f"no file of the mix holds an instance of {length:,d} tokens; lower the sequence length"
        )
    copies = [float(uses.count(number)) for number in range(len(shards))]
    return {"uses": uses, "numbered": copies, "num_instances": count}
