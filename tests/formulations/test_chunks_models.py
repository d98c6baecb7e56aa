"""Brute force = exact search = CP-SAT = MILP on small chunk tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.chunks import cpsat, milp
from formulations.chunks.exact import solve_chunks
from formulations.chunks.variables import in_ticks
from formulations.interface import EngineLimits
from instances.errors import InputError
from solver.backends.cpsat import solve_cpsat
from solver.backends.highs import solve_highs
from tests.formulations.chunk_cases import brute_force, random_tables, toy_table, value_of

LIMITS = EngineLimits(time_s=60.0, deterministic=True)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    quanta=st.integers(1, 8),
    kind=st.sampled_from(["smooth", "kinked", "arbitrary", "coarse", "gaps"]),
    weights=st.tuples(st.sampled_from([0.0, 1.0, 2.5]), st.sampled_from([0.0, 1.0, 15.0])),
    counts=st.tuples(st.integers(1, 8), st.integers(1, 8)),
)
def test_four_ways_agree(
    seed: int, quanta: int, kind: str, weights: tuple[float, float], counts: tuple[int, int]
) -> None:
    # Tables in multiples of 1/64 and a tick of 1/128 (A may be 2.5), so that nothing is rounded.
    t, u = (np.round(table * 64) / 64 for table in random_tables(seed, quanta, kind))
    fewest, most = min(*counts, quanta), min(max(counts), quanta)
    best = brute_force(t, u, *weights, fewest, most)
    exact = solve_chunks(t, u, *weights, most, fewest)
    ticks = in_ticks(t, u, *weights, 1 / 128, most, fewest)
    constrained = cpsat.build(ticks)
    programmed = milp.build(ticks)
    by_constraints = solve_cpsat(constrained.model, LIMITS)
    by_milp = solve_highs(programmed.model, LIMITS)
    if best is None:
        assert exact.cuts == []
        assert (by_constraints.status, by_milp.status) == ("infeasible", "infeasible")
        return
    assert exact.value == pytest.approx(best)
    for outcome, cuts in (
        (by_constraints, cpsat.extract(constrained, by_constraints)),
        (by_milp, milp.extract(programmed, by_milp)),
    ):
        assert outcome.status == "optimal"
        assert outcome.value is not None
        assert outcome.bound is not None
        assert outcome.value * ticks.tick == pytest.approx(best)
        assert outcome.bound * ticks.tick == pytest.approx(best)
        assert value_of(t, u, *weights, cuts) == pytest.approx(best)
        assert fewest <= len(cuts) <= most


@pytest.mark.parametrize(
    ("per_token", "chunks", "value"), [(0.0, 12, 102), (0.0, 3, 134), (2.0, 12, 130), (2.0, 3, 180)]
)
def test_toy_oracle_on_both_engines(per_token: float, chunks: int, value: int) -> None:
    table = toy_table(per_token)
    ticks = in_ticks(table, table, 1.0, 2.0, 1.0, chunks)
    assert solve_cpsat(cpsat.build(ticks).model, LIMITS).value == value
    assert solve_highs(milp.build(ticks).model, LIMITS).value == pytest.approx(value)


def test_rounding_to_ticks() -> None:
    # A*t/tick = 2.5*0.3/0.5 = 1.5 -> 2 (to even), Z*u/tick = 3*0.3/0.5 = 1.8 -> 2; the forbidden chunk is no arc.
    t = np.array([[0.0, 0.3, np.inf], [0.0, 0.0, 0.3], [0.0, 0.0, 0.0]])
    ticks = in_ticks(t, t, 2.5, 3.0, 0.5)
    assert ticks.arcs == [(0, 1), (1, 2)]
    assert (ticks.cost[0, 1], ticks.crossing[1, 2], ticks.cost[0, 2]) == (2, 2, 0)


@pytest.mark.parametrize("tick", [0.0, -1.0, 1e-12])
def test_ticks_must_fit(tick: float) -> None:
    with pytest.raises(InputError, match="tick"):
        in_ticks(toy_table(0.0), toy_table(0.0), 1.0, 1.0, tick)
