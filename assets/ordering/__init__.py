"""From shards to a published data set: plan, order and provenance, proved before they are seen.

::

    published.py    what a data set has published: dataset.json, the shard index, the takedown log
    plan_files.py   a snapshot of the index becomes plan.json, shards.jsonl, global_indices.npy
    provenance.py   provenance.csv: which instances come from which shard and source, and the proof
    accounting.py   every token of every source: trained on, shard tail, pending, masked
    withdrawals.py  documents that a changed file withdrew, written to the takedown log
    checks.py       the checks of a publication: each has a name, numbers and a verdict
    publish.py      `publish_dataset`: plan, check, and only then replace dataset.json
    asset.py        `training_dataset`
"""
