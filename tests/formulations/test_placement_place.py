"""Placing from start to end: known optima, dead dies, infeasibility, heuristics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.interface import EngineLimits, EngineOutcome
from formulations.placement.branch import BranchAndBound
from formulations.placement.constructive import constructed
from formulations.placement.deepening import Deepening
from formulations.placement.local_search import improve
from formulations.placement.place import PlacementResult, place, solve
from formulations.placement.problem import stated
from instances.errors import InputError
from solver.backends.cpsat import solve_cpsat
from tests.formulations.placement_cases import (
    brute_force,
    cross_half,
    mesh,
    mocap_flows,
    pipeline,
    random_problem,
    seamed,
)

LIMITS = EngineLimits(time_s=120.0, workers=2)


def placed(rows: int, columns: int, pair_adjacent: bool, engine: Any = solve_cpsat) -> PlacementResult:
    cells, hops = mesh(rows, columns)
    stages = len(cells)
    return place(
        hops,
        mocap_flows(stages),
        stages,
        dies_rc=cells,
        pairs=cross_half(stages),
        pair_adjacent=pair_adjacent,
        limits=LIMITS,
        engine=engine,
        rng=np.random.default_rng(0),
    )


@pytest.mark.parametrize("engine", [solve_cpsat, None])
@pytest.mark.parametrize("pair_adjacent", [True, False])
@pytest.mark.parametrize(
    ("rows", "columns", "value"),
    [
        # Flows along the pipeline, between partners, and two hops more for the change of strip.
        (4, 4, 15 + 8 + 2),
        (4, 5, 19 + 10 + 2),
        (4, 6, 23 + 12 + 2),
    ],
)
def test_known_optima(rows: int, columns: int, value: int, pair_adjacent: bool, engine: Any) -> None:
    result = placed(rows, columns, pair_adjacent, engine)
    assert (result.status, result.stop_reason) == ("optimal", "proved")
    assert (result.value, result.bound) == (value, value)
    # The structural bound alone is a proof, and needs no engine.
    assert (result.outcome, result.bound_by) == (None, "structure or assignment")


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (3, 3), (4, 7)])
def test_snake_is_optimal_for_a_pipeline(rows: int, columns: int) -> None:
    # N-1 hops, and no flow has fewer than one: proved without an engine.
    cells, hops = mesh(rows, columns)
    stages = rows * columns
    result = place(
        hops, pipeline(stages), stages, dies_rc=cells, limits=LIMITS, engine=None, rng=np.random.default_rng(0)
    )
    assert (result.status, result.value, result.bound) == ("optimal", stages - 1, stages - 1)
    assert result.outcome is None


def test_partners_may_be_neighbours_one_way_only() -> None:
    # From die 0 to die 1 there is one hop, back there are two.
    problem = stated([[0, 1], [2, 0]], [(1, 0, 1.0)], 2, None, [(0, 1)])
    result = solve(problem, LIMITS, None, np.random.default_rng(0))
    assert (result.status, result.placement, result.value) == ("optimal", [0, 1], 2.0)


@settings(max_examples=200)
@given(seed=st.integers(0, 10**6))
def test_place_equals_brute_force(seed: int) -> None:
    problem = random_problem(seed)
    best = brute_force(problem)
    result = solve(problem, EngineLimits(time_s=60.0, deterministic=True), solve_cpsat, np.random.default_rng(seed))
    if best is None:
        assert (result.status, result.placement, result.value) == ("infeasible", None, None)
    else:
        assert result.status == "optimal"
        assert result.value == pytest.approx(best)
        assert result.placement is not None
        assert problem.violations(result.placement) == []


def test_dead_dies_are_not_used_and_indices_are_the_callers() -> None:
    # 2x3 without (0, 1): the live dies form the path 0 3 4 5 2 in the caller's numbers.
    cells = [(row, column) for row in range(2) for column in range(3)]
    live, path_hops = mesh(2, 3, [(0, 1)])
    hops = np.full((6, 6), -1)
    alive = [cells.index(cell) for cell in live]
    hops[np.ix_(alive, alive)] = path_hops
    result = place(
        hops,
        pipeline(5),
        5,
        dies_rc=cells,
        allowed=alive,
        limits=LIMITS,
        engine=solve_cpsat,
        rng=np.random.default_rng(0),
    )
    assert result.value == 4.0
    assert result.placement in ([0, 3, 4, 5, 2], [2, 5, 4, 3, 0])


@pytest.mark.parametrize(
    ("dead", "forced", "value"),
    [
        # 12 flows along the pipeline, 6 between partners, and what the holes cost.
        ([(0, 0), (1, 2), (3, 1)], True, 24),
        ([(0, 0), (1, 2), (3, 1)], False, 24),
        # All holes on one colour, 5 dies against 8: a rung takes one of each unless it is bent.
        ([(0, 0), (1, 1), (3, 1)], False, 27),
        ([(0, 0), (1, 1), (3, 1)], True, None),
    ],
)
def test_three_dead_dies(dead: list[tuple[int, int]], forced: bool, value: int | None) -> None:
    cells, hops = mesh(4, 4, dead)
    problem = stated(hops, mocap_flows(13), 13, cells, cross_half(13) if forced else ())
    result = solve(problem, LIMITS, None, np.random.default_rng(0))
    assert (result.value, result.bound) == (value, value)
    # Both searches, whose bounds have nothing in common, say the same without a start.
    for search in (BranchAndBound(problem, None), Deepening(problem, None)):
        while not search.finished:
            search.run(10_000)
        assert search.bound == value
    assert (result.status, result.stop_reason) == ("infeasible" if value is None else "optimal", "proved")
    if result.placement is not None:
        assert problem.violations(result.placement) == []


@pytest.mark.parametrize(("seam", "value"), [(2, 53), (4, 48 + 3 * 4), (8, 48 + 3 * 8)])
@pytest.mark.parametrize("forced", [True, False])
def test_two_wafers_with_a_slow_seam(seam: int, value: int, forced: bool) -> None:
    # 4x8 dies: three flows cross the slow seams, two rails and the jump; 44 others, and two changes of strip, so 48 and
    # three times the seam. At seam 2 crossing more often saves changes.
    cells, hops = seamed(4, 4, seam)
    problem = stated(hops, mocap_flows(32), 32, cells, cross_half(32) if forced else ())
    result = solve(problem, LIMITS, None, np.random.default_rng(0))
    assert (result.status, result.value, result.bound) == ("optimal", value, value)
    assert result.placement is not None
    assert problem.violations(result.placement) == []


def test_adjacency_that_cannot_be_is_infeasible() -> None:
    # A star: every pair needs the middle die, so two pairs do not fit.
    cells, hops = mesh(3, 3, [(0, 0), (0, 2), (2, 0), (2, 2)])
    problem = stated(hops, mocap_flows(4), 4, cells, cross_half(4))
    result = solve(problem, LIMITS, solve_cpsat, np.random.default_rng(0))
    assert (result.status, result.stop_reason) == ("infeasible", "proved")
    assert (result.placement, result.value, result.bound) == (None, None, None)
    assert result.outcome is None


def test_adjacency_that_only_a_search_refutes_is_infeasible() -> None:
    # Three stages next to each other in a ring do not fit on a mesh, whose rings are even.
    cells, hops = mesh(2, 2)
    problem = stated(hops, pipeline(3), 3, cells, [(0, 1), (1, 2), (0, 2)])
    result = solve(problem, LIMITS, solve_cpsat, np.random.default_rng(0))
    assert (result.status, result.stop_reason) == ("infeasible", "proved")
    assert result.bound_by in ("branch and bound", "iterative deepening")


def test_weights_that_are_no_whole_numbers() -> None:
    cells, hops = mesh(2, 3)
    flows = [(s, t, weight * 123456.789) for s, t, weight in mocap_flows(6, 0.3)]
    problem = stated(hops, flows, 6, cells)
    result = solve(problem, LIMITS, solve_cpsat, np.random.default_rng(0))
    assert result.status == "optimal"
    assert result.value == pytest.approx(brute_force(problem), rel=1e-12)
    assert result.bound is not None
    assert result.value is not None
    assert result.value * (1 - 1e-4) <= result.bound <= result.value


def test_no_time_leaves_a_placement_and_a_bound() -> None:
    cells, hops = mesh(6, 6)
    problem = stated(hops, mocap_flows(36), 36, cells, cross_half(36))
    result = solve(problem, EngineLimits(time_s=0.0), None, np.random.default_rng(0))
    assert (result.status, result.stop_reason) == ("feasible", "time_limit")
    # 53 flows and two changes of strip; three strips with the long jump from corner to corner.
    assert (result.value, result.bound) == (64.0, 57.0)


def test_a_gap_that_is_asked_for_ends_the_search() -> None:
    cells, hops = mesh(8, 8)
    problem = stated(hops, mocap_flows(64), 64, cells)
    result = solve(problem, EngineLimits(relative_gap=0.1, deterministic=True), None, np.random.default_rng(0))
    assert (result.status, result.stop_reason) == ("feasible", "gap")
    assert result.value is not None
    assert result.bound is not None
    assert (result.value - result.bound) / result.value <= 0.1


class EngineInPlace:
    """An engine that notes its limits and answers as it is told."""

    def __init__(self, **answer: Any) -> None:
        self.limits: list[EngineLimits] = []
        self._answer = answer

    def __call__(self, model: Any, limits: EngineLimits) -> EngineOutcome:
        self.limits.append(limits)
        known = {"status": "unknown", "stop_reason": "time_limit", "value": None, "bound": None, **self._answer}
        return EngineOutcome(native_status="TEST", engine="stub", version="0", runtime_s=0.0, **known)


@pytest.mark.parametrize("pair_adjacent", [True, False])
def test_an_engine_is_asked_about_what_the_searches_leave_open(pair_adjacent: bool) -> None:
    engine = EngineInPlace(bound=60.0)
    # Too little work for a proof: 62 is the optimum.
    limits = EngineLimits(time_s=0.04, deterministic=True)
    cells, hops = mesh(6, 6)
    problem = stated(hops, mocap_flows(36), 36, cells, cross_half(36) if pair_adjacent else ())
    result = solve(problem, limits, engine, np.random.default_rng(0))
    assert [asked.time_s for asked in engine.limits] == [pytest.approx(0.01)]
    assert (result.status, result.stop_reason, result.bound_by) == ("feasible", "time_limit", "stub")
    assert result.bound == 60.0
    assert result.outcome is not None


def test_what_an_engine_proves_is_taken_over() -> None:
    cells, hops = mesh(6, 6)
    problem = stated(hops, mocap_flows(36), 36, cells, cross_half(36))
    limits = EngineLimits(time_s=0.04, deterministic=True)
    start = solve(problem, limits, None, np.random.default_rng(0))
    proved = solve(problem, limits, EngineInPlace(bound=start.value), np.random.default_rng(0))
    assert (proved.status, proved.stop_reason, proved.bound_by) == ("optimal", "proved", "stub")
    refuted = solve(problem, limits, EngineInPlace(status="infeasible"), np.random.default_rng(0))
    assert (refuted.status, refuted.value, refuted.bound) == ("infeasible", None, None)


def test_large_dense_problems_are_not_for_the_engine() -> None:
    engine = EngineInPlace()
    rng = np.random.default_rng(0)
    flows = [(s, t, float(rng.integers(1, 9))) for s in range(30) for t in range(s)]
    problem = stated(rng.integers(1, 9, (30, 30)), flows, 30)
    result = solve(problem, EngineLimits(time_s=0.05, deterministic=True), engine, rng)
    assert (result.status, engine.limits) == ("feasible", [])


def test_an_interrupt_keeps_placement_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("formulations.placement.portfolio.Portfolio.run", interrupted)
    cells, hops = mesh(6, 6)
    problem = stated(hops, mocap_flows(36), 36, cells)
    result = solve(problem, EngineLimits(time_s=60.0), None, np.random.default_rng(0))
    assert (result.status, result.stop_reason) == ("feasible", "interrupted")
    assert (result.bound, result.placement is None) == (57.0, False)


def test_nothing_to_do() -> None:
    for flows in ([], [(0, 1, 0.0)]):
        problem = stated(mesh(2, 2)[1], flows, 3)
        result = solve(problem, LIMITS, None, np.random.default_rng(0))
        assert (result.status, result.value, result.bound) == ("optimal", 0.0, 0.0)


@given(seed=st.integers(0, 10**6))
def test_local_search_never_gets_worse_and_keeps_the_rules(seed: int) -> None:
    problem = random_problem(seed)
    for start in constructed(problem):
        assert problem.violations(start) == []
        better = improve(problem, start, np.random.default_rng(seed), 5)
        assert problem.violations(better) == []
        assert problem.value(better) <= problem.value(start)


def test_local_search_moves_to_free_dies() -> None:
    # Two stages at the ends of a line of four: one of them moves next to the other.
    _, hops = mesh(1, 4)
    problem = stated(hops, [(0, 1, 1.0)], 2)
    assert problem.value(improve(problem, [0, 3], np.random.default_rng(0), 0)) == 1.0


def test_local_search_repeats_with_a_seed() -> None:
    cells, hops = mesh(4, 4)
    problem = stated(hops, mocap_flows(16), 16, cells)
    start = list(range(16))
    runs = [improve(problem, start, np.random.default_rng(7), 10) for _ in range(2)]
    assert runs[0] == runs[1]


def test_allowed_dies_are_checked() -> None:
    with pytest.raises(InputError, match="allowed"):
        place(
            mesh(1, 2)[1],
            pipeline(2),
            2,
            allowed=[0, 2],
            limits=LIMITS,
            engine=None,
            rng=np.random.default_rng(0),
        )
