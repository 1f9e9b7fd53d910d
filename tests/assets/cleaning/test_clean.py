"""The stage: parts stay beside their documents, figures add up, fingerprints know what matters."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from assets.cleaning.clean import (
    CleanTask,
    clean_fingerprint,
    clean_task,
    materialize_clean,
    part_statistics,
)
from assets.cleaning.pipeline import clean_table
from assets.document import DOCUMENTS
from assets.errors import IntegrityError, LossLimitError
from assets.manifest import PartEntry
from assets.root import Root
from assets.settings.cleaning import (
    CleaningRules,
    CleaningSettings,
    CodeRules,
    GopherQualityRules,
)
from assets.settings.extraction import PageLimits
from assets.settings.schema import EngineSettings, LimitSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources.documents import materialize_documents
from assets.sources.landing import land as land_sources
from tests.assets.cleaning.given_documents import documents_of
from tests.assets.cleaning.test_pipeline import ENGLISH, GERMAN
from tests.assets.sources.landed import decode, land

CLEANING = CleaningSettings()
SOURCE = SourceSettings(name="test", paths=("*",), profile="text")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(str(tmp_path / "root"))


def decoded(root: Root, folder: Path, texts: list[str]) -> list[PartEntry]:
    lines = "".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts))
    return decode(root, land(folder, "a.jsonl", lines.encode()), format="jsonl")


def task_of(root: Root, documents: list[PartEntry], source: SourceSettings = SOURCE) -> CleanTask:
    return CleanTask(
        root_url=root.url,
        source=source,
        cleaning=CLEANING,
        fingerprint=clean_fingerprint(documents[0], source, CLEANING),
        documents=tuple(documents),
    )


def test_a_part_has_the_rows_of_its_documents(root, tmp_path):
    documents = decoded(root, tmp_path, [ENGLISH, "short", GERMAN + "\r\n", ""])
    (entry,) = clean_task(task_of(root, documents))
    assert (entry.stage, entry.part, entry.rows) == ("clean", documents[0].part, 3)
    assert entry.files == documents[0].files
    clean = root.read_table(entry.objects["data"])
    ledger = root.read_table(entry.objects["ledger"])
    source = root.read_table(documents[0].objects["data"])
    for column in ("doc_id", "part", "row", "content_hash", "user_id"):
        assert clean[column].equals(source[column])
    assert ledger["doc_id"].to_pylist() == source["doc_id"].to_pylist()
    assert entry.statistics == {
        "in": 3,
        "kept": 1,
        "modified": 1,
        "dropped": {"gopher_short_doc": 1},
        "quarantined": {},
        "documents": 2,
        "characters": len(ENGLISH) + len(GERMAN) + 1,
        "bytes": len(ENGLISH) + len(GERMAN.encode()) + 1,
        "words": len(ENGLISH.split()) + len(GERMAN.split()),
        "languages": {"de": 1, "en": 1},
        "language_below": part_statistics(clean, ledger)["language_below"],
        "lengths": part_statistics(clean, ledger)["lengths"],
        "by_language": {
            language: {
                "documents": 1,
                "characters": len(text),
                "bytes": len(text.encode()),
                "words": len(text.split()),
                "lengths": {str(1 << len(text.encode()).bit_length() - 1): 1},
            }
            for language, text in (("de", GERMAN + "\n"), ("en", ENGLISH))
        },
        "lost": {
            "gopher_short_doc": {
                "documents": 1,
                "bytes": 5,
                "words": 1,
                "uncounted": 0,
            }
        },
        "pii": {},
        "changes": {"line_endings": 1},
    }


def test_changes_of_texts_that_stay_are_summed_up_by_kind():
    texts = [f"{ENGLISH}\r\n\r\n", f"{GERMAN}\0\0", "short\r\n"]
    clean, ledger = clean_table(documents_of(texts), source=SOURCE, cleaning=CLEANING)
    assert part_statistics(clean, ledger)["changes"] == {"control": 2, "line_endings": 2}


def test_figures_of_a_part_are_the_sums_of_its_row_groups(root, tmp_path, monkeypatch):
    monkeypatch.setattr("assets.parquet_files.ROW_GROUP_BYTES", 1)
    documents = decoded(root, tmp_path, [ENGLISH])[0]
    texts = [ENGLISH, GERMAN, "short", ENGLISH + "\r\n"] * 3
    batches = documents_of(texts).to_batches(max_chunksize=5)
    data = root.publish_table("documents/test/groups.parquet", DOCUMENTS, batches)
    grouped = dataclasses.replace(documents, rows=len(texts), objects={"data": data})
    (entry,) = clean_task(task_of(root, [grouped]))
    clean = root.read_table(entry.objects["data"])
    ledger = root.read_table(entry.objects["ledger"])
    assert len(list(root.read_batches(entry.objects["data"]))) == 3
    assert clean["row"].to_pylist() == ledger["row"].to_pylist() == list(range(12))
    assert entry.statistics == part_statistics(clean, ledger)


def test_a_documents_part_with_other_rows_is_refused(root, tmp_path):
    documents = decoded(root, tmp_path, [ENGLISH])
    wrong = [dataclasses.replace(documents[0], rows=2)]
    with pytest.raises(IntegrityError, match="1 rows, its entry says 2"):
        clean_task(task_of(root, wrong))


def _with_rules(**rules) -> CleaningSettings:
    return CleaningSettings(rules=CleaningRules(**rules))


@pytest.mark.parametrize(
    ("changed", "profiles"),
    [
        (CleaningSettings(language_threshold=0.5), {"web", "text"}),
        (CleaningSettings(page_limits=PageLimits(max_depth=9)), {"web"}),
        (_with_rules(gopher_quality=GopherQualityRules(min_words=9)), {"web", "text"}),
        (_with_rules(gopher_quality=GopherQualityRules(enabled=False)), {"web", "text"}),
        (_with_rules(code=CodeRules(max_line_length=9)), {"code"}),
    ],
)
def test_a_setting_counts_for_the_profiles_that_use_it(root, tmp_path, changed, profiles):
    (entry,) = decoded(root, tmp_path, [ENGLISH])
    found = set()
    for profile in ("web", "text", "code", "none"):
        source = dataclasses.replace(SOURCE, profile=profile)
        before = clean_fingerprint(entry, source, CLEANING)
        if clean_fingerprint(entry, source, changed) != before:
            found.add(profile)
    assert found == profiles


def test_what_else_is_in_a_fingerprint(root, tmp_path):
    (entry,) = decoded(root, tmp_path, [ENGLISH])
    base = clean_fingerprint(entry, SOURCE, CLEANING)

    def of(**changes) -> str:
        return clean_fingerprint(entry, dataclasses.replace(SOURCE, **changes), CLEANING)

    assert of(languages=("en", "de")) == of(languages=("de", "en", "de")) != base
    assert of(profile="web") != base
    assert of(priority=5, licence="MIT", name="other") == base
    other = dataclasses.replace(entry, fingerprint="0" * 64)
    assert clean_fingerprint(other, SOURCE, CLEANING) != base
    # Thresholds of rules that are off do not count.
    off = _with_rules(gopher_quality=GopherQualityRules(enabled=False))
    also = _with_rules(gopher_quality=GopherQualityRules(enabled=False, min_words=9))
    assert clean_fingerprint(entry, SOURCE, off) == clean_fingerprint(entry, SOURCE, also)


def settings_of(folder: Path, cleaning: CleaningSettings = CLEANING, **limits) -> Settings:
    profiles: list[tuple[str, Any]] = [("code", "code"), ("prose", "text")]
    sources = tuple(
        SourceSettings(
            name=name, paths=(str(folder / f"{name}/*.jsonl"),), format="jsonl", profile=profile
        )
        for name, profile in profiles
    )
    return Settings(
        root=str(folder / "root"),
        sources=sources,
        cleaning=cleaning,
        tokenizer=TokenizerSettings(path="none.json"),
        engine=EngineSettings(processes=2),
        limits=LimitSettings(**limits),
        base_dir=str(folder),
    )


def landed_corpus(folder: Path) -> None:
    for name, texts in (("prose", [ENGLISH, "short"]), ("code", ["x = 1\n" * 9, "{};;x\n" * 9])):
        (folder / name).mkdir(exist_ok=True)
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (folder / name / "a.jsonl").write_text(lines)


def test_the_stage_does_what_changed_and_no_more(root, tmp_path):
    landed_corpus(tmp_path)
    settings, both = settings_of(tmp_path), ("code", "prose")
    log = land_sources(root, settings)
    report = materialize_clean(root, settings, log, both)
    assert report.num_done == 0
    assert len(report.waiting) == 2
    assert "materialize source_documents" in report.waiting[0]

    materialize_documents(root, settings, log, both)
    report = materialize_clean(root, settings, log, both)
    assert (report.num_done, report.num_skipped, report.waiting) == (2, 0, ())
    figures = report.by_source()
    assert figures["prose"]["dropped"] == {"gopher_short_doc": 1}
    assert figures["code"]["dropped"] == {"code_too_few_alphanumeric": 1}
    again = materialize_clean(root, settings, log, both)
    assert (again.num_done, again.num_skipped, again.digest) == (0, 2, report.digest)

    looser = _with_rules(gopher_quality=GopherQualityRules(min_words=1, min_stop_words=0))
    report = materialize_clean(root, settings_of(tmp_path, looser), log, both)
    assert (report.num_done, report.num_skipped) == (1, 1)
    assert report.by_source()["prose"]["dropped"] == {}


def test_a_loss_above_the_limit_stops_the_run_and_keeps_the_work(root, tmp_path):
    landed_corpus(tmp_path)
    settings = settings_of(tmp_path, max_dropped=0.4)
    log = land_sources(root, settings)
    materialize_documents(root, settings, log, ("code", "prose"))
    with pytest.raises(LossLimitError, match=r"prose: 1 of 2 dropped .* gopher_short_doc 1"):
        materialize_clean(root, settings, log, ("prose",))
    looser = settings_of(tmp_path)
    assert materialize_clean(root, looser, log, ("prose",)).num_done == 0
