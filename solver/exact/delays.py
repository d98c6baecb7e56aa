"""Delays of stages with which all KV together needs the least memory at its worst moment.

Stages follow each other a chunk apart, so with more chunks than stages all are nearly full at the same moment. A stage
that waits peaks later: M/N chunks apart the peaks of N stages are spread evenly over a wave of M chunks. What the last
stage waits every request is later, so a budget holds the sum of all steps down; early steps pay most, for all stages
after them are later too. Found by moving parts of the sum between stages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.spill.problem import SpillProblem
from solver.exact.pool import Amounts, Unlimited, pooled_excess_bytes

SPREADS = (1.0, 0.95, 0.9, 0.85, 0.8)
"""Starts: stages apart by these shares of M/N chunks until the sum is used up."""
FIRST_MOVE, LAST_MOVE = 0.25, 0.005
"""Parts of the sum that are moved at once, from large to small."""
MOST_TRIES = 3000


@dataclass(frozen=True)
class Delayed:
    """A timeline with delays, and by how much its KV exceeds all memory at the worst moment."""

    timeline: Unlimited
    excess_bytes: float


def delayed(unlimited: Unlimited, delay_s: Amounts) -> Unlimited:
    """The timeline with every task of stage s later by ``delay_s[s]``, which must not fall from stage to stage."""
    late = delay_s[None, :, None]
    return replace(unlimited, start_s=unlimited.start_s + late, end_s=unlimited.end_s + late)


def least_peak(problem: SpillProblem, unlimited: Unlimited, most_s: float) -> Delayed:
    """The timeline whose last stage is ``most_s`` later, with the least excess that is found.

    Parameters
    ----------
    problem
        Of the plan whose timeline this is; its rows are not used.
    """
    _, stages, chunks = unlimited.start_s.shape

    def excess(steps_s: Amounts) -> float:
        later = delayed(unlimited, np.cumsum(steps_s))
        return pooled_excess_bytes(problem, later.start_s, later.end_s)

    apart_s = max(0.0, chunks / stages - 1) * float((unlimited.end_s - unlimited.start_s).mean())
    starts = [np.diff(np.minimum(np.arange(stages) * share * apart_s, most_s), prepend=0.0) for share in SPREADS]
    best = min(starts, key=excess)
    least, tries, move = excess(best), len(SPREADS), FIRST_MOVE
    while move >= LAST_MOVE and tries < MOST_TRIES:
        before = least
        for giver in np.flatnonzero(best > 0).tolist():
            for taker in range(1, stages):
                moved = best.copy()
                amount = min(move * most_s, moved[giver])
                moved[giver] -= amount
                moved[taker] += amount
                tries += 1
                value = excess(moved) if taker != giver and amount > 0 else np.inf
                if value < least:
                    best, least = moved, value
        move = move / 2 if least >= before else move
    return Delayed(delayed(unlimited, np.cumsum(best)), least)
