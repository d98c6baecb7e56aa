"""The chunk problem of a V bound: the least mean over paths, and the mixture of paths for which it is largest.

The entering chunk l of a path is the one that covers a quantum P, the leaving chunk m the one that covers a quantum Q,
P <= Q. For weights on pairs of quanta the mean of the paths' lengths is a bound too, and a plain shortest path over
chunks: with v(q) and w(q) the weights of the entering and of the leaving quanta before q, a chunk p..e-1 pays

    work + (v(e) - v(p))*entry - (1 - v(e))*lead + (w(e) - w(p))*exit - w(p)*trail.

Multiplicative weights climb from equal weights on the first and on the last quanta: quanta whose way in (or out) is
long under the present best cuts gain weight.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from formulations.chunks.paths import NO_CAP, CappedPaths
from formulations.tables import Table
from formulations.virtual.path import FoldPath
from formulations.wave_counts import Counts

Weights = npt.NDArray[np.float64]

ITERATIONS = 80
PATIENCE = 25
"""Mixtures in a row that may gain nothing."""
CLOSE = 1e-7
"""Relative difference of bounds that is not worth another mixture."""
SPANS = (1, 2, 4)
"""Spans of equal weights tried first, in mean chunks of the first cuts."""
LEAST_WEIGHT = 1e-3
"""Weights below this share of the largest are dropped."""
CANDIDATES = 6
"""Cuts handed on, the best ones by their own longest path."""


class FoldProblem:
    """Accumulates the weighted path costs of one request shape over a grid of n quanta."""

    def __init__(self, quanta: int, fewest: int, most: int) -> None:
        self.quanta, self.fewest, self.most = quanta, fewest, min(most, quanta)
        shape = (quanta + 1, quanta + 1)
        self.work, self.entry, self.lead, self.exit, self.trail = (np.zeros(shape) for _ in range(5))

    def count(self, path: FoldPath, counts: Counts) -> None:
        """Count the parts of a path: work of so many waves, ways in (crossings) and ways out."""
        self.work += counts.work * path.work
        self.entry += counts.crossing * path.entry
        self.lead += counts.crossing * path.lead
        self.exit += counts.way_out * path.exit
        self.trail += counts.way_out * path.trail

    def first_and_last(self) -> tuple[Weights, Weights]:
        """All weight on the first and on the last quantum."""
        return _uniform(self.quanta, 1), _uniform(self.quanta, 1)[::-1]

    def table(self, entering: Weights, leaving: Weights) -> Table:
        """Cost of every chunk for weights of sum 1 on quanta, shape (n,); no entering one behind a leaving one."""
        v, w = (np.concatenate(([0.0], np.cumsum(weights))) for weights in (entering, leaving))
        # Exactly one from the last quantum with weight on, whatever the sum rounds to.
        for before, weights in ((v, entering), (w, leaving)):
            before[int(np.flatnonzero(weights)[-1]) + 1 :] = 1.0
        cost = self.work + (v[None, :] - v[:, None]) * self.entry - (1.0 - v)[None, :] * self.lead
        cost += (w[None, :] - w[:, None]) * self.exit - w[:, None] * self.trail
        chunk = np.triu(np.ones(cost.shape, dtype=bool), 1)
        # Rounding may leave less than nothing of a chunk that only counts outside the die.
        return np.where(chunk, np.maximum(cost, 0.0), np.inf)

    def solve(self, table: Table | None = None) -> tuple[float, list[int]] | None:
        """Least sum of chunk costs, by default of the work alone, and cuts that have it; None without such cuts."""
        cost = np.ascontiguousarray(self.work if table is None else table)
        found = CappedPaths(cost, np.zeros_like(cost), self.fewest, self.most).under(NO_CAP)
        if found is None or found.cuts is None:
            return None
        return found.bound, found.cuts

    def ways(self, cuts: list[int]) -> tuple[Weights, Weights]:
        """Length of the way in and of the way out beside the work, for each entering and each leaving quantum."""
        starts = [0, *cuts[:-1]]
        entry, lead, way_out, trail = (table[starts, cuts] for table in (self.entry, self.lead, self.exit, self.trail))
        ahead = np.concatenate(([0.0], np.cumsum(lead)[:-1]))
        behind = np.concatenate((np.cumsum(trail[::-1])[::-1][1:], [0.0]))
        covered = np.diff([0, *cuts])
        return np.repeat(entry - ahead, covered), np.repeat(way_out - behind, covered)

    def longest(self, cuts: list[int]) -> float:
        """The longest of all paths under these cuts."""
        way_in, way_out = self.ways(cuts)
        later = np.maximum.accumulate(way_out[::-1])[::-1]
        return float(self.work[[0, *cuts[:-1]], cuts].sum() + (way_in + later).max())

    def best_mixture(
        self, found: tuple[float, list[int]], clock: float | None
    ) -> tuple[float, list[int], list[list[int]]]:
        """Climb from ``found``, bound and cuts with the first chunk entering and the last one leaving.

        Returns
        -------
        float, list, list
            The best bound, its cuts, and cuts worth a try, the best by their longest path first.
        """
        best, cuts = found
        met = {tuple(cuts): self.longest(cuts)}
        weights, tried = self.first_and_last(), best
        spans, idle = self._spans(cuts), 0
        for number in range(len(spans) + ITERATIONS):
            # No mean is above the longest path of any cuts: then nothing is left to gain.
            done = idle > PATIENCE or best >= min(met.values()) * (1.0 - CLOSE)
            if done or (clock is not None and time.monotonic() >= clock):
                break
            if number < len(spans):
                mixture = (_uniform(self.quanta, spans[number]), _uniform(self.quanta, spans[number])[::-1])
            elif number == len(spans):
                mixture = self._widened(weights)
            else:
                mixture = weights
            solved = self.solve(self.table(*mixture))
            assert solved is not None
            bound, other = solved
            met.setdefault(tuple(other), self.longest(other))
            idle = 0 if bound > best * (1.0 + CLOSE) else idle + 1
            if bound > best:
                best, cuts = bound, other
            if number >= len(spans):
                step = 1.0 / np.sqrt(number - len(spans) + 1.0)
                way_in, way_out = self.ways(other)
                weights = (_raised(mixture[0], way_in, step), _raised(mixture[1], way_out, step))
            elif bound > tried:
                weights, tried = mixture, bound
        return best, cuts, [list(key) for key in sorted(met, key=lambda key: met[key])[:CANDIDATES]]

    def _spans(self, cuts: list[int]) -> list[int]:
        """Numbers of quanta of so many mean chunks, never more than half of all: entering comes before leaving."""
        chunk, half = self.quanta / len(cuts), max(1, self.quanta // 2)
        return sorted({min(half, max(1, round(chunk * factor))) for factor in SPANS})

    def _widened(self, weights: tuple[Weights, Weights]) -> tuple[Weights, Weights]:
        """Some weight on twice as many quanta as have it, which then may gain more."""
        half = max(1, self.quanta // 2)
        wider = [_uniform(self.quanta, min(half, 2 * int(np.count_nonzero(each)))) for each in weights]
        return 0.8 * weights[0] + 0.2 * wider[0], 0.8 * weights[1] + 0.2 * wider[1][::-1]


def _raised(weights: Weights, length: Weights, step: float) -> Weights:
    """Weights moved to where the way is longer than the mean."""
    above = length - float(length @ weights)
    scale = float(np.abs(above[weights > 0]).max())
    if scale == 0.0:
        return weights
    # Quanta without weight stay without: their exponent would only overflow.
    raised = np.where(weights > 0, weights * np.exp(2.0 * step * np.minimum(above / scale, 1.0)), 0.0)
    raised[raised < LEAST_WEIGHT * raised.max()] = 0.0
    lifted: Weights = raised / raised.sum()
    return lifted


def _uniform(quanta: int, reach: int) -> Weights:
    weights = np.zeros(quanta)
    weights[:reach] = 1.0 / min(reach, quanta)
    return weights
