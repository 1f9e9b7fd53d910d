"""Steps of plans of every kind: packed, cut again, extended, mixed, repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from assets.catalog.steps import StepFinder
from assets.errors import ConfigurationError
from assets.ordering.shares import SourceWeights
from assets.settings.ordering import MixtureSettings
from olmo_loader.plan import Plan
from olmo_loader.shard_files import open_docs
from tests.assets.ordering.mixed_plans import extend, instance_spans, make_plan, publish, weigh
from tests.assets.ordering.small_data_set import SmallDataSet

BATCH = 3
TWICE = SourceWeights(max_repetition=dict.fromkeys(("web", "wiki"), 2.0))


def cut_again(small: SmallDataSet) -> Plan:
    return extend(small, make_plan(small), 5, sequence_length=12)


def twice_extended(small: SmallDataSet) -> Plan:
    first = extend(small, make_plan(small, order="mixture"), 4, mixture=MixtureSettings())
    small.add_shard("web", [9, 11, 3], generation=2)
    return extend(small, first, 6, mixture=MixtureSettings(), sequence_length=12, weights=TWICE)


def repeated_and_cut_again(small: SmallDataSet) -> Plan:
    parent = make_plan(small, weights=weigh(web=2.0, wiki=1.0))
    return extend(small, parent, 7, sequence_length=12)


def repeating_mixture(small: SmallDataSet) -> Plan:
    weights = SourceWeights(
        weights={"web": 0.3, "wiki": 0.7}, max_repetition=dict.fromkeys(("web", "wiki"), 3.0)
    )
    return make_plan(small, order="mixture", weights=weights)


KINDS: dict[str, Callable[[SmallDataSet], Plan]] = {
    "packed": lambda small: make_plan(small, length=16, packing="best_fit"),
    "packed again": lambda small: extend(
        small, make_plan(small, length=16, packing="best_fit"), 2, sequence_length=24
    ),
    "cut again": cut_again,
    "twice extended": twice_extended,
    "repeated and cut again": repeated_and_cut_again,
    "repeating mixture": repeating_mixture,
}


@pytest.fixture
def small(tmp_path: Path) -> SmallDataSet:
    made = SmallDataSet(tmp_path)
    for number, source in enumerate(("web", "wiki", "web")):
        lengths = np.random.default_rng(number).integers(1, 20, 12).tolist()
        made.add_shard(source, lengths)
    return made


@pytest.fixture(params=KINDS)
def plan(request: pytest.FixtureRequest, small: SmallDataSet) -> Plan:
    made = KINDS[request.param](small)
    publish(small, made)
    return made


def documents_of(small: SmallDataSet, plan: Plan, index: int) -> list[tuple[str, int, int, str]]:
    """Return (shard, start, end, doc_id) of an instance, found the slow way."""
    found = []
    for shard, start, end in instance_spans(plan, index):
        record = plan.shards[shard]
        docs = open_docs(small.dataset / record["shard"], record["n_docs"])
        starts = docs["start"].tolist()
        for number, (begin, stop) in enumerate(
            zip(starts, [*starts[1:], record["n_tokens"]], strict=True)
        ):
            low, high = max(begin, start), min(stop, end)
            if low < high:
                doc_id = docs[number]["doc_id"].tobytes().hex()
                found.append((record["shard"], low, high, doc_id))
    return found


def test_steps_say_which_documents_stand_where(small: SmallDataSet, plan: Plan) -> None:
    finder = StepFinder(small.root)
    order, position, step = plan.open_order().tolist(), 0, 0
    while position < len(order):
        found: dict[int, list[tuple[str, int, int, str]]] = {}
        for item in finder.step_documents(None, 0, step, BATCH):
            assert item.global_index == order[item.position]
            place = (item.shard, item.start_token, item.end_token, item.doc_id)
            found.setdefault(item.position, []).append(place)
        assert list(found) == list(range(position, position + len(found)))
        for at, documents in found.items():
            assert documents == documents_of(small, plan, order[at])
        position, step = position + len(found), step + 1
    with pytest.raises(ConfigurationError, match=f"0..{step - 1}, not {step}"):
        list(finder.step_documents(None, 0, step, BATCH))


def test_document_steps_are_the_steps_read_backwards(small: SmallDataSet, plan: Plan) -> None:
    finder = StepFinder(small.root)
    forward: dict[str, Counter[tuple[int, int, str, int, int]]] = {}
    for position, index in enumerate(plan.open_order().tolist()):
        for shard, start, end, doc_id in documents_of(small, plan, index):
            forward.setdefault(doc_id, Counter())[(position, index, shard, start, end)] += 1
    for number, record in enumerate(plan.shards):
        docs = open_docs(small.dataset / record["shard"], record["n_docs"])
        starts = docs["start"].tolist()
        ends = [*starts[1:], plan.shards[number]["n_tokens"]]
        for doc, start, end in zip(docs, starts, ends, strict=True):
            steps = finder.document_steps([(record["shard"], start, end)])
            found = Counter(
                (item.position, item.global_index, item.shard, item.start_token, item.end_token)
                for item in steps
            )
            assert found == forward.get(doc["doc_id"].tobytes().hex(), Counter())


def test_a_shard_that_no_plan_has_is_read_nowhere(small: SmallDataSet) -> None:
    publish(small, make_plan(small))
    assert not list(StepFinder(small.root).document_steps([("shards/web/09999-00.npy", 0, 5)]))
