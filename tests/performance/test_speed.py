"""Speed of the replay and of the chunk search, by pytest-benchmark; no assertion on times."""

from pathlib import Path
from typing import Any

import pytest

from formulations.bounds import TimeBounds
from formulations.tables import StageTables
from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluator

SUITE = Path(__file__).parents[2] / "instances" / "data" / "suites" / "mocap-latency"
SNAKE = tuple((row, column if row % 2 == 0 else 3 - column) for row in range(4) for column in range(4))


@pytest.mark.parametrize(("chunks", "batch"), [(16, 4), (64, 1)])
def test_replay_of_a_plan(benchmark: Any, chunks: int, batch: int) -> None:
    """Lowering and event loop of 16 stages: 16 chunks in 4 waves, 64 chunks in 16 waves."""
    instance = Instance.load(SUITE / "llama3-70b-128k.json")
    evaluator = Evaluator(instance)
    plan = Plan(
        instance=instance.fingerprint,
        batch=batch,
        layers=(5,) * 16,
        placement=SNAKE,
        chunks={"131072": (131072 // chunks,) * chunks},
    )
    evaluator.value(plan)
    benchmark.extra_info["tasks"] = 16 * chunks * (16 // batch)
    assert benchmark(evaluator.value, plan) > 0


@pytest.mark.parametrize("length", ["32k", "512k"])
def test_bound_of_a_batch(benchmark: Any, length: str) -> None:
    """Tables, interval branch and bound over 128 and 512 quanta with at most 128 chunks."""
    instance = Instance.load(SUITE / f"llama3-70b-{length}.json")
    TimeBounds(instance, StageTables(instance)).batch(1)
    found = benchmark(lambda: TimeBounds(instance, StageTables(instance)).batch(1))
    assert found.bound_s > 0
