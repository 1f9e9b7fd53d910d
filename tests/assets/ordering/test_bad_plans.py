"""What cannot be planned, opened or continued is refused: each with its numbers and the remedy."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from assets.errors import ConfigurationError, IntegrityError
from assets.ordering.published import read_shard_index
from assets.ordering.shares import SourceWeights
from assets.settings.load import load_settings
from assets.settings.ordering import MixtureSettings, PackingSettings
from olmo_loader.errors import LoaderError, MissingFileError
from olmo_loader.plan import PLAN_FILE, read_plan
from olmo_loader.published import open_published
from olmo_loader.records import canonical_json, seal
from tests.assets.ordering.mixed_plans import extend, make_plan, publish, weigh
from tests.assets.ordering.small_data_set import SmallDataSet


@pytest.fixture
def small(tmp_path: Path) -> SmallDataSet:
    made = SmallDataSet(tmp_path)
    made.add_shard("web", [9, 11, 4, 8])
    made.add_shard("wiki", [8, 8])
    return made


def write_config(folder: Path, sources: str, ordering: str) -> Path:
    path = folder / "c.yaml"
    path.write_text(
        f"root: root\nsources: [{sources}]\ntokenizer: {{train: {{vocab_size: 400}}}}\n"
        f"ordering: {ordering}\n"
    )
    return path


def test_weights_that_sum_to_0(small: SmallDataSet) -> None:
    with pytest.raises(ConfigurationError, match=r"web, wiki sum to 0; give at least one source"):
        make_plan(small, order="mixture", weights=weigh(web=0.0, wiki=0.0))


def test_a_weight_that_is_no_repeat_with_order_shuffle(tmp_path: Path) -> None:
    path = write_config(tmp_path, "{name: web, paths: ['*.txt'], weight: 0.3}", "{order: shuffle}")
    with pytest.raises(ConfigurationError, match=r"web has weight 0\.3, .* shuffle") as caught:
        load_settings(path)
    assert "set ordering.order to mixture" in str(caught.value)


TWO = "{{name: a, paths: ['*'], weight: {0}}}, {{name: b, paths: ['*'], weight: {1}}}"


@pytest.mark.parametrize(
    ("sources", "mixture", "message"),
    [
        (("0", "0"), "{}", "those of a, b sum to 0"),
        (("1", "null"), "{}", "a have one, b have none; give every source a weight"),
        (("1", "1"), "{weights: {a: 1}}", "a have one, b have none"),
        (
            ("1", "1"),
            "{stages: [{name: x, tokens: 9}, {name: y, tokens: 9, weights: {b: 1}}]}",
            "b have one, a have none",
        ),
        (("1", "1"), "{floor: 0.6}", "2 sources with weight cannot have 0.6 .* at most 0.5"),
        (("null", "null"), "{floor: 0.51}", "2 sources with weight cannot have 0.51"),
        (("1", "1"), "{floor: 0.4, weights: {a: 1, b/x: 1, b/y: 1}}", "3 sources with weight"),
    ],
)
def test_weights_that_cannot_be_are_told_with_the_configuration(
    tmp_path: Path, sources: tuple[str, str], mixture: str, message: str
) -> None:
    ordering = f"{{order: mixture, mixture: {mixture}}}"
    with pytest.raises(ConfigurationError, match=message):
        load_settings(write_config(tmp_path, TWO.format(*sources), ordering))


def test_a_floor_that_every_source_can_have(tmp_path: Path) -> None:
    ordering = "{order: mixture, mixture: {floor: 0.5}}"
    load_settings(write_config(tmp_path, TWO.format("1", "3"), ordering))


def test_a_source_with_0_tokens_and_a_weight(small: SmallDataSet) -> None:
    weights = weigh(web=1.0, wiki=1.0, code=0.25)
    with pytest.raises(
        ConfigurationError, match=r"code \(weight 0\.25\) have 0 tokens .* land text .* weight to 0"
    ):
        make_plan(small, order="mixture", weights=weights)


@pytest.mark.parametrize("tokens", [None, 8])
def test_a_source_with_a_weight_of_which_packing_leaves_nothing(
    small: SmallDataSet, tokens: int | None
) -> None:
    small.add_shard("code", [20, 30])
    with pytest.raises(
        ConfigurationError, match=r"code have 0 tokens in training instances: packing drops all"
    ):
        make_plan(
            small,
            packing="best_fit",
            packing_options=PackingSettings(long="drop"),
            order="mixture",
            weights=weigh(web=1.0, wiki=1.0, code=0.25),
            mixture=MixtureSettings(tokens=tokens),
        )


def test_a_source_that_may_not_be_read_once(small: SmallDataSet) -> None:
    weights = SourceWeights(
        weights={"web": 0.5, "wiki": 0.5}, max_repetition={"web": 0.01, "wiki": 0.01}
    )
    with pytest.raises(ConfigurationError, match=r"draws nothing: web may not be read once"):
        make_plan(small, order="mixture", weights=weights)


def test_repetition_above_the_cap(small: SmallDataSet) -> None:
    weights = SourceWeights(
        weights={"web": 0.5, "wiki": 0.5}, max_repetition={"web": 2.0, "wiki": 2.0}
    )
    with pytest.raises(ConfigurationError) as caught:
        make_plan(small, order="mixture", weights=weights, mixture=MixtureSettings(tokens=800))
    message = str(caught.value)
    assert "asks for 800 tokens, the best possible size is 72" in message
    assert "wiki is short, it has 16 tokens in instances, may be read 2 times" in message
    assert "max_repetition to at least 25.50" in message


def test_a_missing_and_an_altered_index_record(small: SmallDataSet) -> None:
    path = small.dataset / "index/00000001.json"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"web"', b'"wob"', 1))
    with pytest.raises(IntegrityError, match=r"index/00000001\.json"):
        read_shard_index(small.root)
    path.unlink()
    with pytest.raises(IntegrityError, match=r"record 1 is missing, found 2"):
        read_shard_index(small.root)


def test_a_shard_that_is_missing_or_has_changed_since_the_plan(small: SmallDataSet) -> None:
    plan = make_plan(small)
    folder = publish(small, plan)
    path = small.path(plan.shards[0]["shard"])
    data = path.read_bytes()
    path.write_bytes(data[:-2])
    with pytest.raises(LoaderError, match=rf"{path.name}: {len(data) - 2} bytes, .* {len(data)}"):
        open_published(folder)
    changed = bytearray(data)
    changed[3] ^= 1
    path.write_bytes(changed)
    reader = open_published(folder).reader
    with pytest.raises(LoaderError, match=path.name):
        reader.read(plan.open_order().astype("i8"))
    path.unlink()
    with pytest.raises(LoaderError, match="the shard is missing"):
        open_published(folder)


def test_a_plan_of_another_data_set(small: SmallDataSet, tmp_path: Path) -> None:
    other = SmallDataSet(tmp_path / "other")
    other.add_shard("web", [40, 3])
    plan = make_plan(other)
    with pytest.raises(IntegrityError, match="it is a plan of another data set"):
        extend(small, plan, 1)
    with pytest.raises(LoaderError, match=f"no plan {plan.plan_id}"):
        open_published(publish(small, make_plan(small)), plan.plan_id)
    own = make_plan(small)
    foreign = json.loads((plan.folder / PLAN_FILE).read_bytes())
    del foreign["body_sha256"]
    (own.folder / PLAN_FILE).write_bytes(canonical_json(seal(foreign)))
    with pytest.raises(LoaderError, match=own.plan_id):
        open_published(publish(small, own), own.plan_id)


def test_a_changed_plan_is_not_opened(small: SmallDataSet) -> None:
    plan = make_plan(small)
    record = dataclasses.replace(plan).record
    changed = {key: value for key, value in record.items() if key != "body_sha256"}
    (plan.folder / PLAN_FILE).write_bytes(canonical_json(seal({**changed, "seed": 4})))
    with pytest.raises(LoaderError, match="fingerprint does not follow"):
        open_published(publish(small, plan))


@pytest.mark.parametrize(
    "name", ["global_indices.npy", "spans.npy", "instance_offsets.npy", "shards.jsonl"]
)
def test_a_plan_of_which_a_file_is_missing(small: SmallDataSet, name: str) -> None:
    plan = make_plan(small, packing="best_fit")
    (plan.folder / name).unlink()
    with pytest.raises(MissingFileError, match=f"{re.escape(name)}: there is no such file"):
        open_all(small.dataset, plan.plan_id)


def open_all(dataset: Path, plan_id: str) -> None:
    plan = read_plan(dataset, plan_id)
    plan.open_order()
    plan.open_spans()
