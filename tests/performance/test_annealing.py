"""How fast LBCP's annealing replays: 16 stages, 16 chunks, 4 waves, one boundary moved each time, the batch fixed."""

from __future__ import annotations

import time
from itertools import cycle, pairwise
from typing import Any

import numpy as np
import pytest

from instances.instance import Instance
from instances.plan import Plan, SpillRow
from solver.evaluate import Evaluator
from tests.performance.test_speed import SNAKE, SUITE

CHUNKS, BATCH, QUANTA = 16, 4, 128
PLANS = 500


def _moved_cuts(rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Chunk sizes in tokens of PLANS lists, each with one boundary of the one before moved by a quantum."""
    ends = [QUANTA * (chunk + 1) // CHUNKS for chunk in range(CHUNKS)]
    lists: list[tuple[int, ...]] = []
    while len(lists) < PLANS:
        index = int(rng.integers(CHUNKS - 1))
        moved = ends[index] + int(rng.choice((-1, 1)))
        if (ends[index - 1] if index else 0) < moved < ends[index + 1]:
            ends[index] = moved
            lists.append(tuple(1024 * (stop - start) for start, stop in pairwise((0, *ends))))
    return lists


def _plan(instance: Instance, sizes: tuple[int, ...], spilled: int) -> Plan:
    """The last ``spilled`` chunks but one go to the stage half a pipeline away."""
    rows = [
        SpillRow.model_construct(stage=stage, chunk=chunk, creditor=(stage + 8) % 16, tokens=sizes[chunk], shape=None)
        for stage in range(16)
        for chunk in range(CHUNKS - 1 - spilled, CHUNKS - 1)
    ]
    return Plan(
        instance=instance.fingerprint,
        batch=BATCH,
        layers=(5,) * 16,
        placement=SNAKE,
        chunks={str(1024 * QUANTA): sizes},
        spill=tuple(rows),
    )


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("spilled", [0, 4])
def test_replays_of_moved_cuts(benchmark: Any, spilled: int) -> None:
    """One round is one plan made, lowered and replayed."""
    instance = Instance.load(SUITE / "llama3-70b-128k.json")
    evaluator = Evaluator(instance)
    cuts = cycle(_moved_cuts(np.random.default_rng(4)))
    evaluator.value(_plan(instance, next(cuts), spilled))

    def replay_the_next() -> float | None:
        return evaluator.value(_plan(instance, next(cuts), spilled))

    assert benchmark(replay_the_next) > 0
