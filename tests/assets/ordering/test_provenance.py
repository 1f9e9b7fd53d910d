from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from assets.errors import IntegrityError
from assets.ordering.provenance import check_provenance, provenance_csv, read_provenance


def record(shard: str, n_tokens: int, *, generation: int = 1, n_docs: int = 1) -> dict[str, Any]:
    source = shard.split("/")[1]
    return {
        "shard": shard,
        "source": source,
        "generation": generation,
        "stratum": None,
        "split": "train",
        "weight": 1.0,
        "from": 0,
        "n_tokens": n_tokens,
        "n_docs": n_docs,
        "sha256": f"{n_tokens:064x}",
    }


def plan(sequence_length: int, num_instances: int) -> dict[str, Any]:
    return {
        "segments": [{"sequence_length": sequence_length}],
        "num_instances": num_instances,
    }


RECORDS = [
    record("shards/web/00000-aa.npy", 9, n_docs=3),
    record("shards/wiki/00000-bb.npy", 3),
    record("shards/books/00000-cc.npy", 8, generation=2),
]
PLAN = plan(4, 4)
EXPECTED = (
    "Dataset,Data Directory,shard,repeat,documents,tokens,instances,"
    "first_global_index,last_global_index,share,sha256,licence\n"
    f"web,shards/web/00000-aa.csv.gz,shards/web/00000-aa.npy,1,3,9,2,0,1,0.5,{9:064x},"
    '"CC BY, 4.0"\n'
    f"wiki,shards/wiki/00000-bb.csv.gz,shards/wiki/00000-bb.npy,1,1,3,0,,,0.0,{3:064x},\n"
    f"books,shards/books/00000-cc.csv.gz,shards/books/00000-cc.npy,1,1,8,2,2,3,0.5,{8:064x},NA\n"
)
LICENCES = {"web": "CC BY, 4.0", "wiki": None, "books": "NA"}


def test_the_file_is_this() -> None:
    assert provenance_csv(PLAN, RECORDS, LICENCES).decode() == EXPECTED


def test_reading_gives_the_values_back() -> None:
    table = read_provenance(EXPECTED.encode(), "provenance.csv")
    assert table["licence"].tolist() == ["CC BY, 4.0", "", "NA"]
    assert table["first_global_index"].isna().tolist() == [False, True, False]


def test_the_check_counts_what_is_covered() -> None:
    facts = check_provenance(EXPECTED.encode(), PLAN, RECORDS, "p")
    assert facts == {"rows": 3, "shards": 3, "instances": 4, "documents": 5, "tokens": 20}


LINES = EXPECTED.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("".join(LINES[:3]), "lacks 1 rows, the first shards/books/00000-cc.npy repeat 1"),
        (EXPECTED + LINES[1], "repeats 1 rows, the first shards/web/00000-aa.npy"),
        (EXPECTED + LINES[1].replace("aa.npy,1,", "aa.npy,2,"), "has without use 1 rows"),
        ("".join([LINES[0], LINES[2], LINES[1], LINES[3]]), "not in the order"),
        (EXPECTED.replace(",3,9,2,", ",2,9,2,"), "row 1 .* documents"),
        (EXPECTED.replace(f"{8:064x}", f"{7:064x}"), "row 3 .* sha256"),
        (EXPECTED.replace("\nweb,", "\nwiki,"), "row 1 .* Dataset wiki"),
        (EXPECTED.replace("wiki/00000-bb.csv", "web/00000-bb.csv"), "row 2 .* Data Directory"),
        (EXPECTED.replace(",2,2,3,", ",2,1,3,"), "row 3 .* first_global_index 1, expected 2"),
        (EXPECTED.replace(",0,,,", ",0,2,2,"), "row 2 .* first_global_index 2, expected -1"),
        (EXPECTED.replace(",2,3,0.5", ",2,3,0.6"), "share 0.6, expected 0.5"),
        (EXPECTED.replace("repeat", "times"), "the columns are"),
        (EXPECTED.replace(",3,9,", ",three,9,"), "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_every_kind_of_error_is_named(data: str, message: str) -> None:
    with pytest.raises(IntegrityError, match=message):
        check_provenance(data.encode(), PLAN, RECORDS, "p")


def test_a_plan_with_other_instances_is_not_covered() -> None:
    data = provenance_csv(plan(4, 5), RECORDS, LICENCES)
    with pytest.raises(IntegrityError, match="hold 4 instances, the plan has 5"):
        check_provenance(data, plan(4, 5), RECORDS, "p")


@given(
    tokens=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    sequence_length=st.integers(1, 9),
)
def test_ranges_partition_the_instances(tokens: list[int], sequence_length: int) -> None:
    records = [record(f"shards/s/{n:05d}-aa.npy", size) for n, size in enumerate(tokens)]
    for number, item in enumerate(records):
        item["from"] = number
    count = sum(size // sequence_length for size in tokens)
    if count == 0:
        return
    described = plan(sequence_length, count)
    data = provenance_csv(described, records, {})
    assert check_provenance(data, described, records, "p")["instances"] == count
    table = read_provenance(data, "p").dropna(subset=["first_global_index"])
    covered = [
        index
        for first, last in zip(table["first_global_index"], table["last_global_index"], strict=True)
        for index in range(first, last + 1)
    ]
    assert covered == list(range(count))
