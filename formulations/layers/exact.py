"""The layer split by dynamic programming over (stage, first layer): exact, and fast enough for every search.

The value of (s, a) is that of stages s..N-1 holding the layers from a on. Three passes: the slowest stage; under it the
memory; under both the sum of squared stage times, so that ties go to even splits, and last to the one with fewer layers
in front. Times are compared as they were computed, so no tolerance is needed between passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from formulations.layers.problem import Amounts, LayerProblem, Parts
from formulations.layers.result import LayerResult

ROUNDING = 1.0 + 1e-9


class Goal(NamedTuple):
    """What a stage costs, and how that joins the value of the stages behind it (maximum or sum)."""

    cost: Callable[[Parts, int], Amounts]
    join: np.ufunc


def best_split(problem: LayerProblem, start: Sequence[int] | None = None) -> LayerResult:
    """The best split; a ``start`` that keeps the rules narrows what has to be looked at."""
    most_s = np.inf
    if start is not None and not problem.violations(start):
        most_s = problem.slowest_s(start)
    fastest = _least(problem, [Goal(lambda parts, _: parts.seconds, np.maximum)], most_s)
    if fastest is None:
        return LayerResult(None, None, None, None, None, "infeasible", "proved", "dynamic program")
    slowest_s = problem.slowest_s(fastest)
    even = Goal(lambda parts, _: parts.seconds**2, np.add)
    over = Goal(lambda parts, stage: parts.bytes_held - problem.capacity_bytes[stage], np.maximum)
    if problem.memory == "excess":
        excess = Goal(lambda parts, stage: np.maximum(over.cost(parts, stage), 0.0), np.add)
        split = _least(problem, [excess, even], slowest_s)
    else:
        emptiest = _least(problem, [over], slowest_s)
        assert emptiest is not None
        split = _least(problem, [even], slowest_s, problem.memory_bytes(emptiest))
    assert split is not None
    memory = problem.memory_bytes(split)
    return LayerResult(tuple(split), slowest_s, slowest_s, memory, memory, "optimal", "proved", "dynamic program")


def _least(
    problem: LayerProblem, goals: Sequence[Goal], most_s: float, most_over: float = np.inf
) -> tuple[int, ...] | None:
    """The split that is best by the goals in turn, of those with no stage slower or further above its capacity.

    Several goals must all be sums: only then is the best of several also the best at every step.
    """
    stages, layers = problem.stages, problem.layers
    values = [np.full(layers + 1, np.inf) for _ in goals]
    for value, goal in zip(values, goals, strict=True):
        value[layers] = -np.inf if goal.join is np.maximum else 0.0
    chosen = np.zeros((stages, layers + 1), dtype=np.int64)
    for stage in reversed(range(stages)):
        before = [np.full(layers + 1, np.inf) for _ in goals]
        for start in _starts(problem, stage, most_s):
            parts = problem.parts(stage, start, most_s)
            if most_over < np.inf:
                kept = parts.bytes_held - problem.capacity_bytes[stage] <= most_over
                parts = Parts(*(column[kept] for column in parts))
            best = np.arange(parts.stops.size)
            for value, goal, found in zip(values, goals, before, strict=True):
                joined = goal.join(goal.cost(parts, stage), value[parts.stops])
                if best.size:
                    found[start] = joined[best].min()
                    best = best[joined[best] == found[start]]
            if best.size:
                chosen[stage, start] = parts.stops[best[0]]
        values = before
    if not np.isfinite(values[0][0]):
        return None
    split, start = [], 0
    for stage in range(stages):
        stop = int(chosen[stage, start])
        split.append(stop - start)
        start = stop
    return tuple(split)


def _starts(problem: LayerProblem, stage: int, most_s: float) -> list[int]:
    """Layers at which a stage may start, for all that the number of stages and the time on either side say."""
    behind = problem.stages - stage
    if stage == 0:
        return [0]
    starts = np.arange(stage, problem.layers - behind + 1)
    before = np.concatenate([[0.0], np.cumsum(problem.layer_s.min(axis=0))])
    limit = most_s * ROUNDING
    kept = (before[starts] <= stage * limit) & (before[-1] - before[starts] <= behind * limit)
    return [start for start in starts[kept].tolist() if start not in problem.forbidden_cuts]
