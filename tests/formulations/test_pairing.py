"""Groups of stages: values by hand, the figures of the slot model, and four ways to the same answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.interface import Engine, EngineLimits, EngineOutcome
from formulations.pairing import cpsat, milp
from formulations.pairing.matching import best_pairs
from formulations.pairing.pair import PairingResult, pair_stages
from formulations.pairing.problem import (
    PairingProblem,
    cross_half,
    head_to_tail,
    lockstep_occupancy,
    stated,
)
from instances.errors import InputError
from solver.backends.cpsat import solve_cpsat
from solver.backends.highs import solve_highs
from tests.formulations.pairing_cases import brute_force, groupings, random_problem

LIMITS = EngineLimits(time_s=60.0, deterministic=True)
ENGINES: dict[str, Engine] = {"cpsat": solve_cpsat, "milp": solve_highs}


def _assert_best(problem: PairingProblem, found: PairingResult, peak: float, traffic: float) -> None:
    assert (found.status, found.stop_reason) == ("optimal", "proved")
    assert found.groups is not None
    assert problem.violations(found.groups) == []
    assert problem.value(found.groups) == (found.peak, found.traffic)
    assert found.peak == pytest.approx(peak)
    assert found.peak_bound == pytest.approx(peak)
    assert found.gap == 0.0
    # Traffic of groups of three is no whole number, and rounded to a millionth of the largest.
    assert found.traffic == pytest.approx(traffic, rel=1e-4)
    assert found.traffic_bound == pytest.approx(traffic, rel=1e-4)


@settings(max_examples=120)
@given(seed=st.integers(0, 10**6))
def test_brute_force_and_both_models_agree(seed: int) -> None:
    problem = random_problem(seed)
    best = brute_force(problem)
    for form, engine in ENGINES.items():
        _assert_best(problem, pair_stages(problem, form, engine, LIMITS), *best)


@settings(max_examples=100)
@given(seed=st.integers(0, 10**6))
def test_pairs_by_matching_agree_too(seed: int) -> None:
    problem = random_problem(seed, size=2)
    best = brute_force(problem)
    pairs = best_pairs(problem)
    assert problem.violations(pairs) == []
    assert problem.value(pairs) == pytest.approx(best)
    for form, engine in ENGINES.items():
        _assert_best(problem, pair_stages(problem, form, engine, LIMITS), *best)


def test_peak_and_traffic_by_hand() -> None:
    # Stages 0 and 1 together hold 4, 4: 2 each. Of 3 against 1 one lies with the other, at both slots, two hops away.
    problem = stated([[3, 1], [1, 3], [2, 2]], [2, 1], hops=[[0, 2, 5], [2, 0, 5], [5, 5, 0]])
    assert problem.peak((0, 1)) == 2.0
    assert problem.traffic((0, 1)) == 4.0
    assert problem.value([(0, 1), (2,)]) == (2.0, 4.0)
    # 0 and 2 hold 5 and 3, so the peak is 2.5, and half of 1 + 1 lies five hops away.
    assert problem.value([(0, 2), (1,)]) == (3.0, 5.0)
    # With room for 1, 1 and 4 the three of them use 6 of 6.
    assert stated([[3, 1], [1, 3], [2, 2]], 3, capacity=[1, 1, 4]).peak((0, 1, 2)) == 1.0


def test_lockstep_occupancy() -> None:
    # Three chunks: stage 0 holds 1, 2, 3, stage 1 is a slot behind.
    assert lockstep_occupancy(2, 3).tolist() == [[1, 2, 3], [3, 1, 2]]


def _gain(chunks: int, problem: PairingProblem, groups: list[tuple[int, ...]]) -> float:
    """How much longer requests may be than without sharing, where each stage needs room for all chunks."""
    return chunks / problem.value(groups)[0]


@pytest.mark.parametrize("chunks", [4, 8, 12, 16, 17, 20, 24, 32, 64])
def test_fixed_cross_half_pairs(chunks: int) -> None:
    # M / (M - min(d, M-d)/2) with d = 8 mod M, which the slots give as well: 1.00 at 8 chunks, 1.333 at 16.
    problem = stated(lockstep_occupancy(16, chunks), 2)
    apart = 8 % chunks
    assert _gain(chunks, problem, cross_half(16)) == pytest.approx(chunks / (chunks - min(apart, chunks - apart) / 2))


@pytest.mark.parametrize(
    ("chunks", "cross", "tail", "pool"),
    [
        (4, 1.0, 1.143, 1.6),
        (8, 1.0, 1.067, 1.778),
        (12, 1.2, 1.043, 1.6),
        (16, 1.333, 1.032, 1.882),
        (17, 1.308, 1.030, 1.789),
        (24, 1.2, 1.021, 1.455),
        (32, 1.143, 1.016, 1.306),
    ],
)
def test_figures_of_the_slot_model(chunks: int, cross: float, tail: float, pool: float) -> None:
    occupancy = lockstep_occupancy(16, chunks)
    pairs, whole = stated(occupancy, 2), stated(occupancy, 16)
    assert _gain(chunks, pairs, cross_half(16)) == pytest.approx(cross, abs=5e-4)
    assert _gain(chunks, pairs, head_to_tail(16)) == pytest.approx(tail, abs=5e-4)
    assert _gain(chunks, whole, [tuple(range(16))]) == pytest.approx(pool, abs=5e-4)


@pytest.mark.parametrize(
    ("chunks", "size", "gain"),
    [
        # Partners half a wave apart: 8 chunks of which partners hold 12 at most, 6 each; cross-half pairs gain nothing.
        (4, 2, 4 / 3),
        (8, 2, 4 / 3),
        # Nobody is more than 8 stages away, and at most 12 chunks apart: as cross-half.
        (12, 2, 1.2),
        (16, 2, 4 / 3),
        (24, 2, 1.2),
        # Four a quarter of a wave apart: 8 + 6 + 4 + 2 = 20 in the slot where one holds 8.
        (8, 4, 1.6),
        # 16 + 12 + 8 + 4 = 40, ten each.
        (16, 4, 1.6),
        # 1 + ... + 8, twice, on sixteen.
        (8, 16, 16 / 9),
    ],
)
@pytest.mark.parametrize("form", ENGINES)
def test_free_groups_of_sixteen_stages(chunks: int, size: int, gain: float, form: str) -> None:
    problem = stated(lockstep_occupancy(16, chunks), size)
    found = pair_stages(problem, form, ENGINES[form], LIMITS)
    assert (found.status, found.peak_bound) == ("optimal", found.peak)
    assert found.peak == pytest.approx(chunks / gain)
    if size == 2:
        assert problem.value(best_pairs(problem)) == (found.peak, found.traffic)


def test_traffic_decides_among_equal_peaks() -> None:
    # All pairs have the peak 2 and exchange 1 at each of two slots; the near ones are 0-1 and 2-3.
    occupancy = [[3, 1], [1, 3], [3, 1], [1, 3]]
    hops = [[0, 1, 4, 4], [1, 0, 4, 4], [4, 4, 0, 1], [4, 4, 1, 0]]
    problem = stated(occupancy, 2, hops=hops)
    for form, engine in ENGINES.items():
        found = pair_stages(problem, form, engine, LIMITS)
        assert (found.groups, found.peak, found.traffic) == ([(0, 1), (2, 3)], 2.0, 4.0)
    assert best_pairs(problem) == [(0, 1), (2, 3)]


def test_start_is_taken_up_and_never_worsened() -> None:
    problem = stated(lockstep_occupancy(16, 16), 2)
    # Too little time for anything: the start is what there is.
    found = pair_stages(problem, "milp", solve_highs, EngineLimits(time_s=0.0), cross_half(16))
    assert found.groups == cross_half(16)
    assert found.peak == 12.0
    assert found.peak_bound is None or found.peak_bound <= 12.0
    hinted = cpsat.build(problem, cross_half(16)).model.proto.solution_hint
    assert sum(hinted.values) == 8
    worse = pair_stages(problem, "cpsat", solve_cpsat, LIMITS, head_to_tail(16))
    assert worse.peak == 12.0


def _only_a_bound(model: object, limits: EngineLimits) -> EngineOutcome:
    return EngineOutcome("unknown", "time_limit", None, 2.2, "UNKNOWN", "CP-SAT", "9", 0.0)


def test_engine_without_values() -> None:
    """Ranks are whole, so a bound of 2.2 stands for the fourth lowest peak."""
    problem = stated(lockstep_occupancy(8, 8), 2)
    found = pair_stages(problem, "cpsat", _only_a_bound, LIMITS)
    assert (found.status, found.stop_reason, found.groups, found.gap) == ("unknown", "time_limit", None, None)
    # Partners 4, 3 or 5, 2 or 6, 1 or 7 apart: 12, 13, 14, 15 chunks on two.
    assert found.peak_bound == 7.5
    with_start = pair_stages(problem, "cpsat", _only_a_bound, LIMITS, head_to_tail(8))
    assert (with_start.status, with_start.peak, with_start.traffic_bound) == ("feasible", 7.5, None)
    assert with_start.gap == 0.0


def test_second_run_keeps_the_peak() -> None:
    problem = random_problem(5, size=2)
    lowest, _ = brute_force(problem)
    ticks = cpsat.build(problem).ticks
    rank = int(np.searchsorted(ticks.peaks, lowest * (1 + 1e-9), side="right")) - 1
    for model in (cpsat.build(problem, worst_rank=rank), milp.build(problem, worst_rank=rank)):
        assert all(problem.peak(group) <= lowest * (1 + 1e-9) for group in model.together)


def test_sizes() -> None:
    occupancy = np.ones((16, 1))
    assert stated(occupancy, 3).sizes == (3, 3, 3, 3, 2, 2)
    assert stated(occupancy, [4, 12]).sizes == (12, 4)
    assert stated(np.ones((5, 1)), 2).sizes == (2, 2, 1)
    assert sum(1 for _ in groupings(range(5), (2, 2, 1))) == 15


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("occupancy", {"occupancy": [1.0, 2.0]}),
        ("occupancy", {"occupancy": [[-1.0], [0.0]]}),
        ("size", {"size": 0}),
        ("size", {"size": 4}),
        ("size", {"size": [2, 2]}),
        ("size", {"occupancy": np.ones((64, 1)), "size": 5}),
        ("capacity", {"capacity": 0.0}),
        ("hops", {"hops": 0.5}),
    ],
)
def test_bad_input_is_named(field: str, arguments: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        stated(**{"occupancy": np.ones((3, 2)), "size": 2, **arguments})  # type: ignore[arg-type]  # wrong on purpose
    assert caught.value.field == field


def test_matching_is_for_pairs() -> None:
    with pytest.raises(InputError, match="pairs"):
        best_pairs(stated(np.ones((6, 1)), 3))
