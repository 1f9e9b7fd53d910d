from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from assets.document import LEDGER
from assets.errors import IntegrityError
from assets.manifest import Manifest, PartEntry, commit, list_segments
from assets.root import Root
from assets.settings.ordering import OrderingSettings
from assets.settings.tokens import ShardingSettings
from assets.upkeep.finding import Finding, as_finding
from assets.upkeep.verify import verify
from assets.upkeep.verify_texts import Texts
from tests.assets.ordering.grown_corpus import GrownCorpus
from tests.journey.corpus import story, write_jsonl


def flip(path: Path, at: int = -2) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def only(folder: Path, pattern: str) -> Path:
    """The first file that matches, in order of name."""
    return min(folder.glob(pattern))


def found_in(grown: GrownCorpus, **how: Any) -> list[Finding]:
    return verify(grown.root, grown.settings, **how)


@pytest.fixture(scope="session")
def _two_generations(
    _first_generation: GrownCorpus, tmp_path_factory: pytest.TempPathFactory
) -> GrownCorpus:
    made = _first_generation.copy(tmp_path_factory.mktemp("two"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OLMO_DATA_CACHE", str(tmp_path_factory.mktemp("cache")))
        made.publish()
        write_jsonl(made.corpus / "stories/a.jsonl.gz", [story(seed) for seed in range(1, 12)])
        write_jsonl(made.corpus / "stories/d.jsonl.gz", [story(n) for n in range(200, 220)])
        made.cut()
        made.publish()
    return made


@pytest.fixture
def two_generations(_two_generations: GrownCorpus, tmp_path: Path) -> GrownCorpus:
    """A root with a second generation that withdrew a document, and two plans."""
    return _two_generations.copy(tmp_path / "two")


@pytest.mark.parametrize("full", [True, False])
def test_a_sound_root_has_no_findings(two_generations: GrownCorpus, full: bool) -> None:
    steps: list[str] = []
    assert found_in(two_generations, full=full, progress=steps.append) == []
    assert verify(two_generations.root, full=full) == []
    assert steps[0] == "landing log"
    assert "clean: 6 objects of 3 parts" in steps


def test_a_root_that_is_not_there_is_not_sound(tmp_path: Path) -> None:
    (finding,) = verify(Root(str(tmp_path / "mistyped")))
    assert finding.sentence.endswith("mistyped: nothing has landed in this root")


def test_an_unpublished_root_is_verified_as_far_as_it_is(grown: GrownCorpus) -> None:
    (grown.dataset / "dataset.json").unlink()
    (lost,) = found_in(grown)
    assert lost.sentence.startswith("data set: dataset.json: missing, although there are plans (")
    shutil.rmtree(grown.dataset / "plans")
    assert found_in(grown) == []
    flip(only(grown.dataset, "shards/stories/*.docs.npy"))
    assert {item.area for item in found_in(grown)} == {"shards"}


@pytest.mark.parametrize(
    ("pattern", "area"),
    [
        ("landings/00000001.json", "landings"),
        ("clean/manifest.json", "manifests"),
        ("documents/stories/*.parquet", "objects"),
        ("ledger/clean/stories/*.parquet", "objects"),
        ("signatures/books/*.parquet", "objects"),
        ("unique/books/*.parquet", "objects"),
        ("dedup/*/hashes.npy", "objects"),
        ("dedup/*/withdrawn.parquet", "objects"),
        ("tokens/books/*.vocabulary", "objects"),
        ("dataset/dataset.json", "data set"),
        ("dataset/index/00000002.json", "data set"),
        ("dataset/shards/stories/*.npy", "data set"),
        ("dataset/shards/stories/*.docs.npy", "data set"),
        ("dataset/shards/stories/*.crc", "data set"),
        ("dataset/shards/stories/*.csv.gz", "data set"),
        ("dataset/shards/stories/*.meta.json", "data set"),
        ("dataset/plans/*/plan.json", "data set"),
        ("dataset/plans/*/shards.jsonl", "data set"),
        ("dataset/plans/*/global_indices.npy", "data set"),
        ("dataset/plans/*/provenance.csv", "data set"),
        ("dataset/tokenizer/*/tokenizer.json", "data set"),
        ("dataset/takedowns/00000001.json", "takedowns"),
    ],
)
def test_a_flipped_byte_is_found_and_its_file_is_named(
    two_generations: GrownCorpus, pattern: str, area: str
) -> None:
    path = only(two_generations.folder / "root", pattern)
    flip(path)
    findings = found_in(two_generations)
    assert area in {item.area for item in findings}
    assert any(path.name in item.sentence for item in findings)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(
    "pattern",
    [
        "clean/stories/*.parquet",
        "dedup/*/run.json",
        "dataset/shards/books/*.npy",
        "dataset/shards/books/*.crc",
        "dataset/plans/*/global_indices.npy",
        "dataset/plans/*/provenance.csv",
        "dataset/plans/*/plan.json",
        "dataset/index/00000001.json",
    ],
)
def test_a_missing_file_is_found_without_reading_too(
    two_generations: GrownCorpus, pattern: str, full: bool
) -> None:
    path = only(two_generations.folder / "root", pattern)
    path.unlink()
    findings = found_in(two_generations, full=full)
    named = path.stem if "index" not in pattern else "1 is missing"
    assert any(named in item.sentence for item in findings)


def test_a_plan_that_nothing_names_is_named(grown: GrownCorpus) -> None:
    shutil.copytree(only(grown.dataset, "plans/*"), grown.dataset / "plans/0123456789abcdef")
    (finding,) = found_in(grown)
    assert finding.name == "plans/0123456789abcdef"
    assert finding.message.startswith("no plan that dataset.json names")


@pytest.mark.parametrize("texts", ["all", "none"])
def test_the_tokenizer_of_a_root_is_verified_whatever_is_decoded(
    grown: GrownCorpus, texts: Texts
) -> None:
    pin = grown.folder / "root/models/tokenizer/pin.json"
    tokenizer = only(grown.folder, "root/models/tokenizer/*/tokenizer.json")
    flip(tokenizer)
    (finding,) = found_in(grown, texts=texts)
    assert "tokenizer.json" in finding.message
    tokenizer.unlink()
    (finding,) = found_in(grown, texts=texts)
    assert finding.message.endswith("tokenizer.json is missing")
    pin.write_bytes(b"{}")
    (finding,) = found_in(grown, texts=texts)
    assert "pin.json is damaged" in finding.message
    pin.unlink()
    (finding,) = found_in(grown, texts=texts)
    assert finding.message.startswith("missing, although there are token parts")


def test_a_missing_shard_is_told_in_words(grown: GrownCorpus) -> None:
    only(grown.dataset, "shards/stories/*.docs.npy").unlink()
    sentences = [item.sentence for item in found_in(grown)]
    assert any(sentence.endswith(".docs.npy is missing") for sentence in sentences)
    assert not any("Errno" in sentence for sentence in sentences)


def test_what_an_error_begins_with_is_not_said_twice() -> None:
    findings: list[Finding] = []
    for error in (
        IntegrityError("x.npy: token 4: other ids"),
        PermissionError(13, "Permission denied", "x.npy"),
    ):
        with as_finding("shards", "x.npy", findings):
            raise error
    assert [item.sentence for item in findings] == [
        "shards: x.npy: token 4: other ids",
        "shards: x.npy: Permission denied",
    ]


def test_a_landing_of_an_unknown_kind_is_damaged(grown: GrownCorpus) -> None:
    record = only(grown.folder, "root/landings/*.json")
    record.write_bytes(record.read_bytes().replace(b'"op":"add"', b'"op":"adq"', 1))
    assert "no file can be 'adq'" in found_in(grown)[0].message


def test_a_damaged_segment_of_a_manifest_is_named(grown: GrownCorpus) -> None:
    (segment,) = list_segments(grown.root, "unique")
    flip(grown.folder / "root" / segment.name)
    assert any(
        item.area == "manifests" and segment.name in item.message for item in found_in(grown)
    )


def recommit(grown: GrownCorpus, stage: str, change: Callable[[PartEntry], PartEntry]) -> PartEntry:
    """Commit a changed entry in place of a live one, as a faulty stage would."""
    entries = Manifest.load(grown.root, stage).entries()
    entry = next(item for item in entries if item.source == "stories" and item.generation == 1)
    changed = dataclasses.replace(change(entry), fingerprint="faulty")
    commit(grown.root, stage, [changed])
    return changed


def with_ledger(
    grown: GrownCorpus, entry: PartEntry, change: Callable[[pa.Table], pa.Table], **counts: int
) -> PartEntry:
    ledger = change(grown.root.read_table(entry.objects["ledger"]))
    reference = grown.root.publish_table(f"ledger/{entry.stage}/faulty.parquet", LEDGER, ledger)
    statistics = {**entry.statistics}
    for name, difference in counts.items():
        statistics[name.rstrip("_")] += difference
    objects = {**entry.objects, "ledger": reference}
    return dataclasses.replace(entry, objects=objects, statistics=statistics)


def kept_rows(table: pa.Table) -> list[int]:
    return [
        number
        for number, decision in enumerate(table["decision"].to_pylist())
        if decision == "kept"
    ]


def without_a_kept_row(table: pa.Table) -> pa.Table:
    gone = kept_rows(table)[0]
    return pa.concat_tables([table.slice(0, gone), table.slice(gone + 1)])


def with_a_row_twice(table: pa.Table) -> pa.Table:
    twice = kept_rows(table)[0]
    return pa.concat_tables([table.slice(0, twice + 1), table.slice(twice)])


@pytest.mark.parametrize("stage", ["documents", "clean", "unique", "tokens"])
@pytest.mark.parametrize(
    ("change", "difference"), [(without_a_kept_row, -1), (with_a_row_twice, 1)]
)
def test_a_record_without_a_ledger_row_or_with_two_is_found(
    grown: GrownCorpus, stage: str, change: Callable[[pa.Table], pa.Table], difference: int
) -> None:
    recommit(
        grown,
        stage,
        lambda entry: with_ledger(grown, entry, change, in_=difference, kept=difference),
    )
    findings = [item for item in found_in(grown) if item.area == "ledgers"]
    assert any(f"{stage}: ledger: " in item.message for item in findings), findings
    assert "the first difference is at" in findings[0].message


def test_a_ledger_that_counts_otherwise_than_its_manifest_is_found(grown: GrownCorpus) -> None:
    recommit(grown, "clean", lambda entry: with_ledger(grown, entry, without_a_kept_row))
    findings = [item for item in found_in(grown) if item.area == "ledgers"]
    assert any("the ledger counts" in item.message for item in findings)


def test_a_row_of_another_part_is_found(grown: GrownCorpus) -> None:
    def change(table: pa.Table) -> pa.Table:
        parts = pa.array(["other", *table["part"].to_pylist()[1:]])
        return table.set_column(table.schema.get_field_index("part"), LEDGER.field("part"), parts)

    recommit(grown, "clean", lambda entry: with_ledger(grown, entry, change))
    assert any("rows of another part" in item.message for item in found_in(grown))


def test_counts_from_stage_to_stage_are_compared_for_what_is_published(
    grown: GrownCorpus,
) -> None:
    def change(entry: PartEntry) -> PartEntry:
        kept = entry.statistics["kept"] - 1
        statistics = {**entry.statistics, "in": entry.statistics["in"] - 1, "kept": kept}
        return dataclasses.replace(entry, statistics=statistics)

    recommit(grown, "unique", change)
    findings = found_in(grown, full=False)
    assert any("left clean" in item.message for item in findings)


def test_shards_with_other_documents_than_the_token_parts_are_found(grown: GrownCorpus) -> None:
    seeded = dataclasses.replace(
        grown.settings,
        sharding=ShardingSettings(max_tokens=1500, min_tokens=400, document_order="seeded"),
    )
    findings = verify(grown.root, seeded, full=False)
    assert {item.area for item in findings} == {"shards"}
    assert all("not those of the token parts" in item.message for item in findings)


def test_a_withdrawal_that_is_not_in_the_log_is_found(two_generations: GrownCorpus) -> None:
    (two_generations.dataset / "takedowns/00000001.json").unlink()
    findings = found_in(two_generations, full=False)
    assert any("1 records are missing" in item.message for item in findings)


def test_every_fault_is_named(two_generations: GrownCorpus) -> None:
    two_generations.publish(ordering=OrderingSettings(sequence_length=32, seed=1))
    folder = two_generations.folder / "root"
    damaged = [
        *sorted(folder.glob("clean/stories/*.parquet")),
        *sorted(folder.glob("dataset/shards/*/*.crc")),
        *sorted(folder.glob("dataset/plans/*/global_indices.npy")),
    ]
    for path in damaged:
        flip(path)
    sentences = "\n".join(item.sentence for item in found_in(two_generations))
    assert len(damaged) > 8
    for path in damaged:
        assert path.relative_to(folder).as_posix().removeprefix("dataset/") in sentences
