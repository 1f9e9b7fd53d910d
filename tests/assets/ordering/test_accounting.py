from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from assets.errors import IntegrityError
from assets.manifest import PartEntry
from assets.ordering.accounting import Amount, SourceAccount, check_accounts, count_accounts
from assets.ordering.published import read_shard_index
from tests.assets.ordering.small_data_set import SmallDataSet, document_id


def token_part(source: str, documents: int, tokens: int) -> PartEntry:
    return PartEntry(
        stage="tokens",
        source=source,
        generation=1,
        task="t",
        part="t-000",
        fingerprint="f",
        objects={},
        rows=documents,
        files=(),
        statistics={"documents": documents, "tokens": tokens},
    )


def count(small: SmallDataSet, parts: list[PartEntry], **given: Any) -> dict[str, SourceAccount]:
    return count_accounts(
        small.dataset,
        token_parts=parts,
        records=read_shard_index(small.root).records,
        **{"sequence_length": 4, "pending": {}, "takedowns": [], **given},
    )


def withdrawal(*documents: tuple[int, str, int, int]) -> dict[str, Any]:
    return {
        "documents": [
            {"doc_id": document_id(number).hex(), "spans": [[shard, start, end]]}
            for number, shard, start, end in documents
        ]
    }


def test_a_document_is_where_its_first_token_is(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    # 14 tokens: three instances [0, 12) and a tail of two; the documents start at 0, 5, 11, 12.
    shard = small.add_shard("wiki", [5, 6, 1, 2])
    small.add_shard("wiki", [3])
    books = small.add_shard("books", [4, 4])
    found = count(
        small,
        [token_part("wiki", 6, 37), token_part("wiki", 1, 1), token_part("books", 2, 8)],
        pending={"wiki": Amount(2, 21)},
        takedowns=[
            withdrawal((1, shard, 5, 11), (3, shard, 12, 14)),
            withdrawal((6, books, 4, 8)),
        ],
    )
    assert found["wiki"] == SourceAccount(
        token_documents=Amount(7, 38),
        in_instances=Amount(3, 12),
        shard_tails=Amount(2, 5),
        pending=Amount(2, 21),
        withdrawn=Amount(1, 6),
    )
    assert found["books"] == SourceAccount(
        token_documents=Amount(2, 8), in_instances=Amount(2, 8), withdrawn=Amount(1, 4)
    )
    check_accounts(found, 5, 4)


def test_a_withdrawn_span_is_clipped_at_the_tail(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    shard = small.add_shard("wiki", [3, 3, 3])
    found = count(
        small,
        [token_part("wiki", 3, 9)],
        takedowns=[withdrawal((1, shard, 3, 6), (2, shard, 6, 9))],
    )
    assert found["wiki"].withdrawn == Amount(2, 5)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (token_part("wiki", 2, 10), "wiki: 10 tokens were tokenized, 9 are accounted for"),
        (token_part("wiki", 3, 9), "wiki: 3 documents were tokenized, 2 are accounted for"),
    ],
)
def test_a_line_that_does_not_add_up_is_refused(
    tmp_path: Path, part: PartEntry, message: str
) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [5, 4])
    with pytest.raises(IntegrityError, match=message):
        check_accounts(count(small, [part]), 2, 4)


def test_shards_of_a_source_that_was_never_tokenized_are_refused(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [4])
    with pytest.raises(IntegrityError, match="wiki: 0 tokens were tokenized, 4 are accounted"):
        check_accounts(count(small, []), 1, 4)


def test_a_plan_with_other_instances_is_refused(tmp_path: Path) -> None:
    small = SmallDataSet(tmp_path)
    small.add_shard("wiki", [9])
    with pytest.raises(IntegrityError, match="8 tokens in instances, the plan 3 instances of 4"):
        check_accounts(count(small, [token_part("wiki", 1, 9)]), 3, 4)


@hypothesis_settings(max_examples=20, deadline=None)
@given(
    shards=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=4),
    pending=st.lists(st.integers(1, 9), max_size=3),
    length=st.integers(1, 12),
)
def test_the_line_adds_up_for_any_shards(
    tmp_path_factory: pytest.TempPathFactory,
    shards: list[list[int]],
    pending: list[int],
    length: int,
) -> None:
    small = SmallDataSet(tmp_path_factory.mktemp("root"))
    for lengths in shards:
        small.add_shard("wiki", lengths)
    everything = [size for lengths in shards for size in lengths] + pending
    found = count(
        small,
        [token_part("wiki", len(everything), sum(everything))],
        sequence_length=length,
        pending={"wiki": Amount(len(pending), sum(pending))},
    )
    instances = sum(sum(lengths) // length for lengths in shards)
    check_accounts(found, instances, length)
    assert found["wiki"].in_instances.tokens == instances * length
