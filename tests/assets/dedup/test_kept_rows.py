"""Rows are left out as Arrow's own filter leaves them out, however many runs stay."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from assets.dedup.kept_rows import MAX_RUNS, kept_rows


def batch_of(count: int) -> pa.RecordBatch:
    texts = [None if number % 7 == 3 else "x" * (number % 5) for number in range(count)]
    spans = [None if number % 3 else [{"start": number, "end": number}] for number in range(count)]
    kind = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))
    columns = [pa.array(texts, pa.large_string()), pa.array(range(count)), pa.array(spans, kind)]
    return pa.RecordBatch.from_arrays(columns, ["text", "row", "spans"])


@given(keep=st.lists(st.booleans(), max_size=3 * MAX_RUNS), start=st.integers(0, 3))
def test_rows_are_those_of_a_filter(keep: list[bool], start: int):
    batch = batch_of(len(keep) + start).slice(start)
    wanted = pa.array(keep, pa.bool_())
    assert kept_rows(batch, wanted).equals(batch.filter(wanted))


@pytest.mark.parametrize("step", [2, 1000])
def test_few_and_many_runs(step: int):
    keep = pa.array(np.arange(4 * MAX_RUNS) % step > 0)
    batch = batch_of(len(keep))
    assert kept_rows(batch, keep).equals(batch.filter(keep))
