"""The two placement models, the domino circuit and the bound against every placement."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.interface import EngineLimits
from formulations.placement import cpsat, domino, milp
from formulations.placement.gilmore_lawler import gilmore_lawler_bound
from formulations.placement.problem import PlacementProblem, stated
from formulations.placement.symmetry import moved_to_representative
from instances.errors import InputError
from solver.backends.cpsat import solve_cpsat
from solver.backends.highs import solve_highs
from tests.formulations.placement_cases import (
    brute_force,
    cross_half,
    mesh,
    mocap_flows,
    pipeline,
    random_problem,
    shape_bound,
)

LIMITS = EngineLimits(time_s=60.0, deterministic=True)


@settings(max_examples=200)
@given(seed=st.integers(0, 10**6), bounded=st.booleans())
def test_both_models_equal_brute_force(seed: int, bounded: bool) -> None:
    problem = random_problem(seed)
    best = brute_force(problem)
    # With and without what is proved beforehand as a row of the model.
    floor = max(shape_bound(problem), gilmore_lawler_bound(problem)) if bounded and best is not None else 0
    placed = cpsat.build(problem, at_least=floor)
    constrained = solve_cpsat(placed.model, LIMITS)
    programmed = milp.build(problem, at_least=floor)
    linear = solve_highs(programmed.model, LIMITS)
    if best is None:
        assert (constrained.status, linear.status) == ("infeasible", "infeasible")
        return
    assert (constrained.status, linear.status) == ("optimal", "optimal")
    for value in (constrained.value, constrained.bound, linear.value):
        assert value is not None
        # HiGHS meets rows up to 1e-6, and a distance counts up to its weight.
        assert value * problem.tick == pytest.approx(best, abs=1e-4)
    for placement in (cpsat.extract(placed, constrained), milp.extract(programmed, linear)):
        assert problem.violations(placement) == []
        assert problem.value(placement) == pytest.approx(best)


def test_random_problems_are_of_all_kinds() -> None:
    problems = [random_problem(seed) for seed in range(300)]
    assert {problem.dies_rc is None for problem in problems} == {True, False}
    assert {bool(problem.pairs) for problem in problems} == {True, False}
    assert {problem.symmetric for problem in problems} == {True, False}
    assert {len(problem.detours) > 0 for problem in problems if problem.dies_rc is not None} == {True, False}
    assert {brute_force(problem) is None for problem in problems} == {True, False}
    assert {problem.stages == problem.dies for problem in problems} == {True, False}


@settings(max_examples=200)
@given(seed=st.integers(0, 10**6))
def test_gilmore_lawler_is_a_bound(seed: int) -> None:
    problem = random_problem(seed, most_dies=8)
    best = brute_force(problem)
    if best is not None:
        assert gilmore_lawler_bound(problem) * problem.tick <= best + 1e-9


def test_gilmore_lawler_by_hand() -> None:
    # Line of 3 dies, flows 0-1 (weight 2) and 1-2 (weight 1), halves both ways: stage weights (1), (1, 0.5), (0.5).
    # In the middle stage 1 costs 1 + 0.5, at the ends the others cost 1 and 0.5: 3 in all, and 3 is reached.
    _, hops = mesh(1, 3)
    assert gilmore_lawler_bound(stated(hops, [(0, 1, 2.0), (1, 2, 1.0)], 3)) == 3


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
    circuit = domino.build(problem, weights, at_least=shape_bound(problem))
    assert solve_cpsat(circuit.model, LIMITS).value == brute_force(problem)


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


@pytest.mark.parametrize(
    ("weights", "unit", "ticks"),
    [
        ([3.672, 0.25], "0.002", (1836, 125)),
        ([64.0, 128.0], "64", (1, 2)),
        ([0.5, 190.0], "0.5", (1, 380)),
        ([33554432.0, 1048576.0], "1048576", (32, 1)),
    ],
)
def test_weights_with_a_common_unit_are_exact(weights: list[float], unit: str, ticks: tuple[int, ...]) -> None:
    _, hops = mesh(1, 3)
    problem = stated(hops, [(0, 1, weights[0]), (1, 2, weights[1])], 3)
    assert problem.unit == Fraction(unit)
    assert problem.ticks == ticks
    # Both flows have one hop, and no digit is lost.
    assert problem.value([0, 1, 2]) == float(sum(map(Fraction, map(str, weights))))
    assert problem.weighed(sum(ticks)) == problem.value([0, 1, 2])


def test_weights_in_bytes_are_rounded_down_to_ticks() -> None:
    _, hops = mesh(1, 3)
    problem = stated(hops, [(0, 1, 1.5e9), (1, 2, 1e3 + 0.5)], 3)
    # The largest weight is a million ticks of 1500; 1000.5 is 0.667 ticks.
    assert problem.unit is None
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
