"""Questions are answered; nothing is written, attached, installed or read outside the root."""

import pytest

from assets.catalog.query import Answer, QueryLimits, ask
from assets.errors import ConfigurationError

REFUSED = [
    "COPY sources TO '{root}/stolen.csv'",
    "COPY (SELECT 1) TO '/tmp/stolen.csv'",
    "EXPORT DATABASE '{root}/stolen'",
    "ATTACH '{root}/other.duckdb' AS other",
    "INSTALL httpfs",
    "LOAD icu",
    "SET memory_limit = '100GB'",
    "PRAGMA enable_external_access",
    "INSERT INTO sources (source) VALUES ('x')",
    "DELETE FROM sources",
    "DROP TABLE sources",
    "CREATE TABLE t AS SELECT 1",
    "CREATE TEMP TABLE t AS SELECT 1",
    "EXPLAIN ANALYZE COPY sources TO '{root}/stolen.csv'",
    "CHECKPOINT",
    "CALL pragma_version()",
    "PREPARE p AS SELECT 1",
    "SELECT 1; SELECT 2",
    "ATTACH ':memory:' AS other",
    "ATTACH 'https://example.org/x.duckdb'",
    "DETACH catalog",
    "USE memory",
    "SET enable_external_access = true",
    "RESET allowed_directories",
    "SET VARIABLE x = 1",
    "PRAGMA database_list",
    "LOAD httpfs",
    "FORCE INSTALL httpfs FROM 'https://example.org'",
    "COPY (SELECT 1) TO '{root}/x.parquet' (FORMAT parquet)",
    "COPY sources FROM '/etc/hostname'",
    "IMPORT DATABASE '{root}'",
    "CREATE OR REPLACE TEMP MACRO ledger(x) AS 1",
    "CREATE SECRET s (TYPE s3)",
    "VACUUM",
    "BEGIN",
    "EXECUTE p",
    "EXPLAIN ANALYZE SELECT 1",
    "/* SELECT */ DELETE FROM sources",
    "SELECT 1;;\nDROP TABLE sources",
    "SELECT 1; COPY sources TO '{root}/stolen.csv'",
    "",
]
OUTSIDE = [
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('{root}/../corpus/small.txt')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM read_text('https://example.org/')",
    "SELECT * FROM query('COPY sources TO ''{root}/stolen.csv''')",
    "SELECT * FROM root",
    "SELECT getenv('HOME')",
    "FROM read_csv('/etc/hostname')",
    "FROM read_blob('file:///etc/hostname')",
    "FROM read_parquet('s3://bucket/x.parquet')",
    "FROM read_csv('hf://datasets/x/y.csv')",
    "FROM read_text('{root}beside/x.txt')",
    "FROM read_text('{root}/./../../etc/hostname')",
    "FROM glob('{root}/../*')",
    "FROM sniff_csv('/etc/hostname')",
    "WITH stolen AS (FROM read_text('/etc/hostname')) FROM stolen",
    "SELECT (SELECT content FROM read_text('/etc/hostname'))",
    "SELECT * FROM duckdb_secrets() WHERE name IN (FROM read_text('/etc/hostname'))",
    "SELECT '\ud800'",
]


def ask_grown(grown, sql, limits=None):
    root, settings = grown
    return ask(root, settings, sql, limits)


def names_in(root):
    folder = root.storage.local_path("x").parent
    return sorted(str(path) for path in folder.rglob("*"))


@pytest.mark.parametrize("sql", REFUSED + OUTSIDE)
def test_what_is_not_a_question_about_the_root_is_refused(grown, sql):
    root, settings = grown
    before = names_in(root)
    with pytest.raises(ConfigurationError):
        ask(root, settings, sql.format(root=root.url))
    assert names_in(root) == before


@pytest.mark.parametrize(
    "sql",
    [
        "FROM sources",
        "SHOW TABLES",
        "DESCRIBE shards",
        "SUMMARIZE parts",
        "WITH s AS (SELECT * FROM shards) SELECT count(*) FROM s",
        "SELECT count(*) FROM clean_documents WHERE text IS NOT NULL",
        "SELECT * FROM ledger('tokens') LIMIT 1",
    ],
)
def test_questions_are_answered(grown, sql):
    assert ask_grown(grown, sql).rows


def test_bytes_are_shown_as_hex_and_long_answers_are_cut(grown):
    answer = ask_grown(grown, "SELECT doc_id FROM source_documents", QueryLimits(max_rows=3))
    assert answer.is_cut
    assert [len(row[0]) for row in answer.rows] == [32, 32, 32]
    assert ask_grown(grown, "SELECT 1 AS a, [1, 2] AS b") == Answer(
        columns=("a", "b"), rows=[(1, [1, 2])], is_cut=False
    )


def test_time_and_memory_are_limited(grown):
    endless = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    with pytest.raises(ConfigurationError, match="longer than 1 s"):
        ask_grown(grown, endless, QueryLimits(timeout_s=1))
    greedy = "SELECT list(range) FROM range(500000000)"
    with pytest.raises(ConfigurationError, match="Out of Memory"):
        ask_grown(grown, greedy, QueryLimits(memory_mb=64, timeout_s=60))


def test_steps_of_a_plan_can_be_joined_with_the_rest(grown):
    sql = (
        "SELECT DISTINCT s.source FROM step_documents(NULL, 0, 0, 4) AS s "
        "JOIN shards USING (shard) JOIN ledger('tokens') AS l ON l.doc_id = s.doc_id"
    )
    assert ask_grown(grown, sql).rows
    with pytest.raises(ConfigurationError, match=r"has \d+ steps of 4 instances"):
        ask_grown(grown, "SELECT * FROM step_documents(NULL, 0, 100000, 4)")
    with pytest.raises(ConfigurationError, match="has no plan 'nope'"):
        ask_grown(grown, "SELECT * FROM step_documents('nope', 0, 0, 4)")


def test_the_ledger_joins_the_documents_as_the_page_says(grown):
    sql = (
        "SELECT count(*), (SELECT count(*) FROM clean_documents) FROM clean_documents AS c "
        "JOIN ledger('clean') AS l ON c.doc_id = unhex(l.doc_id)"
    )
    ((joined, documents),) = ask_grown(grown, sql).rows
    assert joined == documents > 0


def test_a_link_out_of_the_root_is_not_followed(grown, tmp_path):
    root, settings = grown
    (tmp_path / "secret.txt").write_text("secret")
    link = root.storage.local_path("link.txt")
    link.symlink_to(tmp_path / "secret.txt")
    try:
        with pytest.raises(ConfigurationError, match="Cannot access file"):
            ask(root, settings, f"FROM read_text('{link}')")
    finally:
        link.unlink()
