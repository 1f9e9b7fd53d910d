"""Laws that any training loader must keep, as helpers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from olmo_loader.train_loader import TrainLoader


def indices(batch: dict[str, Any]) -> list[int]:
    found: list[int] = batch["index"].tolist()
    return found


def stream(loader: TrainLoader, epochs: int) -> list[tuple[list[int], dict[str, Any]]]:
    """(indices, state) of every batch of some epochs."""
    return [(indices(batch), batch.state) for _ in range(epochs) for batch in loader]


def assert_same_after_resume(make: Callable[..., TrainLoader], epochs: int = 2) -> None:
    """Restore from every position, through JSON, and demand the same rest and stable states."""
    whole = stream(make(), epochs)
    for position in range(len(whole)):
        state = json.loads(json.dumps(whole[position][1]))
        resumed = make(state=state)
        assert resumed.state_dict() == state
        rest = itertools.chain.from_iterable(resumed for _ in range(epochs))
        expected = whole[position + 1 :]
        found = [(indices(b), b.state) for b in itertools.islice(rest, len(expected))]
        assert found == expected, f"after batch {position}"


def assert_same_stream_for(
    make: Callable[..., TrainLoader], worlds: list[int], threads: list[int]
) -> None:
    """Every step reads the same instances, in the same interleaving, for any ranks and threads."""
    reference = [step for step, _ in stream(make(world_size=1, rank=0, num_threads=0), 2)]
    for world, count in itertools.product(worlds, threads):
        ranks = [make(world_size=world, rank=rank, num_threads=count) for rank in range(world)]
        parts = [[step for step, _ in stream(loader, 2)] for loader in ranks]
        assert {len(part) for part in parts} == {len(reference)}
        for number, step in enumerate(reference):
            joined: list[int | None] = [None] * len(step)
            for rank in range(world):
                joined[rank::world] = parts[rank][number]
            assert joined == step, (world, count, number)
