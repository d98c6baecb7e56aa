"""The spill program in whole units: CP-SAT, MILP and every way to spill agree on small ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.interface import EngineLimits
from formulations.spill import cpsat, milp
from formulations.spill.problem import SpillProblem
from formulations.spill.rows import MemoryRow
from formulations.spill.variables import cheapest_cost, in_units
from instances.errors import InputError
from solver.backends.cpsat import solve_cpsat
from solver.backends.highs import solve_highs

Amounts = npt.NDArray[np.float64]
LIMITS = EngineLimits(time_s=30.0, deterministic=True)


def _random(seed: int) -> SpillProblem:
    """Two or three stages with at most 3 units to spill from each of at most two chunks before the last."""
    rng = np.random.default_rng(seed)
    stages = int(rng.integers(2, 4))
    chunks = 3 if stages == 2 else 2
    spillable = rng.integers(0, 3 if chunks == 3 else 4, (stages, chunks)).astype(float)
    held = np.cumsum(spillable, axis=1) + rng.integers(0, 2, (stages, 1)).astype(float)
    cost = rng.choice([1.0, 1.03, 1.5, 2.0], (stages, stages + 1))
    cost[:, stages] = rng.choice([0.5, 1.0]) if rng.random() < 0.4 else np.inf
    np.fill_diagonal(cost[:, :stages], np.inf)
    rows = [
        MemoryRow(
            stage=stage,
            chunk=chunk,
            left=int(rng.integers(-1, chunk)),
            hosted=tuple(-1 if s == stage else int(rng.integers(-1, chunks - 1)) for s in range(stages)),
        )
        for stage in range(stages)
        for chunk in range(chunks)
    ]
    free = np.maximum(held.max(axis=1) - rng.integers(-2, 3, stages), 1.0).astype(float)
    return SpillProblem(held, spillable, free, float(rng.integers(0, 3)), cost, rows)


def _value(problem: SpillProblem, moved: Amounts) -> float | None:
    """Objective of amounts (N, M, N+1) in costs of ``problem``; None if they break a rule."""
    stages, chunks = problem.held_bytes.shape
    total = np.cumsum(moved, axis=1)
    for row in problem.rows:
        d = row.stage
        held = problem.held_bytes[d, row.chunk] - (0 if row.left < 0 else total[d, row.left].sum())
        held += sum(total[s, row.hosted[s], d] for s in range(stages) if row.hosted[s] >= 0)
        concerned = row.left >= 0 or any(reach >= 0 for reach in row.hosted)
        if concerned and held > problem.free_bytes[d]:
            return None
    if (moved[:, :, stages].sum(axis=1) > problem.host_bytes).any():
        return None
    # Chunk j is written once and fetched at each of the M - 1 - j later chunks.
    times = chunks - np.arange(chunks)
    cost = np.where(np.isfinite(problem.cost_s_per_byte), problem.cost_s_per_byte, 0.0)
    traffic = float((moved * times[None, :, None] * cost[:, None, :]).sum())
    served = (moved * (times - 1)[None, :, None])[:, :, :stages].sum(axis=(0, 1))
    return float(traffic + stages * cheapest_cost(problem) * served.max())


def _brute_force(problem: SpillProblem) -> float | None:
    """The least value over all whole amounts."""
    stages, chunks = problem.held_bytes.shape
    options = []
    for s, j in product(range(stages), range(chunks - 1)):
        keepers = [k for k in range(stages + 1) if np.isfinite(problem.cost_s_per_byte[s, k])]
        most = int(problem.spillable_bytes[s, j])
        shares = [share for share in product(range(most + 1), repeat=len(keepers)) if sum(share) <= most]
        options.append([(s, j, keepers, share) for share in shares])
    best: float | None = None
    for chosen in product(*options):
        moved = np.zeros((stages, chunks, stages + 1))
        for s, j, keepers, share in chosen:
            moved[s, j, keepers] = share
        value = _value(problem, moved)
        if value is not None and (best is None or value < best):
            best = value
    return best


@settings(max_examples=200)
@given(seed=st.integers(0, 10**6))
def test_brute_force_and_both_models_agree(seed: int) -> None:
    problem = in_units(_random(seed), 1.0)
    best = _brute_force(problem)
    whole, linear = cpsat.build(problem), milp.build(problem, whole=True)
    outcomes = solve_cpsat(whole.model, LIMITS), solve_highs(linear.problem, LIMITS)
    if best is None:
        assert [outcome.status for outcome in outcomes] == ["infeasible", "infeasible"]
        return
    assert [outcome.status for outcome in outcomes] == ["optimal", "optimal"]
    scales = 1.0, cheapest_cost(problem)
    found = cpsat.amounts(whole, outcomes[0]), milp.amounts(linear, outcomes[1])
    for outcome, scale, amounts in zip(outcomes, scales, found, strict=True):
        assert outcome.value is not None
        assert outcome.value * scale == pytest.approx(best, abs=1e-3)
        assert _value(problem, np.rint(amounts)) == pytest.approx(best, abs=1e-3)


def test_in_units_rounds_to_the_safe_side() -> None:
    # 7 bytes held are 3 units of 3, 7 that may leave, are free or at the host 2; costs are thousandths of the cheapest.
    problem = SpillProblem(
        np.full((2, 2), 7.0), np.full((2, 2), 7.0), np.full(2, 7.0), 7.0, np.array([[np.inf, 2.0, 3.0]] * 2), []
    )
    whole = in_units(problem, 3.0)
    assert (whole.held_bytes[0, 0], whole.spillable_bytes[0, 0], whole.free_bytes[0], whole.host_bytes) == (3, 2, 2, 2)
    assert whole.cost_s_per_byte[0].tolist() == [np.inf, 1000, 1500]
    # 0.3 bytes are three tenths exactly, whatever the division says.
    assert in_units(problem, 0.1).held_bytes[0, 0] == 70


def test_units_too_small_for_the_engines() -> None:
    problem = _random(1)
    with pytest.raises(InputError, match="unit_bytes"):
        in_units(problem, 1e-12)
    with pytest.raises(InputError, match="unit_bytes"):
        in_units(problem, 0.0)


def test_a_start_is_taken_over() -> None:
    """Stage 0 must lend one of 2 units before its last chunk; handing in the answer changes nothing."""
    problem = in_units(
        SpillProblem(
            np.array([[2.0, 3.0]] * 2),
            np.array([[2.0, 1.0]] * 2),
            np.array([2.0, 9.0]),
            0.0,
            np.array([[np.inf, 1.0, np.inf], [1.0, np.inf, np.inf]]),
            [MemoryRow(0, 1, 0, (-1, -1))],
        ),
        1.0,
    )
    start = np.zeros((2, 2, 3))
    start[0, 0, 1] = 1.0
    # Written and fetched once at 1000 each, and N times the served unit at 1000.
    assert solve_cpsat(cpsat.build(problem, start=start).model, LIMITS).value == 4000
    assert solve_highs(milp.build(problem, whole=True, start=start).problem, LIMITS).value == pytest.approx(4.0)
