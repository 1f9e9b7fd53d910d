"""The faults that users of other tools report, all in one folder, from landing to batches.

Each record of the folder is told by name or becomes a document; nothing stops the rest; and the
result is the same for one process and two.
"""

import bz2
import dataclasses
import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from assets.errors import LossLimitError
from assets.manifest import Manifest
from assets.root import Root
from assets.settings.cleaning import CleaningSettings
from assets.settings.schema import LimitSettings
from assets.settings.sources import SourceSettings
from assets.sources.landing import land
from assets.upkeep.verify import verify
from olmo_loader import build_train_dataloader
from tests.assets.sources.warc_building import http, page, record
from tests.journey.corpus import content_of, make_settings, run_journey, story

EOS = "<|endoftext|>"
NUM_GOOD = 30


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OLMO_DATA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def line(text, **fields):
    return json.dumps({"text": text, **fields}).encode() + b"\n"


def write(folder, name, data):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def make_lines(folder):
    """jsonl: bad lines between good ones, bombs, cut and damaged compressed files."""
    good = b"".join(line(story(seed), id=str(seed)) for seed in range(NUM_GOOD))
    write(folder, "lines/a-good.jsonl", good)
    faults = [
        b"{broken\n",
        b'{"text": null}\n',
        b'{"content": "x"}\n',
        b'{"text": ""}\n',
        b'{"text": 7}\n',
        b"[1]\n",
        b'{"text": "half a pair: \\ud83d"}\n',
        b'{"text": "x", "id": NaN}\n',
        b'{"text": "caf\xe9"}\n',
        b"[" * 100_000 + b"\n",
    ]
    write(
        folder,
        "lines/b-faults.jsonl",
        b"".join(fault + line(story(100 + number)) for number, fault in enumerate(faults)),
    )
    cut = gzip.compress(b"".join(line(story(200 + number)) for number in range(5)), mtime=0)
    write(folder, "lines/c-cut.jsonl.gz", cut[:-20])
    write(folder, "lines/d-bomb.jsonl.bz2", bz2.compress(b'{"text": "' + b"a" * (90 << 20)))
    write(folder, "lines/e-empty.jsonl", b"")
    same_ids = line(story(300), id="7") + line(story(301), id="7") + line(story(300), id="7")
    write(folder, "lines/f-same-ids.jsonl", same_ids)


def make_texts(folder):
    """Texts that break splitters, boundaries and encodings."""
    odd = {
        "nothing": "…",
        "bom": "\ufeff" + story(400),
        "crlf": story(401).replace("\n", "\r\n"),
        "nul": story(402).replace("river", "ri\0ver"),
        "eos": story(403).replace(".", f" {EOS}"),
        "one-letter": "a" * 300_000,
        "emoji": "👩‍👩‍👧‍👦 " * 5_000,
        "blank": " \n\t \n",
        "long": story(404, 4_000),
    }
    for name, text in odd.items():
        write(folder, f"odd/{name}.txt", text.encode())
    write(folder, "odd/latin1.txt", story(405).replace("summer", "été").encode("latin-1"))


def make_crawl(folder):
    body = "<p>" + "</p><p>".join(story(500).split("\n")) + "</p>"
    chunk = f"<html>{body}</html>".encode()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(chunk), chunk)
    records = [
        page(body, url="http://a.example/no-digest"),
        page("<p>" + story(501).replace(".", ".</p><p>"), url="<http://a.example/wget>"),
        record(http(chunked, extra="Transfer-Encoding: chunked\r\n"), url="http://a.example/c"),
        record(
            http(gzip.compress(chunk, mtime=0), extra="Content-Encoding: gzip\r\n"),
            url="http://a.example/z",
        ),
        page("<div>" * 50_000 + story(502), url="http://a.example/deep"),
        record(http(b"\x89PNG", "image/png"), url="http://a.example/i.png"),
        record(http(chunk, "text/html; charset=x-klingon"), url="http://a.example/klingon"),
        record(b"x", kind="revisit", url="http://a.example/again"),
        page(body, url="http://a.example/cut", length="1000000"),
    ]
    write(folder, "crawl/a.warc", b"".join(records))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    corpus = tmp_path_factory.mktemp("corpus")
    make_lines(corpus)
    make_texts(corpus)
    make_crawl(corpus)
    return corpus


def settings_of(folder, root, processes=1):
    return dataclasses.replace(
        make_settings(folder, root, processes=processes),
        sources=(
            SourceSettings(name="lines", paths=("lines/*",), profile="text"),
            SourceSettings(name="odd", paths=("odd/*",), profile="text"),
            SourceSettings(name="crawl", paths=("crawl/*",), profile="web"),
        ),
        cleaning=CleaningSettings(language_threshold=0.2),
        limits=LimitSettings(max_quarantined=1.0),
    )


@pytest.fixture(scope="module")
def settings(folder, tmp_path_factory):
    """The settings of a root through which the folder has gone."""
    done = settings_of(folder, tmp_path_factory.mktemp("root"))
    run_journey(done)
    return done


def decisions(root, stage):
    """Return {(source, decision, rule): number} over the live parts of a stage."""
    found: Counter[tuple[str, str, str | None]] = Counter()
    for entry in Manifest.load(root, stage).entries():
        if "ledger" not in entry.objects:
            continue  # what `unique` keeps of a generation
        rows = root.read_table(entry.objects["ledger"], columns=["decision", "rule"]).to_pylist()
        found.update((entry.source, row["decision"], row["rule"]) for row in rows)
    return found


def test_every_fault_is_told_by_name_and_stops_nothing(settings):
    root = Root(settings.root)
    documents = decisions(root, "documents")
    lines = {rule: n for (name, _, rule), n in documents.items() if name == "lines" and rule}
    assert lines == {
        "bad_json": 2,
        "text_null": 1,
        "text_missing": 1,
        "text_empty": 1,
        "text_not_string": 1,
        "not_an_object": 1,
        "lone_surrogate": 1,
        "nan_id": 1,
        "bad_utf8": 1,
        "truncated": 1,
        "decompression_bomb": 1,
        "empty_file": 1,
    }
    crawl = {rule: n for (name, _, rule), n in documents.items() if name == "crawl" and rule}
    assert set(crawl) == {"not_text", "revisit", "truncated"}
    clean = decisions(root, "clean")
    assert clean["odd", "dropped", "empty"] == 2
    assert clean["crawl", "quarantined", "page_too_deep"] == 1
    unique = decisions(root, "unique")
    assert unique["lines", "dropped", "exact_duplicate"] == 1
    assert verify(root, settings) == []


def test_every_stage_accounts_for_what_the_one_before_left(settings):
    root = Root(settings.root)
    left = None
    for stage in ("documents", "clean", "unique", "tokens"):
        counts = decisions(root, stage)
        if left is not None:
            assert sum(counts.values()) == left, stage
        left = sum(n for (_, decision, _), n in counts.items() if decision in ("kept", "modified"))


def test_no_text_makes_a_boundary(settings):
    data_set = Path(settings.root) / "dataset"
    (file,) = (data_set / "tokenizer").glob("*/tokenizer.json")
    eos = Tokenizer.from_file(str(file)).token_to_id(EOS)
    assert eos is not None
    num_eos = num_documents = 0
    for shard in (data_set / "shards").glob("*/*.npy"):
        if not shard.name.endswith(".docs.npy"):
            num_eos += int((np.fromfile(shard, np.uint16) == eos).sum())
            num_documents += shard.with_suffix(".docs.npy").stat().st_size // 24
    assert num_eos == num_documents > NUM_GOOD
    loader = build_train_dataloader(data_set, global_batch_size=2)
    assert len(list(loader)) > NUM_GOOD


def test_faults_are_the_same_for_any_number_of_processes(folder, settings, tmp_path):
    two = run_journey(settings_of(folder, tmp_path / "two", processes=2))
    assert content_of(two) == content_of(Root(settings.root))


def test_losses_above_the_limit_stop_the_run_and_name_the_source(folder, tmp_path):
    settings = dataclasses.replace(
        settings_of(folder, tmp_path / "root"), limits=LimitSettings(max_quarantined=0.01)
    )
    with pytest.raises(LossLimitError, match=r"lines.*bad_json"):
        run_journey(settings)
    root = Root(settings.root)
    assert land(root, settings).last_generation == 1
    assert Manifest.load(root, "documents").entries()
    assert root.storage.size("dataset/dataset.json") is None
