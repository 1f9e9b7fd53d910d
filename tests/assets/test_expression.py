"""Users' expressions: what is accepted, what is refused by name, and values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from assets.document import CLEAN
from assets.errors import ConfigurationError
from assets.expression import Evaluator, parse_expression

WHERE = "sources[s].strata"


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("language", ("language",)),
        ("LANGUAGE -- which", ("language",)),
        ("metadata->>'$.topic'", ("metadata",)),
        ("year(fetched_at)", ("fetched_at",)),
        ("CASE WHEN signals.quality > 0.5 THEN 'good' ELSE language END", ("language", "signals")),
        ("regexp_extract(url, '^https?://([^/]+)', 1)", ("url",)),
        ("nullif(language, 'und')", ("language",)),
    ],
)
def test_an_expression_and_the_columns_it_reads(sql, columns):
    assert parse_expression(sql, CLEAN.names, WHERE).columns == columns


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("random()", "function 'random' is not accepted"),
        ("now() > fetched_at", "function 'now' is not accepted"),
        ("count(*)", "function 'count_star'"),
        ("max(language)", "function 'max'"),
        ("nosuch(language)", "function 'nosuch'"),
        ("read_text('/etc/passwd')", "function 'read_text'"),
        ("getenv('HOME')", "function 'getenv'"),
        ("row_number() OVER ()", "a window is not accepted"),
        ("(SELECT 1)", "a subquery is not accepted"),
        ("*", "a star is not accepted"),
        ("langage", "no column 'langage'; there are doc_id, user_id"),
        ("1 + 1", "names no column"),
        ("language) FROM x; DROP TABLE x; --", "is no SQL expression"),
        ("language) FROM given WHERE (language = 'en'", "is no SQL expression"),
        ("language FROM", "is no SQL expression"),
        ("", "names no column"),
    ],
)
def test_what_is_no_value_of_one_document_is_refused(sql, reason):
    with pytest.raises(ConfigurationError, match=r"sources\[s\].strata: ") as caught:
        parse_expression(sql, CLEAN.names, WHERE)
    assert reason in str(caught.value)


def rows(*values):
    base = {
        **dict.fromkeys(("source", "part", "landed_path"), "s"),
        "doc_id": bytes(16),
        "row": 0,
        "content_hash": bytes(32),
        "num_bytes": 1,
    }
    return pa.RecordBatch.from_pylist([base | value for value in values], schema=CLEAN)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("metadata->>'$.topic'", ["art", "3", None]),
        ("signals.quality > 0.5", ["true", None, "false"]),
        ("coalesce(language, 'x') || '-' || num_words", ["en-7", None, "x-1"]),
    ],
)
def test_values_are_text_and_null_stays_null(sql, expected):
    batch = rows(
        {
            "language": "en",
            "metadata": '{"topic": "art"}',
            "num_words": 7,
            "signals": {"quality": 0.75},
        },
        {"metadata": '{"topic": 3}'},
        {"num_words": 1, "signals": {"quality": 0.5}},
    )
    evaluator = Evaluator(parse_expression(sql, CLEAN.names, WHERE))
    assert evaluator.evaluate(batch, WHERE).to_pylist() == expected
    assert evaluator.evaluate(batch.slice(2), WHERE).to_pylist() == expected[2:]
    assert evaluator.evaluate(batch.slice(0, 0), WHERE).to_pylist() == []


@pytest.mark.parametrize("sql", ["CAST(language AS INTEGER)", "repeat(language, 2000000000)"])
def test_a_value_that_cannot_be_computed_is_an_error(sql):
    evaluator = Evaluator(parse_expression(sql, CLEAN.names, WHERE))
    with pytest.raises(ConfigurationError, match=r"Conversion Error|Out of Memory|Invalid Input"):
        evaluator.evaluate(rows({"language": "en"}), WHERE)


def test_a_lone_surrogate_is_one_error():
    with pytest.raises(ConfigurationError, match=r"strata: .* lone surrogate"):
        parse_expression("language || '\ud800'", ("language",), "strata")
