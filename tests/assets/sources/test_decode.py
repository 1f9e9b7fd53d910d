from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from assets.document import DOCUMENTS, LEDGER, count_decisions
from assets.errors import LossLimitError
from assets.manifest import PartEntry
from assets.root import Root
from assets.settings.schema import LimitSettings
from assets.settings.sources import SourceSettings
from assets.sources import document_parts
from assets.sources.formats.record import RULES
from assets.sources.tasks import decode_fingerprint
from assets.stage import StageReport, check_accounting, check_limits
from tests.assets.sources.landed import decode, land, rows_of, texts_of
from tests.assets.sources.warc_building import page

GOOD = b'{"text": "good", "id": "g", "url": "http://a.example/", "k": [1]}\n'


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(str(tmp_path / "root"))


def check_parts(root: Root, entries: list[PartEntry]) -> None:
    """Check what holds for any task: one ledger row a record, complete ordinals, true figures."""
    ordinals: dict[str, list[int]] = {}
    for entry in entries:
        documents = root.read_table(entry.objects["data"])
        ledger = root.read_table(entry.objects["ledger"])
        assert documents.schema.equals(DOCUMENTS)
        assert ledger.schema.equals(LEDGER)
        counts = count_decisions(ledger)
        assert {name: entry.statistics[name] for name in counts} == counts
        texts = documents["text"].to_pylist()
        assert entry.rows == entry.statistics["documents"] == counts["kept"] == len(texts)
        assert entry.statistics["characters"] == sum(map(len, texts))
        assert entry.statistics["bytes"] == sum(documents["num_bytes"].to_pylist())
        assert documents["row"].to_pylist() == list(range(len(texts)))
        kept = [row for row in ledger.to_pylist() if row["decision"] == "kept"]
        assert [row["row"] for row in kept] == list(range(len(texts)))
        assert [row["doc_id"] for row in kept] == documents["doc_id"].to_pylist()
        for row in ledger.to_pylist():
            assert (row["source"], row["part"]) == ("test", entry.part)
            if row["decision"] != "kept":
                assert RULES[row["rule"]].decision == row["decision"]
                assert row["row"] is None
                assert json.loads(row["detail"])["reason"]
            ordinals.setdefault(row["doc_id"][:8].hex(), []).append(
                int.from_bytes(row["doc_id"][8:], "big")
            )
        for text, sha, size in zip(
            texts,
            documents["content_hash"].to_pylist(),
            documents["num_bytes"].to_pylist(),
            strict=True,
        ):
            assert hashlib.sha256(text.encode()).digest() == sha
            assert size == len(text.encode())
    for numbers in ordinals.values():
        assert numbers == list(range(len(numbers)))
    spans = [span for entry in entries for span in entry.files]
    assert sum(span.records for span in spans) == sum(map(len, ordinals.values()))
    assert sum(span.rows for span in spans) == sum(entry.rows for entry in entries)
    for file, numbers in ordinals.items():
        own = [span for span in spans if span.file_id == file]
        assert [span.first_ordinal for span in own] == [
            sum(span.records for span in own[:index]) for index in range(len(own))
        ]
        assert sum(span.records for span in own) == len(numbers)


def test_documents_and_ledger_of_a_task(root: Root, tmp_path: Path) -> None:
    first = land(tmp_path, "a/one.jsonl", GOOD + b"bad\n" + GOOD)
    second = land(tmp_path, "b/two.warc", page("hello"))
    (entry,) = entries = decode(root, first, second)
    check_parts(root, entries)
    assert entry.part == f"{entry.task}-000"
    assert entry.objects["data"].name == (
        f"documents/test/{entry.part}-{entry.fingerprint[:16]}.parquet"
    )
    assert entry.objects["ledger"].name.startswith(f"ledger/documents/test/{entry.part}-")
    rows = rows_of(root, entries)
    assert rows[1] == rows[0] | {
        "doc_id": first.file_id + (2).to_bytes(8, "big"),
        "row": 1,
        "position": 3,
    }
    assert rows[0] | {"doc_id": b"", "content_hash": b""} == {
        "doc_id": b"",
        "user_id": "g",
        "source": "test",
        "part": entry.part,
        "row": 0,
        "url": "http://a.example/",
        "landed_path": "a/one.jsonl",
        "position": 1,
        "text": "good",
        "content_type": "text/plain",
        "fetched_at": None,
        "content_hash": b"",
        "num_bytes": 4,
        "metadata": '{"k":[1]}',
    }
    assert rows[2]["content_type"] == "text/html"
    assert rows[2]["fetched_at"].isoformat() == "2024-02-29T12:00:00+00:00"
    lost = rows_of(root, entries, "ledger")[1]
    assert (lost["decision"], lost["rule"], lost["row"]) == ("quarantined", "bad_json", None)
    detail = json.loads(lost["detail"])
    assert (detail["landed_path"], detail["position"]) == ("a/one.jsonl", 2)
    assert entry.statistics == {
        "in": 4,
        "kept": 3,
        "modified": 0,
        "dropped": {},
        "quarantined": {"bad_json": 1},
        "documents": 3,
        "characters": 8 + len("<html>hello</html>"),
        "bytes": 8 + len("<html>hello</html>"),
        "lengths": {"4": 2, "16": 1},
    }


def test_the_same_task_gives_the_same_bytes(tmp_path: Path) -> None:
    files = [land(tmp_path, f"{number}.jsonl", GOOD * number) for number in range(1, 5)]
    first, second = (
        [item.objects for item in decode(Root(str(tmp_path / name)), *files)] for name in "ab"
    )
    assert first == second


def test_a_new_part_starts_when_one_is_full(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps({"text": f"{number} " + "x" * 90}).encode() for number in range(50)]
    files = [
        land(tmp_path, "a.jsonl", b"\n".join([*lines, b"bad"])),
        land(tmp_path, "b.jsonl", b"bad\n" + b"\n".join(lines)),
        land(tmp_path, "c.txt", b"a document larger than a part" * 100),
        land(tmp_path, "d.jsonl", b"\n".join(lines)),
    ]
    (whole,) = decode(Root(str(tmp_path / "other")), *files)
    expected = texts_of(Root(str(tmp_path / "other")), [whole])
    monkeypatch.setattr(document_parts, "PART_BYTES", 1000)
    entries = decode(root, *files)
    check_parts(root, entries)
    assert len(entries) > 10
    assert [entry.part[-4:] for entry in entries[:3]] == ["-000", "-001", "-002"]
    assert texts_of(root, entries) == expected
    assert sorted(entries, key=lambda entry: entry.order_key) == entries
    assert max(entry.statistics["bytes"] for entry in entries) < 1000 + 2900 + 100


def test_a_task_without_any_document_still_has_a_part(root: Root, tmp_path: Path) -> None:
    entries = decode(root, land(tmp_path, "a.jsonl", b""), land(tmp_path, "b.jsonl", b"\n\n"))
    check_parts(root, entries)
    assert [entry.statistics["dropped"] for entry in entries] == [{"empty_file": 2}]


def test_a_file_that_is_not_what_landed_leaves_nothing_behind(root: Root, tmp_path: Path) -> None:
    before = land(tmp_path, "a.jsonl", GOOD * 3)
    changed = land(tmp_path, "b.jsonl", GOOD * 5000, landed=GOOD * 5001)
    changed_too = land(tmp_path, "c.jsonl.gz", gzip.compress(GOOD)[:-4], landed=b"other")
    after = land(tmp_path, "d.jsonl", GOOD)
    entries = decode(root, before, changed, changed_too, after)
    check_parts(root, entries)
    assert texts_of(root, entries) == ["good"] * 4
    lost = [row for row in rows_of(root, entries, "ledger") if row["decision"] != "kept"]
    assert [row["rule"] for row in lost] == ["changed_since_landing"] * 2
    assert [row["doc_id"] for row in lost] == [
        changed.file_id + bytes(8),
        changed_too.file_id + bytes(8),
    ]


def test_files_that_cannot_be_opened(root: Root, tmp_path: Path) -> None:
    gone = land(tmp_path, "gone.jsonl", GOOD)
    Path(gone.location).unlink()
    folder = land(tmp_path, "folder.jsonl", GOOD)
    Path(folder.location).unlink()
    Path(folder.location).mkdir()
    good = land(tmp_path, "good.jsonl", GOOD)
    changed = land(tmp_path, "new.jsonl", GOOD, landed=b"old")
    entries = decode(root, folder, gone, good, changed)
    check_parts(root, entries)
    assert entries[0].statistics["quarantined"] == {
        "changed_since_landing": 1,
        "missing_file": 1,
        "unreadable_file": 1,
    }
    assert texts_of(root, entries) == ["good"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission_is_unreadable(root: Root, tmp_path: Path) -> None:
    closed = land(tmp_path, "a.jsonl", GOOD)
    Path(closed.location).chmod(0)
    entries = decode(root, closed)
    assert entries[0].statistics["quarantined"] == {"unreadable_file": 1}


def test_one_bad_byte_in_a_thousand_lines_costs_one(root: Root, tmp_path: Path) -> None:
    lines = [b'{"text": "row %d"}\n' % number for number in range(1000)]
    lines[10] = lines[10].replace(b"row", b"r\xffw")
    entries = decode(root, land(tmp_path, "a.jsonl", b"".join(lines)))
    check_parts(root, entries)
    assert len(texts_of(root, entries)) == 999
    assert entries[0].statistics["quarantined"] == {"bad_utf8": 1}


def test_metadata_may_change_shape_after_many_rows(root: Root, tmp_path: Path) -> None:
    lines = b'{"text": "a", "m": {"a": 1}}\n' * 1000 + b'{"text": "a", "m": {"b": 2, "a": null}}\n'
    entries = decode(root, land(tmp_path, "a.jsonl", lines))
    found = Counter(row["metadata"] for row in rows_of(root, entries))
    assert found == {'{"m":{"a":1}}': 1000, '{"m":{"a":null,"b":2}}': 1}


def test_duplicate_ids_stay_apart(root: Root, tmp_path: Path) -> None:
    entries = decode(root, land(tmp_path, "a.jsonl", GOOD * 3), land(tmp_path, "b.jsonl", GOOD))
    rows = rows_of(root, entries)
    assert {row["user_id"] for row in rows} == {"g"}
    assert len({row["doc_id"] for row in rows}) == 4


def test_a_source_with_the_wrong_text_field_fails_by_its_limit(root: Root, tmp_path: Path) -> None:
    entries = decode(root, land(tmp_path, "a.jsonl", b'{"content": "x"}\n' * 3))
    report = StageReport(stage="documents", entries=tuple(entries), digest="")
    check_accounting(report)
    with pytest.raises(LossLimitError, match=r"3 of 3 quarantined .* text_missing 3"):
        check_limits(report, LimitSettings())


@settings(deadline=None)  # each example writes and syncs files
@given(
    st.lists(
        st.sampled_from([GOOD, b"\n", b"bad\n", b"[]\n", b'{"text":null}\n', b"\xff\n", b"{}\n"]),
        max_size=40,
    ),
    st.integers(0, 30),
    st.integers(1, 60),
)
def test_any_file_cut_anywhere_has_complete_ordinals(
    lines: list[bytes], cut: int, part_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(document_parts, "PART_BYTES", part_bytes)
        root = Root(f"{folder}/root")
        data = b"".join(lines)
        stored = gzip.compress(data)
        plain = land(Path(folder), "a.jsonl", data)
        cut_off = land(Path(folder), "b.jsonl.gz", stored[: len(stored) - cut])
        entries = decode(root, plain, cut_off, format="jsonl")
        check_parts(root, entries)
        read = sum(entry.statistics["in"] for entry in entries)
        whole = max(sum(1 for line in lines if line.strip()), 1)
        assert read == 2 * whole if cut == 0 else read <= 2 * whole + 1


MEASURE = """
import resource, sys
from pathlib import Path
from assets.root import Root
from tests.assets.sources.landed import decode, land
import assets.sources.formats.read

folder = Path(sys.argv[1])
decode(Root(str(folder / "warm")), land(folder, "warm.jsonl", b'{"text": "a"}'))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
version = land(folder, "large.jsonl", b"")
import dataclasses
version = dataclasses.replace(version, location=sys.argv[2], sha256=sys.argv[3])
entries = decode(Root(str(folder / "root")), version)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, sum(e.rows for e in entries))
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    hashed = hashlib.sha256()
    with path.open("wb") as file:
        for number in range(60):
            lines = b"".join(
                b'{"text": "%s", "id": %d}\n'
                % (hashlib.sha256(b"%d" % n).hexdigest().encode() * 60, n)
                for n in range(number * 1000, number * 1000 + 1000)
            )
            hashed.update(lines)
            file.write(lines)
    assert path.stat().st_size > 200 << 20
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path), str(path), hashed.hexdigest()],
        capture_output=True,
        check=True,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    grown_kib, rows = map(int, done.stdout.split())
    assert rows == 60_000
    assert grown_kib < 200 << 10


def test_batches_of_nothing_have_the_schema() -> None:
    rows: list[tuple[Any, ...]] = []
    assert document_parts._to_batch(rows, DOCUMENTS).schema.equals(DOCUMENTS)
    assert isinstance(document_parts._to_batch(rows, LEDGER), pa.RecordBatch)


def test_the_limit_on_records_is_in_a_fingerprint_only_where_it_was_set() -> None:
    source = SourceSettings(name="test", paths=("*",))
    assert decode_fingerprint(source, ()) == decode_fingerprint(source, (), (), 1.0)
    limits = (1.0, 2.0, 0.25, None)
    assert len({decode_fingerprint(source, (), (), limit) for limit in limits}) == len(limits)


def test_documents_that_are_not_whole_are_counted_and_columns_of_the_user_are_not(
    root: Root, tmp_path: Path
) -> None:
    cut = land(tmp_path, "cut.warc", page("hello", extra="WARC-Truncated: length\r\n"))
    undecodable = land(tmp_path, "u.txt", "Żółć Ωμέγα ".encode() * 9 + b"\xff")
    own = land(tmp_path, "own.jsonl", b'{"text": "good", "truncated": true, "num_replaced": 1}\n')
    statistics = [entry.statistics for entry in decode(root, cut, undecodable, own)]
    assert [each["marked"] for each in statistics] == [{"body_cut": 1, "undecodable": 1}]
    assert "marked" not in decode(root, own)[0].statistics
