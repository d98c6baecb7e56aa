"""Placing from start to end: known optima, dead dies, infeasibility, heuristics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from formulations.interface import EngineLimits
from formulations.placement.constructive import constructed
from formulations.placement.local_search import improve
from formulations.placement.place import PlacementResult, place, solve
from formulations.placement.problem import stated
from instances.errors import InputError
from solver.backends.cpsat import solve_cpsat
from tests.formulations.placement_cases import brute_force, cross_half, mesh, mocap_flows, pipeline, random_problem

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


@pytest.mark.parametrize(
    ("rows", "columns", "pair_adjacent", "value"),
    [
        # 17 hops along the pipeline and 8 between partners.
        (4, 4, True, 25.0),
        (4, 4, False, 25.0),
        # 21 and 10.
        (4, 5, True, 31.0),
    ],
)
def test_known_optima(rows: int, columns: int, pair_adjacent: bool, value: float) -> None:
    result = placed(rows, columns, pair_adjacent)
    assert (result.status, result.stop_reason) == ("optimal", "proved")
    assert (result.value, result.bound) == (value, value)


@pytest.mark.parametrize(("rows", "columns", "value"), [(4, 4, 25.0), (4, 5, 31.0), (4, 6, 37.0)])
def test_strips_reach_the_known_optima_without_an_engine(rows: int, columns: int, value: float) -> None:
    result = placed(rows, columns, True, engine=None)
    assert result.value == value
    assert result.status == "feasible"
    assert result.bound is not None
    assert value * 0.9 < result.bound < value


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


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
@example(seed=150)  # distances that differ by direction: partners may be neighbours one way only
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


def test_adjacency_that_cannot_be_is_infeasible() -> None:
    # A star: every pair needs the middle die, so two pairs do not fit.
    cells, hops = mesh(3, 3, [(0, 0), (0, 2), (2, 0), (2, 2)])
    problem = stated(hops, mocap_flows(4), 4, cells, cross_half(4))
    result = solve(problem, LIMITS, solve_cpsat, np.random.default_rng(0))
    assert (result.status, result.stop_reason) == ("infeasible", "proved")
    assert (result.placement, result.value, result.bound) == (None, None, None)
    assert result.outcome is None


def test_adjacency_that_only_the_engine_refutes_is_infeasible() -> None:
    # Three stages next to each other in a ring do not fit on a mesh, whose rings are even.
    cells, hops = mesh(2, 2)
    problem = stated(hops, pipeline(3), 3, cells, [(0, 1), (1, 2), (0, 2)])
    result = solve(problem, LIMITS, solve_cpsat, np.random.default_rng(0))
    assert (result.status, result.stop_reason) == ("infeasible", "proved")
    assert result.outcome is not None


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


def test_no_time_leaves_the_heuristic_placement_and_a_bound() -> None:
    cells, hops = mesh(4, 4)
    problem = stated(hops, mocap_flows(16), 16, cells)
    result = solve(problem, EngineLimits(time_s=0.0), solve_cpsat, np.random.default_rng(0))
    assert (result.status, result.stop_reason) == ("feasible", "time_limit")
    # Gilmore-Lawler: 24.
    assert (result.value, result.bound) == (25.0, 24.0)


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
