"""The stage `tokens`: rows, ledger, statistics, vocabulary, and when a part is redone."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from assets.errors import LossLimitError, StageError
from assets.manifest import Manifest
from assets.settings.schema import EngineSettings, LimitSettings
from assets.settings.tokens import TokenizerSettings
from assets.tokenizing.engine import ENGINE_NAMES
from assets.tokenizing.part_ids import TokenPart
from assets.tokenizing.token_parts import iter_token_rows, read_doc_ids, read_lengths
from assets.tokenizing.tokens import materialize_tokens
from assets.tokenizing.train import materialize_tokenizer
from assets.tokenizing.vocabulary import (
    pack_vocabulary,
    read_token_counts,
    read_vocabulary_use,
    unpack_vocabulary,
)
from tests.assets.tokenizing.kept_root import EOS, KeptRoot, part_ids
from tests.shared_data import shared_folder


@pytest.fixture
def kept(tmp_path):
    made = KeptRoot(tmp_path)
    made.land({("s", "a"): ["a b", None, "c"], ("s", "b"): ["", f"d {EOS} e"], ("t", "x"): ["g"]})
    return made


def materialize(kept, **settings):
    made = kept.settings(**settings)
    materialize_tokenizer(kept.root, made, kept.log)
    return materialize_tokens(kept.root, made, kept.log)


def part_of(report, source):
    (entry,) = [entry for entry in report.entries if entry.source == source]
    return entry


def test_rows_are_kept_documents_in_record_order(kept):
    entry = part_of(materialize(kept), "s")
    table = kept.root.read_table(entry.objects["data"])
    clean = Manifest.load(kept.root, "clean").task_entries("s", entry.task)[0]
    ids = kept.root.read_table(clean.objects["data"], ["doc_id"])["doc_id"].to_pylist()
    assert part_ids(kept.root, entry) == [[0, 1, 7], [2, 7], [3, 0, 4, 7]]
    assert table["num_tokens"].to_pylist() == [3, 2, 4]
    assert table["row"].to_pylist() == [0, 2, 4]
    assert table["doc_id"].to_pylist() == [ids[0], ids[2], ids[4]]
    assert table["landed_path"].to_pylist() == ["a", "a", "b"]
    assert table["position"].to_pylist() == [0, 2, 1]
    assert table.schema.metadata[b"dtype"] == b"uint16"


def long_documents(kept, what):
    settings = kept.settings().tokenizer
    limited = dataclasses.replace(settings, max_document_tokens=3, long_documents=what)
    return part_of(materialize(kept, tokenizer=limited), "s")


def ledger_of(kept, entry):
    columns = ["row", "decision", "rule", "value", "threshold"]
    table = kept.root.read_table(entry.objects["ledger"], columns)
    return list(zip(*(table[name].to_pylist() for name in columns), strict=True))


def test_a_long_document_is_dropped_and_counted(kept):
    entry = long_documents(kept, "drop")
    assert kept.root.read_table(entry.objects["data"])["row"].to_pylist() == [0, 2]
    assert entry.statistics["dropped"] == {"empty": 1, "too_many_tokens": 1}
    assert ledger_of(kept, entry)[2:] == [
        (3, "dropped", "empty", 0.0, 1.0),
        (4, "dropped", "too_many_tokens", 4.0, 3.0),
    ]
    assert [span.rows for span in entry.files] == [2, 0]


def test_a_long_document_is_split_into_rows_of_one_document(kept):
    entry = long_documents(kept, "split")
    table = kept.root.read_table(entry.objects["data"])
    assert table["row"].to_pylist() == [0, 2, 4, 4]
    assert part_ids(kept.root, entry) == [[0, 1, 7], [2, 7], [3, 0, 7], [4, 7]]
    assert len(set(table["doc_id"].to_pylist())) == 3
    assert ledger_of(kept, entry)[3:] == [(4, "modified", "split", 4.0, 3.0)]
    counts = entry.statistics
    assert (counts["kept"], counts["modified"], counts["documents"]) == (2, 1, 4)
    assert (counts["pieces"], counts["tokens"], counts["characters"]) == (1, 10, 13)
    assert entry.rows == 4


def test_the_limit_is_part_of_the_fingerprint_only_when_it_is_set(kept):
    plain = part_of(materialize(kept), "s").fingerprint
    assert long_documents(kept, "drop").fingerprint != plain
    assert long_documents(kept, "split").fingerprint not in {
        plain,
        long_documents(kept, "drop").fingerprint,
    }
    settings = dataclasses.replace(kept.settings().tokenizer, long_documents="split")
    assert part_of(materialize(kept, tokenizer=settings), "s").fingerprint == plain


def test_no_byte_depends_on_the_engine(tmp_path):
    text = "hello world <|endoftext|> again 12345"
    path = shared_folder("tokenizers", "allenai_gpt-neox-olmo-dolma-v1_5.json")
    digests, engines = set(), []
    name: Any
    for name in ENGINE_NAMES:
        folder = tmp_path / name
        folder.mkdir()
        made = KeptRoot(folder)
        made.land({("s", "a"): [text] * 3})
        settings = made.settings(tokenizer=TokenizerSettings(path=str(path)))
        engine = dataclasses.replace(EngineSettings(), tokenizer=name)
        settings = dataclasses.replace(settings, engine=engine)
        materialize_tokenizer(made.root, settings, made.log)
        report = materialize_tokens(made.root, settings, made.log)
        digests.add(report.digest)
        engines.append(report.facts["engine"].split()[0])
    assert len(digests) == 1
    assert engines == ["gigatoken", "gigatoken", "fastokens", "tokenizers"]


def test_a_fallback_is_counted_in_the_report(kept):
    facts = materialize(kept).facts
    assert facts["engine"].startswith("tokenizers ")
    assert facts["engine_fallbacks"] == 2
    assert "WordLevel" in facts["engine_fallback_reasons"]
    assert "engine" not in materialize(kept).facts  # nothing was new


def test_the_ledger_has_one_row_per_kept_document(kept):
    entry = part_of(materialize(kept), "s")
    rows = kept.root.read_table(entry.objects["ledger"]).to_pylist()
    assert [(row["row"], row["decision"], row["rule"], row["value"]) for row in rows] == [
        (0, "kept", None, None),
        (2, "kept", None, None),
        (3, "dropped", "empty", 0.0),
        (4, "kept", None, None),
    ]
    assert {row["part"] for row in rows} == {entry.part}


def test_statistics_and_files(kept):
    entry = part_of(materialize(kept), "s")
    assert entry.statistics == {
        "in": 4,
        "kept": 3,
        "modified": 0,
        "dropped": {"empty": 1},
        "quarantined": {},
        "documents": 3,
        "tokens": 9,
        "characters": 13,
        "bytes": 13,
        "words": 6,
        "special_strings": 1,
        "pieces": 0,
        "sampled": 0,
        "lengths": {"2": 2, "4": 1},
        "by_language": {
            "": {
                "documents": 3,
                "tokens": 9,
                "characters": 13,
                "bytes": 13,
                "words": 6,
                "lengths": {"2": 2, "4": 1},
            }
        },
        "lost_characters": 0,
        "lost_bytes": 0,
        "lost": {"empty": {"documents": 1, "bytes": 0, "words": 0, "uncounted": 0}},
    }
    assert entry.rows == 3
    assert [(span.landed_path, span.records, span.rows) for span in entry.files] == [
        ("a", 3, 2),
        ("b", 2, 1),
    ]


def test_vocabulary_use_adds_up_over_parts(kept):
    report = materialize(kept)
    assert read_vocabulary_use(kept.root, report.entries, 8) == 7
    assert read_token_counts(kept.root, report.entries, 8).tolist() == [2, 1, 1, 1, 1, 0, 1, 4]
    assert read_vocabulary_use(kept.root, [part_of(report, "t")], 8) == 2
    counts = np.array([0, 3, 0, 0, 0, 0, 0, 0, 1], np.int64)
    assert unpack_vocabulary(pack_vocabulary(counts), 9).tolist() == (counts > 0).tolist()


def test_row_ranges_are_read_back(kept):
    entry = part_of(materialize(kept), "s")
    (rows,) = iter_token_rows(kept.root, TokenPart.of(entry), 1, 3)
    assert rows.ids.tolist() == [2, 7, 3, 0, 4, 7]
    assert rows.num_tokens.tolist() == [2, 4]
    assert rows.landed_paths == ["a", "b"]
    assert rows.positions.tolist() == [2, 1]
    doc_ids = read_doc_ids(kept.root, entry.objects["data"])
    assert [row.tobytes() for row in rows.doc_ids] == doc_ids[1:]
    assert read_lengths(kept.root, entry).tolist() == [3, 2, 4]


def test_only_new_parts_are_tokenized(kept):
    first = materialize(kept)
    assert (first.num_done, first.num_skipped) == (2, 0)
    kept.land({("s", "c"): ["a"]})
    second = materialize(kept)
    assert (second.num_done, second.num_skipped) == (1, 2)
    assert second.digest != first.digest
    third = materialize(kept)
    assert (third.num_done, third.num_skipped, third.digest) == (0, 3, second.digest)


def test_a_generation_that_is_not_unique_holds_back_the_next_ones(kept):
    kept.land({("s", "c"): ["a"]}, unique=False)
    kept.land({("t", "y"): ["b"]})
    report = materialize(kept)
    assert {entry.generation for entry in report.entries} == {1}
    assert report.waiting == ("generation 2 waits for 1 of 1 tasks of unique (s)",)


def test_processes_do_not_show(kept, tmp_path):
    first = materialize(kept, processes=1)
    folder = tmp_path / "again"
    folder.mkdir()
    other = KeptRoot(folder)
    other.land({("s", "a"): ["a b", None, "c"], ("s", "b"): ["", f"d {EOS} e"], ("t", "x"): ["g"]})
    second = materialize(other, processes=2)
    assert second.digest == first.digest


def test_without_a_tokenizer_the_asset_to_materialize_is_named(kept):
    with pytest.raises(StageError, match="materialize the asset `tokenizer`"):
        materialize_tokens(kept.root, kept.settings(), kept.log)


def test_a_source_that_loses_too_much_fails_after_it_is_committed(kept):
    settings = dataclasses.replace(kept.settings(), limits=LimitSettings(max_dropped=0.1))
    materialize_tokenizer(kept.root, settings, kept.log)
    with pytest.raises(LossLimitError, match=r"tokens: s: 1 of 4 dropped \(25\.00%.*empty 1"):
        materialize_tokens(kept.root, settings, kept.log)
    assert len(Manifest.load(kept.root, "tokens").entries()) == 2


def test_a_large_vocabulary_is_stored_in_four_bytes(tmp_path):
    made = KeptRoot(tmp_path)
    made.land({("s", "a"): ["hello world <|endoftext|> again"]})
    path = shared_folder("tokenizers", "allenai_dolma2.json")
    settings = TokenizerSettings(path=str(path), eos_token="<|endoftext|>")
    entry = part_of(materialize(made, tokenizer=settings), "s")
    table = made.root.read_table(entry.objects["data"])
    assert table.schema.metadata[b"dtype"] == b"uint32"
    ids = part_ids(made.root, entry)[0]
    assert ids.count(100257) == 1
    assert ids[-1] == 100257
    assert entry.statistics["special_strings"] == 1
