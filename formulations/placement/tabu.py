"""Robust tabu search for placements of any kind (Taillard 1991).

Each step exchanges the stages of two dies, the best exchange that is not tabu: a stage may not go back to a die that it
left a random number of steps ago, unless that gives a new best value, or the exchange was not made for long. The gains
of all exchanges are kept and brought up to date in constant time each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formulations.placement.assignment import Ints
from formulations.placement.compiled import entry, part
from formulations.placement.problem import PlacementProblem

STEPS_PER_DIE = 500
"""Steps from one start, times the dies; then the search starts anew at random."""
WORK_PER_SECOND = 1e8
"""Exchanges that a usual core brings up to date in a second."""

# Places in `Tour.scalars`.
VALUE, BEST, STEP = range(3)


class Tour(NamedTuple):
    """Where the search is; dies without a stage hold an empty one."""

    die_of: Ints
    """Shape (D,)."""
    gains: Ints
    """Shape (D, D): change of value if two stages are exchanged, above the diagonal."""
    tabu_until: Ints
    """Shape (D, D): the step up to which a stage may not return to a die."""
    best: Ints
    scalars: Ints


class TabuSearch:
    """A search that goes on from where it stopped; partners that must be adjacent are not for it."""

    def __init__(self, problem: PlacementProblem, start: list[int], rng: np.random.Generator) -> None:
        size = problem.dies
        weights = np.zeros((size, size), dtype=np.int64)
        weights[: problem.stages, : problem.stages] = problem.tick_matrix
        self._problem, self._weights, self._rng = problem, weights, rng
        rest = [die for die in range(size) if die not in set(start)]
        die_of = np.array([*start, *rest], dtype=np.int64)
        self._tour = Tour(
            die_of=die_of,
            gains=np.zeros((size, size), dtype=np.int64),
            tabu_until=np.zeros((size, size), dtype=np.int64),
            best=die_of.copy(),
            scalars=np.array([0, np.iinfo(np.int64).max, 0], dtype=np.int64),
        )
        begin(weights, problem.hops, self._tour)
        self._left = STEPS_PER_DIE * size

    @property
    def steps_per_second(self) -> int:
        """A rough rate that depends on the size alone."""
        return max(1, int(WORK_PER_SECOND / self._problem.dies**2))

    def run(self, steps: int) -> None:
        """Make so many steps, starting anew where it is time to."""
        while steps > 0:
            now = min(steps, self._left)
            walk(self._weights, self._problem.hops, self._tour, self._rng, now)
            steps -= now
            self._left -= now
            if self._left == 0:
                self._tour.die_of[:] = self._rng.permutation(self._problem.dies)
                begin(self._weights, self._problem.hops, self._tour)
                self._left = STEPS_PER_DIE * self._problem.dies

    @property
    def best_ticks(self) -> int:
        """Value of the best placement, as the search keeps it."""
        return int(self._tour.scalars[BEST])

    @property
    def placement(self) -> list[int]:
        """The best placement so far."""
        return [int(die) for die in self._tour.best[: self._problem.stages]]


@entry()
def begin(weights: Ints, hops: Ints, tour: Tour) -> None:
    """Work out value and gains of the current placement, and forget what was tabu."""
    size, die_of = weights.shape[0], tour.die_of
    value = 0
    for i in range(size):
        for j in range(size):
            value += weights[i, j] * hops[die_of[i], die_of[j]]
            if i < j:
                tour.gains[i, j] = _gain(weights, hops, die_of, i, j)
    tour.scalars[VALUE] = value
    tour.tabu_until[:] = tour.scalars[STEP]
    if value < tour.scalars[BEST]:
        tour.scalars[BEST] = value
        tour.best[:] = die_of


@entry()
def walk(weights: Ints, hops: Ints, tour: Tour, rng: np.random.Generator, steps: int) -> None:
    """Make so many exchanges."""
    size, die_of, gains, tabu_until, scalars = weights.shape[0], tour.die_of, tour.gains, tour.tabu_until, tour.scalars
    shortest_ban, longest_ban = int(0.9 * size), int(1.1 * size) + 1
    for _ in range(steps):
        scalars[STEP] += 1
        r, s = _best_exchange(gains, tabu_until, die_of, scalars)
        if r < 0:
            continue
        scalars[VALUE] += gains[r, s]
        tabu_until[r, die_of[r]] = scalars[STEP] + rng.integers(shortest_ban, longest_ban + 1)
        tabu_until[s, die_of[s]] = scalars[STEP] + rng.integers(shortest_ban, longest_ban + 1)
        _update_gains(weights, hops, die_of, gains, r, s)
        if scalars[VALUE] < scalars[BEST]:
            scalars[BEST] = scalars[VALUE]
            tour.best[:] = die_of


@part
def _best_exchange(gains: Ints, tabu_until: Ints, die_of: Ints, scalars: Ints) -> tuple[int, int]:
    """The exchange to make; (-1, -1) if all are tabu. One that was not made for long goes before all others."""
    size, now = gains.shape[0], scalars[STEP]
    long_ago = now - 2 * size * size
    r, s, preferred = -1, -1, False
    for i in range(size):
        for j in range(i + 1, size):
            one, other = tabu_until[i, die_of[j]], tabu_until[j, die_of[i]]
            urgent = (one < long_ago and other < long_ago) or scalars[VALUE] + gains[i, j] < scalars[BEST]
            if not urgent and (preferred or (one >= now and other >= now)):
                continue
            if r < 0 or (urgent and not preferred) or gains[i, j] < gains[r, s]:
                r, s, preferred = i, j, urgent
    return r, s


@part
def _update_gains(weights: Ints, hops: Ints, die_of: Ints, gains: Ints, r: int, s: int) -> None:
    """Exchange r and s; exchanges of two others change by four terms, forth and back."""
    die_of[r], die_of[s] = die_of[s], die_of[r]
    here, there = die_of[r], die_of[s]
    size = gains.shape[0]
    for i in range(size):
        forth_i, back_i, p = weights[r, i] - weights[s, i], weights[i, r] - weights[i, s], die_of[i]
        for j in range(i + 1, size):
            if i in (r, s) or j in (r, s):
                gains[i, j] = _gain(weights, hops, die_of, i, j)
                continue
            q = die_of[j]
            forth = forth_i - weights[r, j] + weights[s, j]
            back = back_i - weights[j, r] + weights[j, s]
            if forth:
                gains[i, j] += forth * (hops[there, p] - hops[there, q] + hops[here, q] - hops[here, p])
            if back:
                gains[i, j] += back * (hops[p, there] - hops[q, there] + hops[q, here] - hops[p, here])


@part
def _gain(weights: Ints, hops: Ints, die_of: Ints, i: int, j: int) -> int:
    """Change of value if i and j are exchanged."""
    p, q = die_of[i], die_of[j]
    change: int = (weights[i, j] - weights[j, i]) * (hops[q, p] - hops[p, q])
    for k in range(die_of.shape[0]):
        if k != i and k != j:
            forth, back, o = weights[i, k] - weights[j, k], weights[k, i] - weights[k, j], die_of[k]
            change += forth * (hops[q, o] - hops[p, o]) + back * (hops[o, q] - hops[o, p])
    return change
