"""The order in which each die runs its tasks (spec section 3, ``die_serial`` and the V-shaped schedule)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from instances.plan import Schedule
from solver.simulation.program import Int32s, Int64s

Ints = npt.NDArray[np.int64]


def die_orders(schedule: Schedule, die_of_stage: Sequence[int], chunks_of_wave: Sequence[int]) -> tuple[Int64s, Int32s]:
    """``die_ptr`` and ``die_tasks`` of a program whose tasks are numbered by (wave, chunk, stage).

    Parameters
    ----------
    die_of_stage
        Index of each stage's die. In a V-shaped schedule there are 2N stages, and stages r and 2N-1-r are on die r.
    chunks_of_wave
        Number of chunks of each wave.
    """
    stages = len(die_of_stage)
    # The task of a wave's chunk at stage 0; those at the later stages follow.
    first = np.arange(sum(chunks_of_wave), dtype=np.int64) * stages
    if schedule == "chunked":
        tasks = (first[:, None] + np.arange(stages)).ravel()
        die = np.tile(np.asarray(die_of_stage), len(first))
        at_die = tasks[np.argsort(die, kind="stable")]
        counts = np.bincount(die, minlength=max(die_of_stage) + 1)
        return _pointers(counts), at_die.astype(np.int32)
    ends = np.cumsum(chunks_of_wave)[:-1]
    # Packed, the waves are one long list of chunks; else each die completes a wave before its next.
    lists = [first] if schedule == "vpp-packed" else np.split(first, ends)
    dies = stages // 2
    orders = [_v_order(chunks, r, dies, schedule == "vpp") for r in range(dies) for chunks in lists]
    return _pointers(np.full(dies, 2 * len(first))), np.concatenate(orders).astype(np.int32)


def _v_order(chunks: Ints, r: int, dies: int, tail_first: bool) -> Ints:
    """Tasks of die r for some chunks: with d = N-1-r, period k has head k+d and tail k-d, where they exist.

    On the fold die, d = 0, the tail needs the head of its own period, which therefore comes first.
    """
    away = dies - 1 - r
    number = np.arange(len(chunks))
    period = np.concatenate((number - away, number + away))
    is_tail = np.repeat((False, True), len(chunks))
    second = ~is_tail if tail_first and away else is_tail
    tasks = np.concatenate((chunks + r, chunks + 2 * dies - 1 - r))
    return tasks[np.argsort(2 * period + second)]


def _pointers(counts: npt.NDArray[np.int64]) -> Int64s:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
