"""provenance.csv: which instances of a plan come from which shard of which source.

OLMo's own two columns come first, so that its readers find them: `Dataset` is the source, `Data
Directory` the shard's `.csv.gz` relative to the data set (every document in the shard, with its
place). One row per shard and repeat that the plan uses, in plan order; a shard shorter than one
instance has a row with no index range.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from assets.errors import IntegrityError
from assets.ordering.coverage import Coverage, ShardPieces, range_tokens
from olmo_loader.plan import Plan
from olmo_loader.plan_identity import train_records
from olmo_loader.shard_files import CSV_SUFFIX, TOKENS_SUFFIX
from olmo_loader.shard_index import in_plan_order

COLUMNS = (
    *("Dataset", "Data Directory", "shard", "repeat", "documents", "tokens", "instances"),
    *("first_global_index", "last_global_index", "share", "sha256", "licence"),
)
FIRST_REPEAT = 1
"""A shard is listed with repeat 1 for its first use, 2 for its second."""
SHARE_DIGITS = 12


def provenance_table(
    plan: Mapping[str, Any],
    records: Sequence[dict[str, Any]],
    licences: Mapping[str, str | None],
) -> pd.DataFrame:
    """Return the provenance of a plan.

    Args:
        plan: `plan.json`, or at least its segments and num_instances.
        records: every index record of its snapshot, in any order.
        licences: licence by source; a missing one stays empty.

    Returns:
        `COLUMNS`: documents (continued ones count in every shard they reach), tokens and instances
        of the shard; first and last global index, both inclusive, empty without an instance; share
        of the plan's instances.
    """
    shards = train_records(in_plan_order(records))
    table = pd.DataFrame(
        {
            "Dataset": [record["source"] for record in shards],
            "Data Directory": [_csv_path(record["shard"]) for record in shards],
            "shard": [record["shard"] for record in shards],
            "repeat": FIRST_REPEAT,
            "documents": [record["n_docs"] for record in shards],
            "tokens": [record["n_tokens"] for record in shards],
            "sha256": [record["sha256"] for record in shards],
            "licence": [licences.get(record["source"]) for record in shards],
        }
    )
    sequence_length = plan["segments"][0]["sequence_length"]
    table["instances"] = table["tokens"] // sequence_length
    end = table["instances"].cumsum()
    used = table["instances"] > 0
    table["first_global_index"] = (end - table["instances"]).astype("Int64").where(used)
    table["last_global_index"] = (end - 1).astype("Int64").where(used)
    table["share"] = (table["instances"] / plan["num_instances"]).round(SHARE_DIGITS)
    return table[list(COLUMNS)]


def provenance_csv(
    plan: Mapping[str, Any],
    records: Sequence[dict[str, Any]],
    licences: Mapping[str, str | None],
) -> bytes:
    """Return the bytes of provenance.csv; see `provenance_table`."""
    table = provenance_table(plan, records, licences)
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text.encode()


def covered_provenance_csv(
    plan: Plan, coverage: Coverage, licences: Mapping[str, str | None]
) -> bytes:
    """Return provenance.csv of a plan that is mixed, packed, extended, or repeats shards.

    One row per shard and repeat: repeat k holds what is drawn at least k times, so that an instance
    drawn three times is in the rows of repeats 1, 2 and 3. Its instances are those with a token of
    the shard, its share that of the order's real tokens. A shard that is not drawn has one row.
    Such plans have no ranges of global indices.
    """
    table = _covered_table(plan, coverage, licences)
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text.encode()


def _covered_table(
    plan: Plan, coverage: Coverage, licences: Mapping[str, str | None]
) -> pd.DataFrame:
    rows = []
    for number, record in enumerate(plan.shards):
        for repeat, (instances, tokens) in enumerate(_repeats(coverage, number), FIRST_REPEAT):
            rows.append(
                {
                    "Dataset": record["source"],
                    "Data Directory": _csv_path(record["shard"]),
                    "shard": record["shard"],
                    "repeat": repeat,
                    "documents": record["n_docs"],
                    "tokens": record["n_tokens"],
                    "sha256": record["sha256"],
                    "licence": licences.get(record["source"]),
                    "instances": instances,
                    "share": tokens,
                }
            )
    table = pd.DataFrame(rows)
    table["share"] = (table["share"] / max(int(table["share"].sum()), 1)).round(SHARE_DIGITS)
    for column in ("first_global_index", "last_global_index"):
        table[column] = pd.array([None] * len(table), dtype="Int64")
    return table[list(COLUMNS)]


def _repeats(coverage: Coverage, shard: int) -> Iterator[tuple[int, int]]:
    """Yield instances and tokens that are drawn at least once, twice, ... of a shard."""
    if (plain := coverage.plain_draws(shard)) is not None:
        draws, length = plain
        for repeat in range(1, max(int(draws.max(initial=0)), 1) + 1):
            count = int(np.count_nonzero(draws >= repeat))
            yield count, count * length
        return
    sizes, draws, instances = _distinct(coverage.pieces(shard))
    for repeat in range(1, max(int(draws.max(initial=0)), 1) + 1):
        used = draws >= repeat
        yield _count_distinct(instances[used]), int(sizes[used].sum())


def _count_distinct(instances: np.ndarray) -> int:
    if (instances[1:] > instances[:-1]).all():
        return len(instances)
    return len(np.unique(instances))


def _distinct(pieces: ShardPieces) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return size, draws and instance of each range of a shard, one that stands in several once."""
    if (np.diff(pieces.starts) > 0).all():
        return pieces.ends - pieces.starts, pieces.draws, pieces.instances
    ranges = np.stack((pieces.starts, pieces.ends), axis=1)
    found, first, where = np.unique(ranges, axis=0, return_index=True, return_inverse=True)
    draws = np.zeros(len(found), np.int64)
    np.add.at(draws, where.reshape(-1), pieces.draws)
    return found[:, 1] - found[:, 0], draws, pieces.instances[first]


def check_covered_provenance(
    data: bytes, plan: Plan, coverage: Coverage, where: str
) -> dict[str, Any]:
    """Prove that provenance.csv says of every shard and repeat what the plan's order says.

    Returns:
        As `check_provenance`.

    Raises:
        IntegrityError: names the first row that is missing, extra, or wrong.
    """
    table = read_provenance(data, where)
    licences = dict(zip(table["Dataset"], table["licence"], strict=True))
    expected = _covered_table(plan, coverage, licences)
    found = list(zip(table["shard"], table["repeat"], strict=True))
    wanted = list(zip(expected["shard"], expected["repeat"], strict=True))
    if found != wanted:
        different = sorted(set(found) ^ set(wanted)) or [wanted[0]]
        raise IntegrityError(
            f"{where}: the rows are not the plan's shards and repeats in order, the first that "
            f"differs is {different[0][0]} repeat {different[0][1]}"
        )
    for column in ("Dataset", "Data Directory", "documents", "tokens", "sha256", "instances"):
        _check_column(table, column, expected[column].astype(table[column].dtype), where)
    wrong = ((table["share"] - expected["share"]).abs() > 10.0**-SHARE_DIGITS).to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise IntegrityError(
            f"{where}: row {row + 1} ({table['shard'][row]}) has share {table['share'][row]}, "
            f"expected {expected['share'][row]}"
        )
    covered = sum(range_tokens(pieces.union(least=1)) for _, pieces in coverage.shards())
    return {
        "rows": len(table),
        "shards": int(table["shard"].nunique()),
        "instances": int((coverage.draws > 0).sum()),
        "documents": int(expected.drop_duplicates("shard")["documents"].sum()),
        "tokens": covered,
    }


def read_provenance(data: bytes, where: str) -> pd.DataFrame:
    """Parse provenance.csv; an empty licence is an empty string.

    Raises:
        IntegrityError: not a CSV with exactly `COLUMNS`, or a value is not of its column's type.
    """
    types: dict[str, Any] = dict.fromkeys(COLUMNS, "str")
    types |= dict.fromkeys(("repeat", "documents", "tokens", "instances"), "int64")
    types |= dict.fromkeys(("first_global_index", "last_global_index"), "Int64")
    types["share"] = "float64"
    try:
        table = pd.read_csv(
            io.BytesIO(data),
            dtype=types,
            keep_default_na=False,
            na_values={"first_global_index": [""], "last_global_index": [""]},
        )
    except (ValueError, UnicodeDecodeError) as error:
        raise IntegrityError(f"{where}: cannot be read: {error}") from error
    if tuple(table.columns) != COLUMNS:
        raise IntegrityError(
            f"{where}: the columns are {', '.join(table.columns)}, expected {', '.join(COLUMNS)}"
        )
    return table


def check_provenance(
    data: bytes, plan: Mapping[str, Any], records: Sequence[dict[str, Any]], where: str
) -> dict[str, Any]:
    """Prove that provenance.csv covers a plan: every shard and repeat once, every instance once.

    Args:
        data: the file.
        plan: `plan.json`.
        records: index records of the plan's training shards, in plan order.
        where: name of the file, for messages.

    Returns:
        rows, shards, instances, documents and tokens covered.

    Raises:
        IntegrityError: names the first row that is missing, extra, or wrong.
    """
    table = read_provenance(data, where)
    _check_rows(table, records, where)
    _check_ranges(table, plan, where)
    return {
        "rows": len(table),
        "shards": int(table["shard"].nunique()),
        "instances": int(table["instances"].sum()),
        "documents": int(table["documents"].sum()),
        "tokens": int(table["tokens"].sum()),
    }


def _check_rows(table: pd.DataFrame, records: Sequence[dict[str, Any]], where: str) -> None:
    """Each use of a shard by the plan has one row, in plan order, that says what the index says."""
    uses = [(record["shard"], FIRST_REPEAT) for record in records]
    found = list(zip(table["shard"], table["repeat"], strict=True))
    repeated = sorted(use for use, count in Counter(found).items() if count > 1)
    missing, extra = sorted(set(uses) - set(found)), sorted(set(found) - set(uses))
    for problem, named in (("lacks", missing), ("has without use", extra), ("repeats", repeated)):
        if named:
            shard, repeat = named[0]
            raise IntegrityError(
                f"{where}: {problem} {len(named):,d} rows, the first {shard} repeat {repeat}"
            )
    if found != uses:
        raise IntegrityError(f"{where}: the rows are not in the order of the plan's shards")
    for column, field in (
        ("Dataset", "source"),
        ("documents", "n_docs"),
        ("tokens", "n_tokens"),
        ("sha256", "sha256"),
    ):
        expected = pd.Series([record[field] for record in records], dtype=table[column].dtype)
        _check_column(table, column, expected, where)
    paths = pd.Series([_csv_path(record["shard"]) for record in records], dtype="str")
    _check_column(table, "Data Directory", paths, where)


def _check_column(table: pd.DataFrame, column: str, expected: pd.Series, where: str) -> None:
    wrong = (table[column] != expected).to_numpy().nonzero()[0]
    if len(wrong):
        row = int(wrong[0])
        raise IntegrityError(
            f"{where}: row {row + 1} ({table['shard'][row]}) has {column} "
            f"{table[column][row]}, expected {expected[row]}"
        )


def _check_ranges(table: pd.DataFrame, plan: Mapping[str, Any], where: str) -> None:
    """The index ranges, in order, are a partition of 0..num_instances - 1."""
    instances = table["tokens"] // plan["segments"][0]["sequence_length"]
    end = instances.cumsum()
    used = instances > 0
    for column, expected in (
        ("instances", instances),
        ("first_global_index", (end - instances).astype("Int64").where(used)),
        ("last_global_index", (end - 1).astype("Int64").where(used)),
    ):
        # -1 stands for "no instance", so that an empty cell compares as a value.
        found = table[column].astype("Int64").fillna(-1)
        _check_column(
            table.assign(**{column: found}), column, expected.astype("Int64").fillna(-1), where
        )
    if int(instances.sum()) != plan["num_instances"]:
        raise IntegrityError(
            f"{where}: the rows hold {instances.sum():,d} instances, the plan has "
            f"{plan['num_instances']:,d}"
        )
    shares = (table["share"] - instances / plan["num_instances"]).abs()
    if bool((shares > 10.0**-SHARE_DIGITS).any()):
        row = int(shares.to_numpy().argmax())
        raise IntegrityError(
            f"{where}: row {row + 1} ({table['shard'][row]}) has share {table['share'][row]}, "
            f"expected {instances[row] / plan['num_instances']}"
        )


def _csv_path(shard: str) -> str:
    return shard.removesuffix(TOKENS_SUFFIX) + CSV_SUFFIX
