from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from assets.errors import ConfigurationError, IntegrityError, PinnedRootError
from assets.manifest import PartEntry, commit
from assets.pins import changed_pins, check_pins, pinned_settings, pins_to_publish
from assets.root import Root
from assets.settings.cleaning import CleaningSettings
from assets.settings.dedup import DedupSettings, MinHashSettings, RepeatedLinesSettings
from assets.settings.ordering import OrderingSettings
from assets.settings.schema import EngineSettings, LimitSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import ShardingSettings, TokenizerSettings, TrainTokenizerSettings
from olmo_loader.dataset_file import DatasetFile
from olmo_loader.shard_index import IndexSnapshot

WIKI = SourceSettings(name="wiki", paths=("wiki/*",), profile="text")
TRAINED = TokenizerSettings(train=TrainTokenizerSettings(vocab_size=500))


def settings(**changes: Any) -> Settings:
    return Settings(**{"root": "r", "sources": (WIKI,), "tokenizer": TRAINED, **changes})


def published_with(base: Settings, *, landed: tuple[str, ...] = ("wiki",)) -> dict[str, Any]:
    return pins_to_publish(base, landed_sources=landed, tokenizer_sha256="ab" * 32, published={})


def source(**changes: Any) -> tuple[SourceSettings, ...]:
    return (dataclasses.replace(WIKI, **changes),)


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({"sharding": ShardingSettings(max_tokens=300_000)}, ["sharding.max_tokens"]),
        ({"cleaning": CleaningSettings(language_threshold=0.5)}, ["cleaning.language_threshold"]),
        (
            {"dedup": DedupSettings(minhash=MinHashSettings(bands=16, threshold=0.7))},
            ["dedup.minhash.bands", "dedup.minhash.threshold"],
        ),
        ({"dedup": DedupSettings(minhash=None)}, ["dedup.minhash"]),
        ({"sources": source(profile="web")}, ["sources[wiki].profile"]),
        ({"sources": source(priority=3)}, ["sources[wiki].priority"]),
        ({"sources": source(languages=("en", "de"))}, ["sources[wiki].languages"]),
        ({"sources": source(text_field="body")}, ["sources[wiki].text_field"]),
        (
            {"tokenizer": TokenizerSettings(train=TrainTokenizerSettings(vocab_size=600))},
            ["tokenizer.train.vocab_size"],
        ),
    ],
)
def test_a_setting_that_decides_a_byte_is_pinned(changes: dict[str, Any], keys: list[str]) -> None:
    held = published_with(settings())
    assert list(changed_pins(held, pinned_settings(settings(**changes)))) == keys


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ordering": OrderingSettings(sequence_length=8, seed=1)},
        {"engine": EngineSettings(processes=7)},
        {"limits": LimitSettings(max_quarantined=0.5)},
        {"dedup": DedupSettings(minhash=MinHashSettings(max_source_loss=0.2))},
        {"sources": source(licence="CC0-1.0")},
        {"sources": source(paths=("elsewhere/*",))},
        {"sources": (WIKI, SourceSettings(name="books", paths=("b",), format="text"))},
        {"root": "other"},
        {"sources": source(languages=("any", "any"))},
    ],
)
def test_what_decides_no_byte_is_free(changes: dict[str, Any]) -> None:
    held = published_with(settings())
    assert changed_pins(held, pinned_settings(settings(**changes))) == {}


def test_what_was_on_and_is_off_is_a_change() -> None:
    held = published_with(settings(dedup=DedupSettings(lines=RepeatedLinesSettings())))
    assert list(changed_pins(held, pinned_settings(settings()))) == ["dedup.lines"]


def test_a_source_that_has_not_landed_is_free() -> None:
    held = published_with(settings(), landed=())
    assert not [key for key in held if key.startswith("sources[")]
    assert changed_pins(held, pinned_settings(settings(sources=source(priority=9)))) == {}


def test_a_retired_source_stays_pinned() -> None:
    held = published_with(settings())
    books = SourceSettings(name="books", paths=("b",))
    without = settings(sources=(books,))
    later = pins_to_publish(
        without, landed_sources={"wiki", "books"}, tokenizer_sha256="ab" * 32, published=held
    )
    assert changed_pins(later, pinned_settings(without)) == {}
    back = settings(sources=(dataclasses.replace(WIKI, priority=1), books))
    assert list(changed_pins(later, pinned_settings(back))) == ["sources[wiki].priority"]


def test_minhash_switched_on_after_publishing_without_is_a_change() -> None:
    held = published_with(settings(dedup=DedupSettings(minhash=None)))
    changed = changed_pins(held, pinned_settings(settings()))
    assert "dedup.minhash.threshold" in changed


def test_a_setting_of_a_later_version_is_equal_to_its_default() -> None:
    held = published_with(settings())
    del held["sharding.seed"], held["sources[wiki].strata"], held["cleaning.language_threshold"]
    assert changed_pins(held, pinned_settings(settings())) == {}
    other = settings(sharding=ShardingSettings(seed=4))
    assert changed_pins(held, pinned_settings(other)) == {"sharding.seed": (0, 4)}


def test_a_tokenizer_file_is_pinned_by_its_bytes(tmp_path: Path) -> None:
    for name, data in (("a.json", b"one"), ("b.json", b"one"), ("c.json", b"two")):
        (tmp_path / name).write_bytes(data)

    def by_path(name: str) -> Settings:
        return settings(tokenizer=TokenizerSettings(path=name), base_dir=str(tmp_path))

    held = pins_to_publish(
        by_path("a.json"),
        landed_sources=["wiki"],
        tokenizer_sha256=pinned_settings(by_path("a.json"))["tokenizer.sha256"],
        published={},
    )
    assert changed_pins(held, pinned_settings(by_path("b.json"))) == {}
    assert list(changed_pins(held, pinned_settings(by_path("c.json")))) == ["tokenizer.sha256"]
    assert changed_pins(held, pinned_settings(by_path("missing.json"))) == {}
    assert "tokenizer.train.vocab_size" in changed_pins(held, pinned_settings(settings()))


def test_source_names_with_dots_are_told_apart() -> None:
    both = settings(sources=(WIKI, dataclasses.replace(WIKI, name="wiki.format")))
    held = published_with(both, landed=("wiki", "wiki.format"))
    changed = settings(sources=(dataclasses.replace(WIKI, name="wiki.format", priority=2),))
    assert changed_pins(held, pinned_settings(changed)) == {"sources[wiki.format].priority": (0, 2)}


def publish(root: Root, pins: dict[str, Any]) -> None:
    file = DatasetFile(
        generation=3,
        snapshot=IndexSnapshot(1, "cd" * 32),
        plan="0123456789abcdef",
        plans=("0123456789abcdef",),
        takedown=None,
        tokenizer={
            "sha256": "ab" * 32,
            "path": "t",
            "vocab_size": 9,
            "eos_token_id": 1,
            "pad_token_id": 1,
        },
        pins=pins,
    )
    assert root.storage.replace("dataset/dataset.json", file.to_bytes(), expected=None)


def part(stage: str, name: str, **statistics: Any) -> PartEntry:
    return PartEntry(
        stage=stage,
        source=name,
        generation=1,
        task="00000001-aa",
        part="00000001-aa-000",
        fingerprint="f",
        objects={},
        rows=1,
        files=(),
        statistics=statistics,
    )


@pytest.fixture
def root(tmp_path: Path) -> Root:
    made = Root(str(tmp_path))
    commit(made, "clean", [part("clean", "wiki", **{"in": 1200}), part("clean", "b", **{"in": 7})])
    commit(made, "unique", [part("unique", "wiki", **{"in": 1000})])
    commit(made, "tokens", [part("tokens", "wiki", **{"in": 900}, tokens=123_456)])
    return made


def test_nothing_published_pins_nothing(root: Root) -> None:
    check_pins(root, settings())


def test_an_equal_configuration_passes(root: Root) -> None:
    publish(root, published_with(settings()))
    check_pins(root, settings(ordering=OrderingSettings(seed=5)))


def test_a_refusal_says_what_is_asked_what_it_costs_and_what_to_type(root: Root) -> None:
    publish(root, published_with(settings()))
    wanted = settings(sharding=ShardingSettings(max_tokens=300_000), sources=source(profile="web"))
    with pytest.raises(PinnedRootError) as caught:
        check_pins(root, wanted)
    assert str(caught.value).splitlines() == [
        (
            f"{root.url} has published generation 3 (plan 0123456789abcdef); "
            "2 settings would change bytes of it:"
        ),
        "  sharding.max_tokens: 300000 (published with 268435456)",
        "  sources[wiki].profile: 'web' (published with 'text')",
        "this would be done again:",
        "  clean: 1,200 documents of wiki",
        "  unique: 1,000 documents",
        "  tokens: 900 documents, 123,456 tokens",
        "  shards: 900 documents, 123,456 tokens",
        (
            "set them back, or make another data set beside this one: "
            "olmo-data run --config CONFIG --root NEW_ROOT"
        ),
    ]
    assert isinstance(caught.value, ConfigurationError)


def test_a_change_of_code_is_a_change_of_bytes(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(root, published_with(settings()))
    monkeypatch.setattr("assets.sources.tasks.CODE_VERSION", 99)
    with pytest.raises(PinnedRootError, match=r"code\.documents: 99 \(published with \d+\)"):
        check_pins(root, settings())


def test_a_flipped_byte_of_dataset_json_is_named(root: Root, tmp_path: Path) -> None:
    publish(root, published_with(settings()))
    path = tmp_path / "dataset/dataset.json"
    path.write_bytes(path.read_bytes().replace(b'"generation":3', b'"generation":4'))
    with pytest.raises(IntegrityError, match=r"dataset\.json: body_sha256"):
        check_pins(root, settings())
