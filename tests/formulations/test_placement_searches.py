"""The exact searches against every placement, in slices of any size, with and without a value told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.placement.annealing import Annealing
from formulations.placement.branch import BranchAndBound
from formulations.placement.deepening import Deepening
from formulations.placement.gilmore_lawler import gilmore_lawler_bound
from formulations.placement.ladder_floor import structural_bound
from formulations.placement.problem import PlacementProblem, stated
from formulations.placement.tabu import TabuSearch
from tests.formulations.placement_cases import (
    brute_force,
    cross_half,
    ladder_problem,
    mesh,
    mesh_hops,
    mocap_flows,
    pipeline,
    random_problem,
    seamed,
)


def optimum_in_ticks(problem: PlacementProblem) -> int | None:
    best = brute_force(problem)
    return None if best is None else round(best / problem.tick)


def check_search(search: Any, problem: PlacementProblem, best: int | None, slices: np.random.Generator) -> None:
    """Run to the end; the bound holds at every stop, and the end is the optimum."""
    while not search.finished:
        search.run(int(slices.integers(1, 200)))
        if best is not None:
            assert search.bound is not None
            assert search.bound <= best
    assert search.bound == best
    if search.placement is not None:
        assert best is not None
        assert problem.violations(search.placement) == []
        assert problem.ticks_of(search.placement) == best


@settings(max_examples=250)
@given(seed=st.integers(0, 10**6), surplus=st.none() | st.integers(0, 3))
def test_searches_equal_brute_force(seed: int, surplus: int | None) -> None:
    problem = random_problem(seed, most_dies=8)
    if not (problem.flows or problem.pairs):
        return
    best = optimum_in_ticks(problem)
    reached = None if surplus is None or best is None else best + surplus
    kinds: list[Any] = [BranchAndBound, Deepening] if problem.symmetric else [BranchAndBound]
    for kind in kinds:
        search = kind(problem, reached)
        check_search(search, problem, best, np.random.default_rng(seed))
        assert (search.placement is None) == (best is None or reached == best)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), forced=st.booleans(), odd=st.booleans())
def test_deepening_on_ladders_of_nine_dies_equals_brute_force(seed: int, forced: bool, odd: bool) -> None:
    rng = np.random.default_rng(seed)
    dead = [(int(rng.integers(3)), int(rng.integers(3)))] if rng.random() < 0.5 else []
    cells, hops = mesh(3, 3, dead)
    stages = min(len(cells), 9 if odd else 8)
    weights = [(s, t, float(rng.integers(0, 4))) for s, t, _ in mocap_flows(stages)]
    problem = stated(hops, weights, stages, cells, cross_half(stages) if forced else ())
    check_search(Deepening(problem, None), problem, optimum_in_ticks(problem), rng)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), forced=st.booleans())
def test_two_searches_agree_beyond_brute_force(seed: int, forced: bool) -> None:
    # Ladders on up to 12 dies: neither search knows of the other, and their bounds have nothing in common.
    rng = np.random.default_rng(seed)
    rows, columns = [(2, 5), (2, 6), (3, 4), (4, 3)][int(rng.integers(4))]
    dead = [(int(rng.integers(rows)), int(rng.integers(columns)))] if rng.random() < 0.5 else []
    cells, hops = seamed(2, 3, int(rng.integers(2, 5))) if rng.random() < 0.3 else mesh(rows, columns, dead)
    stages = len(cells) - int(rng.integers(2))
    weights = [(s, t, float(rng.integers(0, 4))) for s, t, _ in mocap_flows(stages)]
    problem = stated(hops, weights, stages, cells, cross_half(stages) if forced else ())
    bound = structural_bound(problem)
    optima = []
    for search in (BranchAndBound(problem, None), Deepening(problem, None)):
        while not search.finished:
            search.run(20_000)
        optima.append(search.bound)
        if search.placement is not None:
            assert problem.violations(search.placement) == []
            assert problem.ticks_of(search.placement) == search.bound
    assert optima[0] == optima[1]
    if optima[0] is not None:
        assert bound is not None
        assert max(bound, gilmore_lawler_bound(problem)) <= optima[0]


@pytest.mark.parametrize(
    ("rows", "columns", "forced", "value"),
    [
        (4, 4, True, 25),
        (4, 4, False, 25),
        (4, 6, True, 37),
        (4, 6, False, 37),
        (8, 8, True, 103),
        (12, 12, True, 227),
    ],
)
def test_deepening_proves_ladders_on_full_meshes(rows: int, columns: int, forced: bool, value: int) -> None:
    # N-1 + N/2 flows and two more hops for each change of strip: 1, 1, 3 and 5 changes. The jump from stage N/2-1 to
    # N/2 has one hop with one change, and three with more.
    problem = ladder_problem(*mesh(rows, columns), forced=forced)
    search = Deepening(problem, None)
    search.run(10_000_000)
    assert (search.finished, search.bound) == (True, value)
    assert search.placement is not None
    assert problem.violations(search.placement) == []
    assert problem.value(search.placement) == value


@pytest.mark.parametrize("forced", [True, False])
@pytest.mark.parametrize(("seam", "value"), [(3, 48 + 9), (5, 48 + 15)])
def test_deepening_proves_two_wafers(seam: int, value: int, forced: bool) -> None:
    # 4x8: three flows cross the seam, two rails and the jump; 44 other flows and two changes of strip within wafers.
    problem = ladder_problem(*seamed(4, 4, seam), forced=forced)
    search = Deepening(problem, value + 1)
    search.run(20_000_000)
    assert (search.finished, search.bound) == (True, value)


def test_distances_that_are_all_even_have_no_colours() -> None:
    # A pipeline on a mesh of links of length 2: no step need be longer than 2, and no colour of a chessboard counts.
    cells, hops = mesh(2, 3)
    problem = stated(2 * hops, pipeline(6), 6, cells)
    search = Deepening(problem, None)
    search.run(7)
    assert search.bound == 10
    check_search(search, problem, 10, np.random.default_rng(0))


def test_deepening_proves_a_pipeline_around_dead_dies() -> None:
    # Dead dies of one colour leave 15 and 18 dies: at least two steps keep the colour and cost a hop more.
    cells, hops = mesh(6, 6, [(1, 1), (2, 2), (3, 3)])
    problem = stated(hops, pipeline(33), 33, cells)
    search = Deepening(problem, None)
    search.run(1_000_000)
    assert (search.finished, search.bound) == (True, 32 + 2)


def test_stages_without_flows_take_what_is_left() -> None:
    cells, hops = mesh(2, 3)
    problem = stated(hops, [(1, 4, 2.0)], 6, cells)
    for search in (BranchAndBound(problem, None), Deepening(problem, None)):
        search.run(1000)
        assert search.placement is not None
        assert sorted(search.placement) == list(range(6))
        assert problem.value(search.placement) == 2.0


def test_a_value_told_ends_a_search_that_cannot_do_better() -> None:
    problem = ladder_problem(*mesh(4, 4))
    deepening, branching = Deepening(problem, None), BranchAndBound(problem, None)
    deepening.tell(25)
    assert (deepening.finished, deepening.bound, deepening.placement) == (True, 25, None)
    branching.run(3)
    branching.tell(24)  # no placement has it, so the search must end without one
    while not branching.finished:
        branching.run(1000)
    assert (branching.bound, branching.placement) == (24, None)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 2000))
def test_tabu_keeps_its_books(seed: int, steps: int) -> None:
    problem = random_problem(seed, most_dies=8)
    rng = np.random.default_rng(seed)
    search = TabuSearch(problem, list(range(problem.stages)), rng)
    search.run(steps)
    assert len(set(search.placement)) == problem.stages
    # The value that the gains added up to is the value of the placement.
    assert search.best_ticks == problem.ticks_of(search.placement)
    assert search.best_ticks <= problem.ticks_of(list(range(problem.stages)))


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 3000))
def test_annealing_keeps_its_books(seed: int, steps: int) -> None:
    problem = random_problem(seed, most_dies=8)
    search = Annealing(problem, list(range(problem.stages)), np.random.default_rng(seed))
    search.run(steps)
    assert len(set(search.placement)) == problem.stages
    # The value that the changes added up to is the value of the placement.
    assert search.best_ticks == problem.ticks_of(search.placement)
    assert search.best_ticks <= problem.ticks_of(list(range(problem.stages)))


def test_annealing_and_tabu_repeat_with_a_seed() -> None:
    problem = ladder_problem(*mesh(4, 4))
    for kind in (Annealing, TabuSearch):
        runs = []
        for _ in range(2):
            search = kind(problem, list(range(16)), np.random.default_rng(7))
            search.run(3000)
            runs.append(search.placement)
        assert runs[0] == runs[1]


@pytest.mark.parametrize("kind", [Annealing, TabuSearch])
def test_heuristics_find_the_optimum_of_small_problems(kind: type[Annealing] | type[TabuSearch]) -> None:
    problem = ladder_problem(*mesh(4, 4))
    search = kind(problem, list(range(16)), np.random.default_rng(0))
    search.run(100_000)
    assert problem.value(search.placement) == 25.0


def test_annealing_unfolds_a_grid_that_was_shuffled() -> None:
    # The edges of a 12x12 grid, 2 * 11 * 12 of them, on 16x16 dies: each can have one hop.
    number = np.random.default_rng(0).permutation(144).reshape(12, 12)
    flows = [(int(a), int(b), 1.0) for a, b in zip(number[:, :-1].flat, number[:, 1:].flat, strict=True)]
    flows += [(int(a), int(b), 1.0) for a, b in zip(number[:-1].flat, number[1:].flat, strict=True)]
    problem = stated(mesh_hops(16, 16), flows, 144)
    search = Annealing(problem, list(range(144)), np.random.default_rng(0))
    assert search.best_ticks > 2000
    search.run(4_000_000)
    assert 264 <= problem.value(search.placement) < 1.3 * 264
