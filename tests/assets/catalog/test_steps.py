"""What a step reads and where a document is read are the same facts, seen from both ends."""

import numpy as np

from assets.catalog.explain import Explainer
from assets.catalog.steps import StepFinder
from assets.ordering.published import read_shard_index
from assets.sharding.spans import find_spans

BATCH = 7


def all_steps(finder, epoch=0):
    plan = finder.plan()
    for step in range(-(-plan.num_instances // BATCH)):
        yield from finder.step_documents(None, epoch, step, BATCH)


def test_steps_cover_every_token_of_every_instance_once(grown):
    root, _ = grown
    finder = StepFinder(root)
    plan = finder.plan()
    for epoch in (0, 3):
        found = list(all_steps(finder, epoch))
        assert sum(item.end_token - item.start_token for item in found) == (
            plan.num_instances * plan.sequence_length
        )
        assert [item.position for item in found] == sorted(item.position for item in found)
        order = plan.build_order(epoch)
        assert all(order[item.position] == item.global_index for item in found)


def test_the_document_of_a_piece_is_the_one_whose_tokens_are_there(grown):
    root, _ = grown
    tokens: dict[str, list[int]] = {}
    for item in all_steps(StepFinder(root)):
        path = root.storage.local_path(f"dataset/{item.shard}")
        shard = np.fromfile(path, np.uint16)
        tokens.setdefault(item.doc_id, []).extend(shard[item.start_token : item.end_token])
    wanted = {bytes.fromhex(doc_id) for doc_id in tokens}
    spans = find_spans(root, read_shard_index(root).records, wanted)
    assert wanted <= set(spans)


def test_document_steps_are_the_steps_read_backwards(grown):
    root, settings = grown
    finder, explainer = StepFinder(root), Explainer(root, settings)
    forward: dict[str, set[tuple[int, ...]]] = {}
    for item in all_steps(finder):
        place = (item.position, item.global_index, item.start_token, item.end_token)
        forward.setdefault(item.doc_id, set()).add(place)
    assert len(forward) > 10
    for doc_id, places in forward.items():
        span = explainer.find_span(bytes.fromhex(doc_id))
        assert span is not None
        back = finder.document_steps([(span.shard, span.start, span.end)])
        found = {(i.position, i.global_index, i.start_token, i.end_token) for i in back}
        assert found == places
