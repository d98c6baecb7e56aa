"""The exact method where memory binds: pooled spill, refinement, and instances of several kinds."""

from typing import Any

import numpy as np
import pytest

from instances.instance import Instance
from solver.api import solve
from solver.exact.pool import pooled_excess_bytes, spill_problem, unlimited_run
from solver.limits import Limits
from tests.builders import small_instance
from tests.searches import make_search
from tests.solver.test_policies import seconds_instance


def with_memory_for(chunks: float, **changes: Any) -> Instance:
    """Dies that hold weights, the workspace of one quantum and so many chunks of one quantum (32768 bytes each)."""
    roomy = seconds_instance(**changes)
    cost = roomy.stage_cost
    static = max(
        cost.weight_bytes(s, s + 1, embedding=s == 0, head=s == 3) + cost.workspace_bytes(s, s + 1, 1, 256)
        for s in range(4)
    )
    return seconds_instance(hardware__die__hbm_bytes=static + chunks * 32768, **changes)


@pytest.mark.parametrize("chunks", [7, 6, 5.5])
def test_pooled_spill_runs_where_no_spill_deadlocks(chunks: float) -> None:
    instance = with_memory_for(chunks, pipeline__max_batch=1)
    assert solve(instance, "cpp", limits=Limits(time_s=10)).plan is None
    result = solve(instance, limits=Limits(time_s=20))
    assert result.plan is not None
    assert result.plan.spill
    assert result.objective.value is not None
    # 23 s is the optimum without a memory limit, and the bound.
    assert result.objective.bound == pytest.approx(23.0)
    assert 23.0 <= result.objective.value < 30.0
    assert result.metrics is not None
    limit = instance.hardware.die.hbm_bytes
    assert max(result.metrics.peak_memory_bytes) <= limit


@pytest.mark.parametrize("trace", [False, True])
def test_a_host_holds_what_all_dies_together_cannot(trace: bool) -> None:
    # 8 chunks a stage and wave, memory for 3 of them on each die: pools come to 12 where 26 are needed at once.
    short: dict[str, Any] = {"workload": {"trace": [{"tokens": 2048}, {"tokens": 1536}]}} if trace else {}
    instance = with_memory_for(3, pipeline__max_batch=1, **short)
    assert solve(instance, limits=Limits(time_s=20)).plan is None
    host = {"host_bytes": "1 GB", "host_bytes_per_s": "64 GB/s"}
    result = solve(with_memory_for(3, pipeline__max_batch=1, hardware__host=host, **short), limits=Limits(time_s=20))
    assert result.plan is not None
    assert {row.creditor for row in result.plan.spill} >= {"host"}
    assert result.objective.gap is not None
    assert result.objective.gap < 0.01


def test_pooled_excess_is_zero_exactly_at_the_need() -> None:
    """In lockstep, 4 stages and one wave of 4 chunks hold at most 4 + 3 + 2 + 1 chunks at once.

    Stage s starts chunk i at s + i; its wave ends at s + 4. At time 3 the stages hold 4, 3, 2 and 1 chunks.
    """
    instance = seconds_instance(workload__tokens=4 * 256, workload__requests=1, pipeline__max_batch=1)
    search = make_search(instance, "exact")
    plan = search.plan(1, {1024: (256,) * 4}, (1, 1, 1, 1), ((0, 0), (0, 1), (1, 1), (1, 0)))
    unlimited = unlimited_run(search, plan)
    assert unlimited is not None
    assert unlimited.value == pytest.approx(7.0)
    problem = spill_problem(instance, search.evaluator.lowering, plan, unlimited, 0.0)
    spare = float(problem.free_bytes.sum())
    assert pooled_excess_bytes(problem, unlimited.start_s, unlimited.end_s) == pytest.approx(10 * 32768 - spare)


def test_spill_is_whole_tokens_within_chunks() -> None:
    instance = with_memory_for(6, pipeline__max_batch=1)
    result = solve(instance, limits=Limits(time_s=20))
    assert result.plan is not None
    sizes = result.plan.chunk_sizes(2048)
    sent = np.zeros((4, len(sizes)), dtype=int)
    for row in result.plan.spill:
        sent[row.stage, row.chunk] += row.tokens
    assert (sent <= np.array(sizes)).all()
    assert (sent[:, -1] == 0).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": "makespan"},
        {"objective": "p95_latency"},
        {"pipeline__max_in_flight": 3},
        {"pipeline__layers": "free"},
        {"pipeline__stages": 3, "pipeline__layers": [1, 1, 2]},
        {"pipeline__stages": 1},
        {"pipeline__stages": 3, "hardware__disabled_dies": [[0, 0]]},
        {"pipeline__overlap": False, "pipeline__integer_ns": True, "pipeline__routing": "yx"},
        {"pipeline__switching": "store_and_forward", "pipeline__one_send_per_die": True},
        {"hardware__host": {"host_bytes": "1 GB", "host_bytes_per_s": "10 GB/s"}},
        {"workload": {"requests": 3, "tokens": 2000, "cached_tokens": 300}},
        {"workload": {"trace": [{"arrival_s": 0.001 * i, "tokens": 700 + 300 * (i % 3)} for i in range(7)]}},
        {"hardware__wafers": [1, 2], "hardware__wafer_link_bytes_per_s": "1 GB/s"},
        {"costs": {"kind": "table", "rows": [[c, p, (c + 0.1 * p) / 1e6] for c in (256, 1024) for p in (0, 2048)]}},
        {"hardware__dies": [{"at": [0, 1], "peak_flops": "0.5 TFLOP/s"}]},
    ],
    ids=lambda changes: ",".join(changes),
)
def test_many_kinds_of_instances(changes: dict[str, Any]) -> None:
    result = solve(small_instance(**changes), limits=Limits(time_s=5))
    objective = result.objective
    assert objective.value is not None
    assert objective.bound is not None
    assert objective.bound_scope is not None
    assert result.plan is not None
    assert objective.bound_scope.contains(result.plan)
    assert objective.bound <= objective.value
