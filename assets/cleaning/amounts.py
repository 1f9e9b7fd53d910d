"""How much text cleaning kept in each language, and how much a stage's rules took.

What a rule took is measured alike in every stage: `bytes` are those of the text as it was decoded,
`words` those that cleaning counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.document import length_histogram

NO_LANGUAGE = ""
"""Key of documents whose profile asks for no language."""


def kept_by_language(kept: pa.Table) -> dict[str, dict[str, Any]]:
    """Return {language: {documents, characters, bytes, words, lengths}} of clean rows that stay.

    `lengths` are documents per power of two of bytes.
    """
    table = pa.table(
        {
            "language": kept["language"].fill_null(NO_LANGUAGE),
            "characters": pc.utf8_length(kept["text"]),
            "bytes": pc.binary_length(kept["text"]),
            "words": kept["num_words"].fill_null(0),
        }
    )
    names = ("characters", "bytes", "words")
    groups = table.group_by("language").aggregate(
        [([], "count_all"), *((name, "sum") for name in names), ("bytes", "list")]
    )
    return {
        row["language"]: {
            "documents": row["count_all"],
            **{name: row[f"{name}_sum"] for name in names},
            "lengths": length_histogram(np.array(row["bytes_list"], np.int64)),
        }
        for row in sorted(groups.to_pylist(), key=lambda row: row["language"])
    }


def lost_by_rule(clean: pa.Table, ledger: pa.Table) -> dict[str, dict[str, dict[str, int]]]:
    """Return {"lost": {rule: {documents, bytes, words, uncounted}}} of what a stage took.

    `words` are those of the documents whose words had been counted when the rule took them,
    `uncounted` is the number of the others.

    Args:
        clean: columns num_bytes and num_words of the stage's rows.
        ledger: what the stage decided of each of them, in the same order.
    """
    lost = pc.is_in(ledger["decision"], pa.array(["dropped", "quarantined"]))
    is_lost = lost.to_numpy()
    rules = np.array(ledger["rule"].to_pylist(), object)[is_lost]
    sizes = clean["num_bytes"].to_numpy()[is_lost]
    words = clean["num_words"].fill_null(-1).to_numpy()[is_lost]
    found = {}
    for rule in sorted(set(rules.tolist())):
        here = rules == rule
        found[rule] = {
            "documents": int(here.sum()),
            "bytes": int(sizes[here].sum()),
            "words": int(words[here & (words >= 0)].sum()),
            "uncounted": int((here & (words < 0)).sum()),
        }
    return {"lost": found}
