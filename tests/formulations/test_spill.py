"""Rows and linear program of the spill formulation, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from formulations.interface import EngineLimits
from formulations.spill.milp import SpillProblem, always_too_full, amounts, build
from formulations.spill.rows import MemoryRow, memory_rows
from solver.backends.highs import solve_highs
from tests.formulations.memory_rows import plain_row

Amounts = npt.NDArray[np.float64]
GB = 1e9


def _lockstep(waves: int, stages: int, chunks: int) -> tuple[Amounts, Amounts]:
    """Starts and ends, shape (W, N, M), of tasks of one second that follow each other without a gap."""
    wave, stage, chunk = np.indices((waves, stages, chunks))
    start = (wave * chunks + stage + chunk).astype(float)
    return start, start + 1.0


def test_rows_of_two_stages_in_lockstep() -> None:
    # Stage 0 runs at 0, 1 | 2, 3 and stage 1 at 1, 2 | 3, 4. Writes take 0.5 s, so nothing has left at the next start.
    # Stage 0 starts its second wave at 2 and works until 3, stage 1 has ended chunk 0 at 2: hosted. At 3 it has ended
    # its wave: nothing is hosted. Stage 1 starts chunk 0 at 1 (3); until 2 (4) stage 0 has ended chunk 0 at 1 (3).
    rows = memory_rows(*_lockstep(2, 2, 2), np.full((2, 2), 0.5), 0.05)
    assert set(rows) == {
        plain_row(0, 0, -1, (-1, 0)),
        plain_row(0, 1, -1, (-1, -1)),
        plain_row(1, 0, -1, (0, -1)),
        plain_row(1, 1, -1, (-1, -1)),
    }


def test_writes_that_leave_in_time() -> None:
    # With writes of 0.01 s and a slack of 0.05 s chunk i - 1 has left when chunk i starts.
    rows = memory_rows(*_lockstep(1, 1, 4), np.full((1, 4), 0.01), 0.05)
    assert {(row.held[0], row.left[0]) for row in rows} == {(0, -1), (1, 0), (2, 1), (3, 2)}
    # Writes of 1.01 s are one start late.
    rows = memory_rows(*_lockstep(1, 1, 4), np.full((1, 4), 1.01), 0.05)
    assert {(row.held[0], row.left[0]) for row in rows} == {(0, -1), (1, -1), (2, 0), (3, 1)}


def test_rows_of_a_v() -> None:
    """One die with stages 0 and 3, one with 1 and 2; two chunks, one wave, in the order of ``vpp``.

    Die 0 runs H0 at 0, H1 at 1, T0 at 3, T1 at 5; die 1 runs H0 at 1, T0 at 2, H1 at 3, T1 at 4. Writes take 0.5 s.
    When H1 ends on a die, all of that stage is released.
    """
    start = np.array([[[0.0, 1.0], [1.0, 3.0], [2.0, 4.0], [3.0, 5.0]]])
    rows = memory_rows(start, start + 1.0, np.full((4, 2), 0.5), 0.05, (0, 1, 1, 0))
    none = (-1,) * 4
    assert set(rows) == {
        # H0 alone, until H1 starts at 1: die 1 has ended nothing.
        MemoryRow(0, (0, -1, -1, -1), none, none),
        # H1, as far as rows say held until T0 starts at 3: before that die 1 has ended H0, and H0 has left.
        MemoryRow(0, (1, -1, -1, -1), none, none),
        MemoryRow(0, (1, -1, -1, -1), (0, -1, -1, -1), (-1, 0, -1, -1)),
        # T0 from 3 on, when die 1 has ended H0 and T0; at 4 it ends H1, which asks for less.
        MemoryRow(0, (-1, -1, -1, 0), none, (-1, 0, 0, -1)),
        # T1: T0 has left at 4.5, and nothing is hosted.
        MemoryRow(0, (-1, -1, -1, 1), (-1, -1, -1, 0), none),
        # Die 1: H0 while die 0 has ended H0 (1), and H1 (2) which releases it.
        MemoryRow(1, (-1, 0, -1, -1), none, (0, -1, -1, -1)),
        # T0 beside H0, which leaves by 2.5.
        MemoryRow(1, (-1, 0, 0, -1), none, none),
        # H1 beside T0, which leaves by 3.5; die 0 ends T0 at 4, when T1 starts.
        MemoryRow(1, (-1, 1, 0, -1), (-1, 0, -1, -1), none),
        # T1 from 4 on, when H0 and H1 are gone.
        MemoryRow(1, (-1, -1, 1, -1), (-1, -1, 0, -1), (-1, -1, -1, 0)),
    }


def _problem(rows: list[MemoryRow], **changes: Any) -> SpillProblem:
    """Two stages, three chunks of 10 GB each, 25 GB free, 1 s per GB between the stages, no host."""
    data: dict[str, Any] = {
        "held_bytes": np.array([[10.0, 20.0, 30.0]] * 2) * GB,
        "spillable_bytes": np.full((2, 3), 10.0) * GB,
        "free_bytes": np.full(2, 25.0) * GB,
        "host_bytes": 0.0,
        "cost_s_per_byte": np.array([[np.inf, 1.0, np.inf], [1.0, np.inf, np.inf]]) / GB,
        "rows": rows,
    }
    return SpillProblem(**{**data, **changes})


def _solved(problem: SpillProblem) -> Amounts | None:
    """Gigabytes (N, M, N+1), or None if the program has no solution."""
    model = build(problem)
    outcome = solve_highs(model.problem, EngineLimits())
    return amounts(model, outcome) / GB if outcome.has_values else None


LAST = plain_row(0, 2, 1, (-1, -1))
"""Stage 0 starts its last chunk, chunks 0 and 1 have had time to leave: 30 - 25 = 5 GB must have."""


def test_the_latest_chunk_is_spilled_first() -> None:
    # Chunk 1 is written and fetched once, chunk 0 twice.
    found = _solved(_problem([LAST]))
    assert found is not None
    assert found[0, 1, 1] == pytest.approx(5.0)
    assert found.sum() == pytest.approx(5.0)


def test_an_earlier_chunk_where_the_latest_has_not_left() -> None:
    found = _solved(_problem([plain_row(0, 2, 0, (-1, -1))]))
    assert found is not None
    assert found[0, 0, 1] == pytest.approx(5.0)


def test_creditor_with_little_room() -> None:
    # Stage 1 starts chunk 0 (10 GB of its 13) while it hosts chunks 0 and 1: 3 GB are taken, 2 do not fit.
    rows = [LAST, plain_row(1, 0, -1, (1, -1))]
    free = np.array([25.0, 13.0]) * GB
    assert _solved(_problem(rows, free_bytes=free)) is None
    # A host for the rest, although it costs more.
    cost = np.array([[np.inf, 1.0, 4.0], [1.0, np.inf, 4.0]]) / GB
    found = _solved(_problem(rows, free_bytes=free, host_bytes=2 * GB, cost_s_per_byte=cost))
    assert found is not None
    assert found[0, 1, 1:].tolist() == pytest.approx([3.0, 2.0])
    assert _solved(_problem(rows, free_bytes=free, host_bytes=1.9 * GB, cost_s_per_byte=cost)) is None


def test_cheaper_host_goes_first() -> None:
    cost = np.array([[np.inf, 1.0, 0.5], [1.0, np.inf, 0.5]]) / GB
    found = _solved(_problem([LAST], host_bytes=2 * GB, cost_s_per_byte=cost))
    assert found is not None
    assert found[0, 1, 1:].tolist() == pytest.approx([3.0, 2.0])


def test_a_chunk_is_spilled_once() -> None:
    # 18 GB must leave: all of chunk 1 and 8 of chunk 0.
    found = _solved(_problem([LAST], free_bytes=np.array([12.0, 25.0]) * GB))
    assert found is not None
    assert found[0, :, 1].tolist() == pytest.approx([8.0, 10.0, 0.0])


def test_always_too_full() -> None:
    # 9 GB cannot hold the 10 GB of the last chunk, whatever has left; 10 GB can.
    assert always_too_full(_problem([LAST], free_bytes=np.array([9.0, 25.0]) * GB))
    assert not always_too_full(_problem([LAST], free_bytes=np.array([10.0, 25.0]) * GB))


def test_a_single_chunk_has_nothing_to_spill() -> None:
    problem = _problem([], held_bytes=np.full((2, 1), 10 * GB), spillable_bytes=np.full((2, 1), 10 * GB))
    found = _solved(problem)
    assert found is not None
    assert found.sum() == 0


def test_the_unit_follows_the_size_of_the_memories() -> None:
    """The same numbers in bytes: 5 of 30 must leave."""
    small = {name: getattr(_problem([]), name) / GB for name in ("held_bytes", "spillable_bytes", "free_bytes")}
    found = _solved(_problem([LAST], **small, cost_s_per_byte=_problem([]).cost_s_per_byte * GB))
    assert found is not None
    assert found[0, :2, 1].sum() * GB == pytest.approx(5.0, rel=1e-6)
