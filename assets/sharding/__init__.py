"""Sharding: token parts become shards of a bounded number of tokens, cut at document boundaries.

::

    cut.py        where a group is cut, from lengths alone; a function of the log prefix
    groups.py     the documents of a group in survivor order: which parts and rows they are
    gather.py     the documents of one shard, streamed from token parts
    shard_task.py one shard made and published, or taken up where a killed run left it
    index.py      the shard index of a root: read, and append so that nothing is added twice
    shards.py     the stage
    verify_shards.py  ids in shards against the token parts
    spans.py      where documents stand in shards, and which are pending
"""
