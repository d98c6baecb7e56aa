"""Numbers looked up on the grid of quanta equal those worked out chunk by chunk."""

from typing import Any

import numpy as np
import pytest

from instances.plan import Plan
from solver.evaluate import Evaluator
from solver.simulation.chunk_numbers import WORTH_USES
from tests.builders import small_instance, small_plan


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pipeline__integer_ns": True},
        {"workload": {"requests": 5, "tokens": 2000, "cached_tokens": 300}},
        {"workload": {"trace": [{"arrival_s": 0.001 * i, "tokens": 900 + 800 * (i % 2)} for i in range(6)]}},
        {"hardware__dies": [{"at": [0, 1], "peak_flops": "0.5 TFLOP/s"}]},
        {"costs": {"kind": "fitted", "chunk_s": 1e-4, "prefix_s": 1e-9, "token_s": 1e-7, "pair_s": 1e-11}},
    ],
)
def test_a_used_evaluator_equals_a_fresh_one(changes: dict[str, Any]) -> None:
    instance = small_instance(**changes)
    rng = np.random.default_rng(0)
    used = Evaluator(instance)
    for _ in range(3 * WORTH_USES):
        chunks: dict[str, tuple[int, ...]] = {}
        for tokens in instance.workload.uncached_counts:
            inner = np.arange(256, tokens, 256)
            cuts = sorted(int(cut) for cut in rng.choice(inner, size=min(3, len(inner)), replace=False))
            chunks[str(tokens)] = tuple(b - a for a, b in zip([0, *cuts], [*cuts, tokens], strict=True))
        plan = small_plan(instance, batch=int(rng.integers(1, 3)), chunks=chunks)
        assert used.value(plan) == Evaluator(instance).value(plan)


def test_cuts_beside_the_grid_are_worked_out() -> None:
    """The static rules refuse such a plan; a replay of it is still exact."""
    instance = small_instance()
    used = Evaluator(instance)
    beside = Plan.parse({**small_plan(instance).model_dump(mode="json"), "chunks": {"2048": [700, 1348]}})
    for _ in range(2 * WORTH_USES):
        used.value(small_plan(instance))
    assert used.value(beside) == Evaluator(instance).value(beside)
