"""Searches side by side: proofs, limits of all kinds, interrupts, and what each leaves behind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.placement.portfolio import MOST_DIES, Portfolio, suits
from formulations.placement.problem import PlacementProblem, stated
from tests.formulations.placement_cases import (
    brute_force,
    cross_half,
    ladder_problem,
    mesh,
    mocap_flows,
    random_problem,
)


def fresh(problem: PlacementProblem) -> Portfolio:
    return Portfolio(problem, None, 0)


@settings(max_examples=80)
@given(seed=st.integers(0, 10**6))
def test_equals_brute_force(seed: int) -> None:
    problem = random_problem(seed, most_dies=8)
    best = brute_force(problem)
    known = fresh(problem)
    known.run(60.0, True, np.random.default_rng(seed))
    if not suits(problem):
        return
    assert known.closed
    assert known.infeasible == (best is None)
    if best is not None:
        assert known.best is not None
        assert problem.value(known.best) == best
        assert problem.violations(known.best) == []


def test_names_the_search_that_has_the_bound() -> None:
    dense = stated(mesh(3, 3)[1], [(s, t, 1.0 + s) for s in range(9) for t in range(s)], 9, mesh(3, 3)[0])
    known = fresh(dense)
    known.run(30.0, True, np.random.default_rng(0))
    assert list(known.exact) == ["branch and bound"]
    assert known.bound_by == "branch and bound"
    known = fresh(ladder_problem(*mesh(4, 4)))
    known.run(30.0, True, np.random.default_rng(0))
    assert (known.closed, known.bound, known.bound_by) == (True, 25, "iterative deepening")


def test_deterministic_runs_repeat_and_stop_by_work() -> None:
    # 10x10 is not proved in this little work.
    problem = ladder_problem(*mesh(10, 10), forced=True)
    start = [row * 10 + column for half in (0, 1) for column in range(10) for row in range(half, 10, 2)]
    assert problem.violations(start) == []
    runs = []
    for _ in range(2):
        known = Portfolio(problem, start, 0)
        known.run(0.2, True, np.random.default_rng(3))
        runs.append((known.best, known.bound, known.closed))
    assert runs[0] == runs[1]
    assert not runs[0][2]
    assert runs[0][1] >= 155


def test_stops_at_the_gap_that_is_asked_for() -> None:
    problem = ladder_problem(*mesh(10, 10))
    known = Portfolio(problem, list(range(100)), 0)
    known.run(None, True, np.random.default_rng(0), relative_gap=0.99)
    assert known.is_near(0.99)
    assert not known.closed


def test_an_interrupt_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ladder_problem(*mesh(10, 10))
    known = Portfolio(problem, list(range(100)), 0)
    before = known.value
    slices = []

    def count(self: object, slice_s: float) -> None:
        slices.append(slice_s)
        if len(slices) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("formulations.placement.portfolio._Clock.count", count)
    with pytest.raises(KeyboardInterrupt):
        known.run(60.0, True, np.random.default_rng(0))
    assert before is not None
    assert known.value is not None
    assert known.value < before
    assert known.bound > 0


def test_what_does_not_suit_is_left_alone() -> None:
    size = MOST_DIES + 1
    large = stated(np.ones((size, size), dtype=np.int64), [(0, 1, 1.0)], 2)
    known = fresh(large)
    known.run(1.0, True, np.random.default_rng(0))
    assert (known.best, known.bound, known.exact) == (None, 0, {})
    assert not suits(stated(mesh(2, 2)[1], [], 3))
    assert suits(stated(mesh(2, 2)[1], [], 4, None, cross_half(4)))


def test_sums_that_could_overflow_are_not_searched() -> None:
    hops = np.full((4, 4), 10**9, dtype=np.int64)
    assert not suits(stated(hops, [(s, t, 9e7 + s) for s, t, _ in mocap_flows(4)], 4))
