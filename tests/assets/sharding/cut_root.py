"""A root whose texts have the lengths that a test sets, and what is read back from its shards."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from assets.manifest import Manifest
from assets.sharding.index import ShardIndex
from assets.sharding.shards import materialize_shards
from assets.sharding.spans import find_spans
from assets.tokenizing.token_parts import read_doc_ids
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer
from olmo_loader.shard_format import open_docs
from tests.assets.tokenizing.kept_root import Landed, part_ids

WORDS = "abcdefg"


def text(num_tokens: int) -> str:
    """Return a text that has `num_tokens` tokens, its EOS among them."""
    return " ".join(WORDS[number % 7] for number in range(num_tokens - 1))


FIRST: Landed = {
    ("s", "a"): [text(6), text(5), None, text(5)],
    ("s", "b"): [text(12), text(2)],
    ("t", "x"): [text(3)],
}
"""What the first generation lands."""


def tokenize(kept, **settings):
    made = kept.settings(**settings)
    materialize_tokenizer(kept.root, made, kept.log)
    materialize_tokens(kept.root, made, kept.log)
    return made


def materialize(kept, **settings):
    return materialize_shards(kept.root, tokenize(kept, **settings), kept.log)


def shard_lengths(kept) -> dict[str, list[list[int]]]:
    """Return, for each source, the document lengths of its shards in survivor order."""
    found: dict[str, list[list[int]]] = {}
    for record in ShardIndex(kept.root).records:
        path = tokens_path(kept, record)
        starts = open_docs(path, record["n_docs"])["start"].astype(int)
        lengths = np.diff([*starts, record["n_tokens"]]).tolist()
        found.setdefault(record["source"], []).append(lengths)
    return found


def tokens_path(kept, record) -> Path:
    return Path(kept.root.url) / "dataset" / str(record["shard"])


def dataset_files(kept) -> dict[str, bytes]:
    """Return the published files but the index, whose numbers depend on the runs."""
    folder = Path(kept.root.url) / "dataset"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent.name != "index"
    }


def check_contents(kept):
    """Every document in a shard has the ids that its token part has."""
    parts: dict[bytes, list[int]] = {}
    for entry in Manifest.load(kept.root, "tokens").entries():
        names = read_doc_ids(kept.root, entry.objects["data"])
        parts |= dict(zip(names, part_ids(kept.root, entry), strict=True))
    records = ShardIndex(kept.root).records
    spans = find_spans(kept.root, records, parts)
    by_shard = {
        record["shard"]: np.fromfile(tokens_path(kept, record), "<u2") for record in records
    }
    for doc_id, ((shard, start, end),) in spans.items():
        assert by_shard[shard][start:end].tolist() == parts[doc_id]
    return parts, spans
