"""Delays with which all KV together needs the least memory at its worst moment.

Two kinds. A stage that is faster than the slowest one runs ahead, takes KV early and waits with it: its waves may start
later at no price, as far as nobody waits for them (``started_late``). The other kind has one: what every stage waits
more than the one before it.

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
from solver.limits import Deadline

SPREADS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.0)
"""Starts: stages spread evenly over a wave by these shares, until the sum is used up."""
LATE_SHARES = (0.0, 0.5, 0.9)
"""Shares of the time in which nobody waits that waves start later; all of it would leave no room for stalls."""
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


def started_late(unlimited: Unlimited, share: float) -> Unlimited:
    """The timeline with each stage's waves later by a share of the time for which nobody waits for them."""
    start_s, end_s = unlimited.start_s, unlimited.end_s
    waves, stages, _ = start_s.shape
    idle_s = start_s[:, 1:, :] - end_s[:, :-1, :]
    underway_s = idle_s.min(axis=(0, 2), initial=np.inf)  # activations take at most so long
    late_s = np.zeros((waves, stages))
    for wave in reversed(range(waves)):
        for stage in reversed(range(stages - 1)):
            room_s = float(idle_s[wave, stage].min() - underway_s[stage]) + late_s[wave, stage + 1]
            if wave + 1 < waves:
                behind_s = float(start_s[wave + 1, stage, 0] - end_s[wave, stage, -1])
                room_s = min(room_s, behind_s + late_s[wave + 1, stage])
            late_s[wave, stage] = max(0.0, room_s)
    moved = share * late_s[:, :, None]
    return replace(unlimited, start_s=start_s + moved, end_s=end_s + moved)


def least_peak(problem: SpillProblem, unlimited: Unlimited, most_s: float, deadline: Deadline) -> Delayed:
    """The timeline whose last stage is at most ``most_s`` later, with the least excess that is found.

    Parameters
    ----------
    problem
        Of the plan whose timeline this is; its rows are not used.
    """
    bases = [started_late(unlimited, share) for share in LATE_SHARES]
    return min((_least_peak(problem, base, most_s, deadline) for base in bases), key=lambda found: found.excess_bytes)


def _least_peak(problem: SpillProblem, base: Unlimited, most_s: float, deadline: Deadline) -> Delayed:
    stages = base.start_s.shape[1]

    def excess(steps_s: Amounts) -> float:
        later = delayed(base, _delays(steps_s))
        return pooled_excess_bytes(problem, later.start_s, later.end_s)

    best = min((_steps(_apart(base, share), most_s) for share in SPREADS), key=excess)
    least, tries, move = excess(best), len(SPREADS), FIRST_MOVE
    while move >= LAST_MOVE and tries < MOST_TRIES and not deadline.over:
        before = least
        for giver in np.flatnonzero(best > 0).tolist():
            for taker in range(stages):
                moved = best.copy()
                amount = min(move * most_s, moved[giver])
                if taker == giver or amount <= 0 or tries >= MOST_TRIES or deadline.over:
                    continue
                moved[giver] -= amount
                moved[taker] += amount
                value, tries = excess(moved), tries + 1
                if value < least:
                    best, least = moved, value
        move = move / 2 if least >= before else move
    return Delayed(delayed(base, _delays(best)), least)


def _apart(base: Unlimited, share: float) -> Amounts:
    """Delays that bring stages nearer to an even spread over the longest wave, by a share of what they lack."""
    first_s = base.start_s[0, :, 0]
    wave_s = float((base.end_s - base.start_s).sum(axis=2).max())
    lacking = np.arange(len(first_s)) * wave_s / len(first_s) - (first_s - first_s[0])
    delays: Amounts = np.maximum.accumulate(np.maximum(0.0, share * lacking))
    return delays


def _steps(delays_s: Amounts, most_s: float) -> Amounts:
    """What each stage waits more than the one before it, cut off at a sum; entry 0 is what is left of the sum."""
    steps: Amounts = np.diff(np.minimum(delays_s, most_s), prepend=0.0)
    steps[0] = most_s - steps.sum()
    return steps


def _delays(steps_s: Amounts) -> Amounts:
    """Delay of each stage."""
    delays: Amounts = np.cumsum(steps_s) - steps_s[0]
    return delays
