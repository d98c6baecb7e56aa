"""No other order of the tasks of a V is better: proved by an engine on a job shop without any rule of the schedule."""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model

from solver.evaluate import Evaluator
from solver.simulation.replay import Replay
from tests.solver.simulation.test_v_shape import plan_of
from tests.tiny import line


def _replayed(dies: int, times: list[float]) -> Replay:
    """The V-async replay of one request whose equal chunks take these times on a die, half of it on a virtual stage."""
    chunks, step = len(times), times[1] - times[0]
    # t = chunk_s + pair_s*(2p + 1) for one token after p: a step of 2*pair_s a chunk. The whole model is all dies.
    instance = line(
        [2] * dies,
        fitted={"chunk_s": dies * (times[0] - step / 2), "pair_s": dies * step / 2},
        workload={"requests": 1, "tokens": chunks},
        pipeline={"layers": "balanced", "max_chunks": chunks},
    )
    return Evaluator(instance).replay(plan_of(instance, "vpp-async", chunks))


def _least_makespan(dies: int, halves: list[int]) -> int:
    """Optimum of the job shop: each chunk visits dies 0..N-1, then N-1..0, for ``halves[k]`` each time.

    On a virtual stage a chunk needs the KV of the one before it.
    """
    model, horizon = cp_model.CpModel(), 2 * dies * sum(halves)
    on_die: list[list[cp_model.IntervalVar]] = [[] for _ in range(dies)]
    makespan = model.new_int_var(0, horizon, "makespan")
    behind: list[cp_model.LinearExprT] = [0] * (2 * dies)
    for chunk, half in enumerate(halves):
        before: cp_model.LinearExprT = 0
        for visit in range(2 * dies):
            start = model.new_int_var(0, horizon, f"start[{chunk},{visit}]")
            model.add(start >= before)
            model.add(start >= behind[visit])
            before = behind[visit] = start + half
            on_die[min(visit, 2 * dies - 1 - visit)].append(
                model.new_fixed_size_interval_var(start, half, f"task[{chunk},{visit}]")
            )
        model.add(makespan >= before)
    for intervals in on_die:
        model.add_no_overlap(intervals)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 2
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


@pytest.mark.parametrize(
    ("dies", "chunks", "first", "step", "makespan"),
    [
        (2, 8, 2, 1, 58.5),
        (2, 16, 2, 1, 178.5),
        (4, 8, 2, 1, 71.5),
        (4, 8, 0, 2, 102),
        (4, 12, 2, 2, 226),
        (8, 8, 2, 1, 102.5),
    ],
)
def test_the_asynchronous_order_is_optimal(dies: int, chunks: int, first: int, step: int, makespan: float) -> None:
    # T_k = first + step*k for k = 1..M: (N-1)(tau_1 + tau_M) + sum T, tau = T/2.
    times = [float(first + step * k) for k in range(1, chunks + 1)]
    assert _replayed(dies, times).makespan_s == pytest.approx(makespan, rel=1e-9)
    assert _least_makespan(dies, [round(time) for time in times]) == round(2 * makespan)
