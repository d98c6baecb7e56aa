"""Ladders: pipelines folded in two, with flows between the partners k and k + N/2.

With h = N/2, stages k and k + h are the ends of rung k; the rails are the flows k -> k+1 and k+h -> k+h+1, and one
closing flow leads from h-1 to h. With an odd number of stages the last one hangs on the end of the second rail.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from formulations.placement.assignment import Ints
from formulations.placement.problem import PlacementProblem


@dataclass(frozen=True)
class Ladder:
    """Weights in ticks, both directions of a flow taken together.

    Attributes
    ----------
    rungs
        h >= 2.
    forced
        True if the ends of every rung must be one hop apart.
    rung
        Shape (h,).
    rails
        Shape (h - 1, 2): first and second rail from rung k to rung k + 1.
    closing
        Flow from the first end of the last rung to the second end of the first.
    """

    rungs: int
    forced: bool
    rung: Ints
    rails: Ints
    closing: int

    @property
    def order(self) -> list[int]:
        """Stages rung by rung, first end first; an odd stage is left out."""
        return [stage for k in range(self.rungs) for stage in (k, k + self.rungs)]


def both_ways(problem: PlacementProblem) -> dict[tuple[int, int], int]:
    """Ticks between two stages (the smaller number first), zero for partners without flow."""
    between: dict[tuple[int, int], int] = defaultdict(int)
    for (s, t, _), ticks in zip(problem.flows, problem.ticks, strict=True):
        between[min(s, t), max(s, t)] += ticks
    for i, j in problem.pairs:
        between[min(i, j), max(i, j)] += 0
    return dict(between)


def ladder_of(problem: PlacementProblem) -> Ladder | None:
    """The ladder, or None if there are flows or pairs besides it, distances depend on direction, or no rung counts."""
    half = problem.stages // 2
    between = both_ways(problem)
    rungs = {(k, k + half) for k in range(half)}
    steps = {(s, s + 1) for s in range(problem.stages - 1)}
    pairs = {(min(pair), max(pair)) for pair in problem.pairs}
    if half < 2 or not problem.symmetric or not between.keys() <= rungs | steps or not pairs <= rungs:
        return None
    forced = pairs == rungs
    rung = np.array([between.get((k, k + half), 0) for k in range(half)], dtype=np.int64)
    if not forced and not rung.any():
        return None
    rails = [[between.get((k, k + 1), 0), between.get((k + half, k + half + 1), 0)] for k in range(half - 1)]
    return Ladder(half, forced, rung, np.array(rails, dtype=np.int64), between.get((half - 1, half), 0))
