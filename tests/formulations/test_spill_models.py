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
from tests.formulations.memory_rows import plain_row

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
        plain_row(
            stage,
            chunk,
            int(rng.integers(-1, chunk)),
            tuple(-1 if s == stage else int(rng.integers(-1, chunks - 1)) for s in range(stages)),
        )
        for stage in range(stages)
        for chunk in range(chunks)
    ]
    free = np.maximum(held.max(axis=1) - rng.integers(-2, 3, stages), 1.0).astype(float)
    return SpillProblem(held, spillable, free, float(rng.integers(0, 3)), cost, rows)


def _folded(seed: int) -> SpillProblem:
    """Two dies with two stages each, 0 and 3, 1 and 2, that spill at most two units of the first of two chunks."""
    rng = np.random.default_rng(seed)
    home = (0, 1, 1, 0)
    spillable = rng.integers(0, 3, (4, 2)).astype(float)
    held = np.cumsum(spillable, axis=1)
    cost = rng.choice([1.0, 1.03, 1.5, 2.0], (4, 3))
    cost[:, 2] = rng.choice([0.5, 1.0]) if rng.random() < 0.4 else np.inf
    cost[np.arange(4), home] = np.inf
    rows = []
    for _ in range(4):
        die = int(rng.integers(2))
        here = [int(rng.integers(-1, 2)) if home[s] == die else -1 for s in range(4)]
        left = [int(rng.integers(-1, max(chunk, 0) + 1)) if chunk > 0 else -1 for chunk in here]
        elsewhere = [-1 if home[s] == die else int(rng.integers(-1, 1)) for s in range(4)]
        rows.append(MemoryRow(die, tuple(here), tuple(min(chunk, 0) for chunk in left), tuple(elsewhere)))
    free = rng.integers(1, 6, 2).astype(float)
    return SpillProblem(held, spillable, free, float(rng.integers(0, 3)), cost, rows, home)


def _value(problem: SpillProblem, moved: Amounts) -> float | None:
    """Objective of amounts (S, M, D+1) in costs of ``problem``; None if they break a rule."""
    stages, chunks = problem.held_bytes.shape
    dies, home = len(problem.free_bytes), np.array(problem.dies)
    total = np.cumsum(moved, axis=1)
    for row in problem.rows:
        used = 0.0
        for s in range(stages):
            if row.held[s] >= 0:
                used += problem.held_bytes[s, row.held[s]]
            if row.left[s] >= 0:
                used -= total[s, row.left[s]].sum()
            if row.hosted[s] >= 0:
                used += total[s, row.hosted[s], row.die]
        concerned = max(*row.left, *row.hosted) >= 0
        if concerned and used > problem.free_bytes[row.die]:
            return None
    at_host = moved[:, :, dies].sum(axis=1)
    if (np.bincount(home, weights=at_host) > problem.host_bytes).any():
        return None
    # Chunk j is written once and fetched at each of the M - 1 - j later chunks.
    times = chunks - np.arange(chunks)
    cost = np.where(np.isfinite(problem.cost_s_per_byte), problem.cost_s_per_byte, 0.0)
    traffic = float((moved * times[None, :, None] * cost[:, None, :]).sum())
    served = (moved * (times - 1)[None, :, None])[:, :, :dies].sum(axis=(0, 1))
    return float(traffic + dies * cheapest_cost(problem) * served.max())


def _brute_force(problem: SpillProblem) -> float | None:
    """The least value over all whole amounts."""
    (stages, chunks), dies = problem.held_bytes.shape, len(problem.free_bytes)
    options = []
    for s, j in product(range(stages), range(chunks - 1)):
        keepers = [k for k in range(dies + 1) if np.isfinite(problem.cost_s_per_byte[s, k])]
        most = int(problem.spillable_bytes[s, j])
        shares = [share for share in product(range(most + 1), repeat=len(keepers)) if sum(share) <= most]
        options.append([(s, j, keepers, share) for share in shares])
    best: float | None = None
    for chosen in product(*options):
        moved = np.zeros((stages, chunks, dies + 1))
        for s, j, keepers, share in chosen:
            moved[s, j, keepers] = share
        value = _value(problem, moved)
        if value is not None and (best is None or value < best):
            best = value
    return best


@settings(max_examples=200)
@given(seed=st.integers(0, 10**6), folded=st.booleans())
def test_brute_force_and_both_models_agree(seed: int, folded: bool) -> None:
    problem = in_units(_folded(seed) if folded else _random(seed), 1.0)
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
            [plain_row(0, 1, 0, (-1, -1))],
        ),
        1.0,
    )
    start = np.zeros((2, 2, 3))
    start[0, 0, 1] = 1.0
    # Written and fetched once at 1000 each, and N times the served unit at 1000.
    assert solve_cpsat(cpsat.build(problem, start=start).model, LIMITS).value == 4000
    assert solve_highs(milp.build(problem, whole=True, start=start).problem, LIMITS).value == pytest.approx(4.0)
