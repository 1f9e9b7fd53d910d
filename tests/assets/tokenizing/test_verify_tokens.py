"""Tokens decode to their texts; a single wrong id is found and named."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from assets.errors import IntegrityError
from assets.manifest import Manifest, PartEntry, commit
from assets.settings.tokens import TokenizerSettings
from assets.sharding.groups import complete_groups
from assets.sharding.index import ShardIndex
from assets.sharding.shards import materialize_shards
from assets.sharding.verify_shards import compare_shard
from assets.tokenizing.kept_parts import kept_tasks
from assets.tokenizing.part_ids import IdsWriter, TokenPart
from assets.tokenizing.token_parts import iter_token_rows
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer, read_pin
from assets.tokenizing.verify_tokens import TokenVerifier
from tests.assets.tokenizing.kept_root import KeptRoot
from tests.shared_data import shared_folder

TEXTS = [
    *("naïve 中文 <|endoftext|> e\u0301 text", None, "", "  two  spaces "),
    *("x" * 50, "7", "a\r\nb\x00"),
]
NAMES = ("allenai_dolma2.json", "allenai_gpt-neox-olmo-dolma-v1_5.json", None)


@pytest.fixture(params=NAMES)
def made(request, tmp_path):
    kept = KeptRoot(tmp_path)
    texts: Any = TEXTS if request.param else ["a b", None, "", "c c c", "unknown d"]
    kept.land({("s", "x"): texts, ("t", "x"): texts[::-1]})
    wanted = kept.settings().tokenizer
    if request.param:
        wanted = TokenizerSettings(path=str(shared_folder("tokenizers", request.param)))
    wanted = dataclasses.replace(wanted, max_document_tokens=6, long_documents="split")
    settings = kept.settings(tokenizer=wanted)
    materialize_tokenizer(kept.root, settings, kept.log)
    materialize_tokens(kept.root, settings, kept.log)
    return kept, settings


def parts(kept):
    entries = {(e.source, e.part): e for e in Manifest.load(kept.root, "tokens").entries()}
    for task in kept_tasks(kept.root, kept.log)[0]:
        for part in task.parts:
            yield part, entries[part.clean.source, part.clean.part]


def verifier(kept):
    pin = read_pin(kept.root)
    assert pin is not None
    return TokenVerifier(kept.root, pin.load(kept.root))


def test_every_document_decodes_to_its_text(made):
    kept, _ = made
    expected = 5 if is_real(kept) else 3
    for part, entry in parts(kept):
        assert verifier(kept).verify(part, entry) == expected
        assert verifier(kept).verify(part, entry, every=3) < expected


def is_real(kept):
    pin = read_pin(kept.root)
    assert pin is not None
    return pin.vocab_size > 100


def with_rows(kept, entry: PartEntry, change) -> PartEntry:
    table = kept.root.read_table(entry.objects["data"])
    rows = change(table.to_pylist())
    data = kept.root.publish_table(
        "tokens/x.parquet", table.schema, pa.Table.from_pylist(rows, table.schema)
    )
    return dataclasses.replace(entry, objects={**entry.objects, "data": data})


def with_ids(kept, entry: PartEntry, change) -> PartEntry:
    """Return the entry of a part with other ids, whose checksums and hashes are theirs."""
    (rows,) = iter_token_rows(kept.root, TokenPart.of(entry), 0, entry.rows)
    documents = np.split(rows.ids.copy(), np.cumsum(rows.num_tokens)[:-1])
    with kept.root.workspace() as folder, IdsWriter(folder, rows.ids.dtype) as ids:
        ids.append(np.concatenate(change(documents)))
        objects = ids.publish(kept.root, "tokens/y")
    return dataclasses.replace(entry, objects={**entry.objects, **objects})


def test_one_wrong_id_is_found_and_its_document_named(made):
    kept, _ = made
    part, entry = next(parts(kept))

    def change(documents):
        documents[-1][0] ^= 1
        return documents

    named = kept.root.read_table(entry.objects["data"])["doc_id"][-1].as_py().hex()
    with pytest.raises(IntegrityError, match=f"document {named} .*ids are not its text"):
        verifier(kept).verify(part, with_ids(kept, entry, change))


def test_two_documents_that_changed_places_are_found(made):
    kept, _ = made
    part, entry = next(parts(kept))
    moved = with_ids(kept, entry, lambda found: [found[-1], *found[1:-1], found[0]])

    def change(rows):
        first, last = rows[0]["num_tokens"], rows[-1]["num_tokens"]
        rows[0]["num_tokens"], rows[-1]["num_tokens"] = last, first
        return rows

    with pytest.raises(IntegrityError, match="ids are not its text"):
        verifier(kept).verify(part, with_rows(kept, moved, change))


@pytest.mark.parametrize("role", ["ids", "crcs"])
def test_a_damaged_byte_of_a_part_is_found_before_it_is_used(made, role):
    kept, settings = made
    part, entry = next(parts(kept))
    path = Path(kept.root.url) / entry.objects[role].name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(IntegrityError):
        verifier(kept).verify(part, entry)
    with pytest.raises(IntegrityError):
        materialize_shards(kept.root, settings, kept.log)


@pytest.mark.parametrize("change", [-1, 1])
def test_more_or_fewer_ids_than_documents_have_are_found(made, change):
    kept, _ = made
    part, entry = next(parts(kept))

    def cut(documents):
        last = documents[-1]
        documents[-1] = last[:-1] if change < 0 else np.append(last, last[-1:])
        return documents

    changed = with_ids(kept, entry, cut)
    with pytest.raises(IntegrityError, match="documents"):
        list(iter_token_rows(kept.root, TokenPart.of(changed), 0, entry.rows))
    with pytest.raises(IntegrityError, match="documents"):
        verifier(kept).verify(part, changed)


def test_a_part_of_an_earlier_version_says_what_to_do(made):
    kept, settings = made
    entries = Manifest.load(kept.root, "tokens").entries()
    older = [
        dataclasses.replace(
            entry,
            fingerprint="0" * 64,
            objects={k: v for k, v in entry.objects.items() if k not in ("ids", "crcs")},
        )
        for entry in entries
    ]
    commit(kept.root, "tokens", older)
    with pytest.raises(IntegrityError, match="materialize token_documents again"):
        materialize_shards(kept.root, settings, kept.log)
    materialize_tokens(kept.root, settings, kept.log)
    assert Manifest.load(kept.root, "tokens").entries() == entries
    materialize_shards(kept.root, settings, kept.log)


def test_a_row_that_is_not_kept_is_found(made):
    kept, _ = made
    part, entry = next(parts(kept))
    with pytest.raises(IntegrityError, match="row 99 is not kept"):
        verifier(kept).verify(
            part, with_rows(kept, entry, lambda rows: [*rows, {**rows[-1], "row": 99}])
        )


def test_shards_hold_the_ids_of_the_parts(made):
    kept, settings = made
    materialize_shards(kept.root, settings, kept.log)
    groups, _, _ = complete_groups(kept.root, settings.sharding, kept.log)
    dataset, records = Path(kept.root.url) / "dataset", ShardIndex(kept.root).records
    for group in groups:
        mine = [record for record in records if record["source"] == group.source]
        counts = [compare_shard(kept.root, dataset, group, record) for record in mine]
        assert sum(counts) == group.num_documents
    record, group = records[0], groups[0]
    path = dataset / record["shard"]
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match="token 0: its id is not that of the token part"):
        compare_shard(kept.root, dataset, group, record)
