"""Improves a placement by small moves, for any flows and distances.

Moves: swap the dies of two stages, or move a stage to a free die; take a stage out of the order and put it in
elsewhere, the stages between moving up (good for pipelines). With adjacent partners, pairs move as a whole: two pairs
change places, a pair turns round, or two pairs in a square turn by a quarter. Kicks of random swaps leave local optima.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from formulations.placement.compiled import entry, part
from formulations.placement.problem import Hops, PlacementProblem

Ints = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]

SMALLEST_GAIN = 1e-9


SECONDS_PER_MOVE = 4e-8
"""Seconds to look at one flow of one move, roughly."""


class KickSearch:
    """A search that goes on from where it stopped: kicks of the best placement, and descents from there.

    Partners stay adjacent if they are at the start.
    """

    def __init__(self, problem: PlacementProblem, start: Sequence[int], rng: np.random.Generator) -> None:
        self._problem, self._rng = problem, rng
        self._ends = np.array([(s, t) for s, t, _ in problem.flows], dtype=np.int64).reshape(-1, 2)
        self._weights = np.array([weight for *_, weight in problem.flows])
        self._partner = np.full(problem.dies, -1, dtype=np.int64)
        for i, j in problem.pairs:
            self._partner[i], self._partner[j] = j, i
        # Dies without a stage follow the stages, so that a move to a free die is a swap too.
        rest = [die for die in range(problem.dies) if die not in set(start)]
        self._best = np.array([*start, *rest], dtype=np.int64)
        self._value = total(self._ends, self._weights, problem.hops, self._best)
        self._descend(self._best.copy())

    @property
    def steps_per_second(self) -> float:
        """Kicks a second, roughly."""
        work = self._problem.dies**2 * max(1, len(self._problem.flows))
        return 1.0 / (work * SECONDS_PER_MOVE)

    def run(self, kicks: int) -> None:
        """Kick so many times."""
        for _ in range(kicks):
            candidate = self._best.copy()
            perturb(candidate, self._problem.hops, self._partner, self._rng, 3)
            self._descend(candidate)

    @property
    def placement(self) -> list[int]:
        """The best placement so far; never worse than the start."""
        return [int(die) for die in self._best[: self._problem.stages]]

    def _descend(self, candidate: Ints) -> None:
        hops = self._problem.hops
        descend(self._ends, self._weights, hops, candidate, self._partner, self._problem.stages)
        value = total(self._ends, self._weights, hops, candidate)
        if value >= self._value - SMALLEST_GAIN * max(1.0, self._value):
            return
        # Moves look at neighbours in one direction only.
        if self._problem.symmetric or not self._problem.violations(candidate[: self._problem.stages].tolist()):
            self._best, self._value = candidate, value


def improve(problem: PlacementProblem, start: Sequence[int], rng: np.random.Generator, kicks: int) -> list[int]:
    """The best placement met from `start`; never worse, and partners stay adjacent if they are at the start."""
    search = KickSearch(problem, start, rng)
    search.run(kicks)
    return search.placement


@entry()
def total(ends: Ints, weights: Weights, hops: Hops, order: Ints) -> float:
    """Sum of weight*hops over flows; `ends` has shape (flows, 2), `order` the die of each position."""
    value = 0.0
    for flow in range(weights.shape[0]):
        value += weights[flow] * hops[order[ends[flow, 0]], order[ends[flow, 1]]]
    return value


@part
def partners_adjacent(hops: Hops, order: Ints, partner: Ints) -> bool:
    """True if every stage with a partner lies one hop from it."""
    apart = 0
    for s in range(order.shape[0]):
        if partner[s] > s and hops[order[s], order[partner[s]]] != 1:
            apart += 1
    return apart == 0


@part
def swap(order: Ints, i: int, j: int) -> None:
    """Exchange two positions."""
    order[i], order[j] = order[j], order[i]


@part
def swap_with_partners(order: Ints, partner: Ints, i: int, j: int) -> None:
    """Exchange i and j, and their partners with each other."""
    swap(order, i, j)
    if partner[i] >= 0 and partner[j] >= 0 and partner[i] != j:
        swap(order, partner[i], partner[j])


@part
def rotate(order: Ints, i: int, j: int) -> None:
    """Take out position i and put it in at j."""
    kept = order[i]
    step = 1 if j > i else -1
    for k in range(i, j, step):
        order[k] = order[k + step]
    order[j] = kept


@part
def quarter_turn(order: Ints, partner: Ints, i: int, j: int) -> None:
    """Pairs (i, a) and (j, b): a takes the die of j, and j the die of a; dominoes side by side turn so."""
    if partner[i] >= 0 and partner[j] >= 0 and partner[i] != j:
        swap(order, partner[i], j)


@part
def moved(order: Ints, partner: Ints, i: int, j: int, kind: int) -> None:
    """Apply one kind of move (0 swap, 1 insertion, 2 swap of pairs, 3 quarter turn) in place."""
    if kind == 0:
        swap(order, i, j)
    elif kind == 1:
        rotate(order, i, j)
    elif kind == 2:
        swap_with_partners(order, partner, i, j)
    else:
        quarter_turn(order, partner, i, j)


@entry()
def descend(ends: Ints, weights: Weights, hops: Hops, order: Ints, partner: Ints, stages: int) -> None:
    """Take every improving move until there is none; `order` changes in place."""
    paired = bool((partner >= 0).any())
    kinds = 4 if paired else 2
    value = total(ends, weights, hops, order)
    improved = True
    while improved:
        improved = False
        for kind in range(kinds):
            for i in range(stages):
                for j in range(order.shape[0]):
                    if i == j or (kind == 1 and j >= stages) or (kind == 0 and j < i):
                        continue
                    candidate = order.copy()
                    moved(candidate, partner, i, j, kind)
                    new_value = total(ends, weights, hops, candidate)
                    if new_value < value - SMALLEST_GAIN * max(1.0, value) and (
                        not paired or partners_adjacent(hops, candidate, partner)
                    ):
                        order[:] = candidate
                        value = new_value
                        improved = True


@entry()
def perturb(order: Ints, hops: Hops, partner: Ints, rng: np.random.Generator, moves: int) -> None:
    """A few random moves that keep partners adjacent; `order` changes in place."""
    size = order.shape[0]
    paired = bool((partner >= 0).any())
    done = 0
    for _ in range(50 * moves):
        i = int(rng.integers(0, size))
        j = int(rng.integers(0, size))
        if i == j:
            continue
        candidate = order.copy()
        moved(candidate, partner, i, j, 2 + int(rng.integers(0, 2)) if paired else 0)
        if not paired or partners_adjacent(hops, candidate, partner):
            order[:] = candidate
            done += 1
            if done == moves:
                return
