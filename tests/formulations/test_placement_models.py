"""The two placement models, the domino circuit and the bound against every placement."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.interface import EngineLimits
from formulations.placement import cpsat, domino, milp
from formulations.placement.gilmore_lawler import gilmore_lawler_bound
from formulations.placement.problem import PlacementProblem, stated
from formulations.placement.symmetry import moved_to_representative, representatives, symmetries
from instances.errors import InputError
from solver.backends.cpsat import solve_cpsat
from solver.backends.highs import solve_highs
from tests.formulations.placement_cases import brute_force, cross_half, mesh, mocap_flows, pipeline, random_problem

LIMITS = EngineLimits(time_s=60.0, deterministic=True)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_both_models_equal_brute_force(seed: int) -> None:
    problem = random_problem(seed)
    best = brute_force(problem)
    placed = cpsat.build(problem)
    constrained = solve_cpsat(placed.model, LIMITS)
    programmed = milp.build(problem)
    linear = solve_highs(programmed.model, LIMITS)
    if best is None:
        assert (constrained.status, linear.status) == ("infeasible", "infeasible")
        return
    assert (constrained.status, constrained.value, constrained.bound) == ("optimal", best, best)
    assert linear.status == "optimal"
    assert linear.value == pytest.approx(best)
    for placement in (cpsat.extract(placed, constrained), milp.extract(programmed, linear)):
        assert problem.violations(placement) == []
        assert problem.value(placement) == best


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_gilmore_lawler_is_a_bound(seed: int) -> None:
    problem = random_problem(seed)
    best = brute_force(problem)
    if best is not None:
        assert gilmore_lawler_bound(problem) <= best + 1e-9


def test_gilmore_lawler_by_hand() -> None:
    # Line of 3 dies, flows 0-1 (weight 2) and 1-2 (weight 1), halves both ways: stage weights (1), (1, 0.5), (0.5).
    # In the middle stage 1 costs 1 + 0.5, at the ends the others cost 1 and 0.5: 3 in all, and 3 is reached.
    _, hops = mesh(1, 3)
    assert gilmore_lawler_bound(stated(hops, [(0, 1, 2.0), (1, 2, 1.0)], 3)) == 3.0


@pytest.mark.parametrize(("rows", "columns", "value"), [(2, 2, 6), (2, 3, 10), (2, 4, 13), (4, 4, 25)])
def test_domino_circuit_on_full_meshes(rows: int, columns: int, value: int) -> None:
    # 2x4: two strips of two dominoes, steps of 2, 4 and 2 hops, a jump of 1, and 4 pair hops. 2x3: one strip of three,
    # steps of 2 and 2, a jump from end to end of 3, and 3 pair hops.
    cells, hops = mesh(rows, columns)
    stages = len(cells)
    problem = stated(hops, mocap_flows(stages), stages, cells, cross_half(stages))
    if stages <= 8:
        assert brute_force(problem) == value
    weights = domino.domino_weights(problem)
    assert weights == domino.DominoWeights(step=1, jump=1, pair=stages // 2)
    assert weights is not None
    circuit = domino.build(problem, weights)
    outcome = solve_cpsat(circuit.model, LIMITS)
    assert (outcome.status, outcome.value) == ("optimal", value)
    placement = domino.extract(circuit, outcome)
    assert problem.violations(placement) == []
    assert problem.value(placement) == value


@pytest.mark.parametrize("dead", [[(0, 0)], [(0, 1)], [(0, 0), (1, 2)]])
def test_domino_circuit_with_free_and_dead_dies(dead: list[tuple[int, int]]) -> None:
    cells, hops = mesh(2, 3, dead)
    problem = stated(hops, mocap_flows(4, 3.0), 4, cells, cross_half(4))
    weights = domino.domino_weights(problem)
    assert weights is not None
    best = brute_force(problem)
    # The bound on arcs must not cut off the optimum that it names.
    circuit = domino.build(problem, weights, below=None if best is None else int(best))
    outcome = solve_cpsat(circuit.model, LIMITS)
    assert outcome.value == best
    assert (outcome.status == "infeasible") == (best is None)


@pytest.mark.parametrize(
    "problem",
    [
        stated(mesh(2, 2)[1], mocap_flows(4), 4, mesh(2, 2)[0], [(0, 1), (2, 3)]),  # other pairs
        stated(mesh(2, 2)[1], [*mocap_flows(4), (0, 3, 1.0)], 4, mesh(2, 2)[0], cross_half(4)),  # one more flow
        stated(mesh(2, 3)[1], [*mocap_flows(6), (0, 1, 1.0)], 6, mesh(2, 3)[0], cross_half(6)),  # a heavier step
        stated(mesh(2, 3)[1], pipeline(5), 5, mesh(2, 3)[0], cross_half(5)),  # odd
    ],
)
def test_other_problems_are_no_domino_circuit(problem: PlacementProblem) -> None:
    assert domino.domino_weights(problem) is None


def test_jump_may_have_its_own_weight() -> None:
    flows = [*mocap_flows(6), (2, 3, 4.0)]
    problem = stated(mesh(2, 3)[1], flows, 6, mesh(2, 3)[0], cross_half(6))
    weights = domino.domino_weights(problem)
    assert weights == domino.DominoWeights(step=1, jump=5, pair=3)
    assert weights is not None
    assert solve_cpsat(domino.build(problem, weights).model, LIMITS).value == brute_force(problem)


def test_start_is_taken_up_by_all_models() -> None:
    # Time for nothing but the start.
    cells, hops = mesh(4, 4)
    problem = stated(hops, mocap_flows(16), 16, cells, cross_half(16))
    start = [3, 2, 1, 0, 8, 9, 10, 11, 7, 6, 5, 4, 12, 13, 14, 15]
    assert problem.violations(start) == []
    moved = moved_to_representative(problem, start)
    assert problem.value(moved) == problem.value(start)
    weights = domino.domino_weights(problem)
    assert weights is not None
    hinted = cpsat.build(problem, start).model.proto.solution_hint
    assert len(hinted.vars) == 16 * 16
    assert sum(hinted.values) == 16
    circuit_hint = domino.build(problem, weights, start).model.proto.solution_hint
    # 8 dominoes, 7 steps and one jump.
    assert sum(circuit_hint.values) == 8 + 7 + 1
    programmed = milp.build(problem, start)
    outcome = solve_highs(programmed.model, EngineLimits(time_s=0.0))
    assert milp.extract(programmed, outcome) == moved


@pytest.mark.parametrize(("rows", "columns", "dead", "count"), [(2, 2, [], 8), (2, 3, [], 4), (2, 3, [(0, 1)], 2)])
def test_symmetries_of_meshes(rows: int, columns: int, dead: list[tuple[int, int]], count: int) -> None:
    # A square has eight, a rectangle four, a rectangle without the middle of one side the left-right reflection.
    cells, hops = mesh(rows, columns, dead)
    problem = stated(hops, [], 2, cells)
    assert len({tuple(permutation) for permutation in symmetries(problem)}) == count
    for die, first in enumerate(representatives(problem)):
        assert moved_to_representative(problem, [die])[0] == first


def test_weights_in_bytes_are_rounded_down_to_ticks() -> None:
    _, hops = mesh(1, 3)
    problem = stated(hops, [(0, 1, 1.5e9), (1, 2, 1e3 + 0.5)], 3)
    # The largest weight is a million ticks of 1500; 1000.5 is 0.667 ticks.
    assert problem.tick == 1500.0
    assert problem.ticks == (1_000_000, 0)
    assert problem.value([0, 1, 2]) == 1.5e9 + 1e3 + 0.5


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("hops.shape", (np.ones((2, 3), dtype=int), [], 2)),
        ("hops", (np.ones((2, 2)), [], 2)),
        ("stages", (np.ones((2, 2), dtype=int), [], 3)),
        ("dies_rc", (np.ones((2, 2), dtype=int), [], 2, [(0, 0)])),
        ("flows", (np.ones((2, 2), dtype=int), [(0, 1, -1.0)], 2)),
        ("flows", (np.ones((2, 2), dtype=int), [(0, 2, 1.0)], 2)),
        ("pairs", (np.ones((2, 2), dtype=int), [], 2, None, [(1, 1)])),
    ],
)
def test_bad_input_is_named(field: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(InputError) as caught:
        stated(*arguments)  # type: ignore[arg-type]  # wrong on purpose
    assert caught.value.field == field
