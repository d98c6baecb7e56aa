"""The chunk problem of a bound, and the best mixture of entering quanta (see ``bounds``).

The entering chunk l of a path is the one that covers a quantum P. For weights on quanta that sum to one, the mean of
the paths' lengths is a bound as well, and still a chunk problem: with W(q) the weight of the quanta before q, a chunk
p..e-1 pays (W(e) - W(p)) times its entry, and (1 - W(e)) times its lead less than its work. The crossing chunk must not
lie before the entering one, so crossings count only from chunks that end behind the last quantum with weight.
Equal weights on the first quanta come first; from the best span multiplicative weights climb: quanta whose entry is
long under the present best cuts gain weight.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from formulations.stage_path import StagePath
from formulations.tables import Table
from formulations.wave_counts import Counts

Weights = npt.NDArray[np.float64]
Solve = Callable[[Table, Table], tuple[float, list[int]]]
"""Bound and cuts of a chunk problem with the tables t and u."""

ITERATIONS = 150
PATIENCE, LEAST_GAIN = 25, 3e-6
"""So many rounds that raise the bound by no more than this, a thirtieth of what counts as optimal, are the last."""
SPANS = (0.5, 1, 2, 4, 8)
"""Spans of equal weights tried first, in chunks of the size that the first chunks of the plain bound have."""
LEAST_WEIGHT = 1e-3
"""Weights below this share of the largest are dropped."""
CANDIDATES = 6
"""Cuts handed on, the best ones by their own path."""


class ChunkProblem:
    """Accumulates the weighted path costs of one request shape over a grid of n quanta."""

    def __init__(self, quanta: int) -> None:
        self.quanta = quanta
        self._terms: dict[int, tuple[StagePath, list[float]]] = {}

    def add(self, path: StagePath, weight: float, *, first: bool, last: bool) -> None:
        """Count one wave of a path: its work, its crossing if it comes first, its way out if it comes last."""
        self.count(path, Counts(weight, weight * first, weight * last))

    def count(self, path: StagePath, counts: Counts) -> None:
        """Count the parts of a path, summed up over waves."""
        counted = self._terms.setdefault(id(path), (path, [0.0, 0.0, 0.0]))[1]
        for part, weight in enumerate(counts):
            counted[part] += weight

    @property
    def has_entry(self) -> bool:
        """Whether stages lie before the one that the path settles on, and it is known how much less work they have."""
        return all(path.lead is not None and path.entry[0, -1] > 0 for path, _ in self._terms.values())

    def first_quantum(self) -> Weights:
        """All weight on the first quantum: the first chunk enters. Shape (n,)."""
        weights = np.zeros(self.quanta)
        weights[0] = 1.0
        return weights

    def tables(self, weights: Weights) -> tuple[Table, Table]:
        """Weighted work with entry and way out, and weighted crossing, for weights on the entering quantum.

        Parameters
        ----------
        weights
            At least 0, sum 1, shape (n,).
        """
        t, u = self._work(), np.zeros((self.quanta + 1, self.quanta + 1))
        before = np.concatenate(([0.0], np.cumsum(weights)))
        before[int(np.flatnonzero(weights)[-1]) + 1 :] = 1.0  # exactly, whatever the sum rounds to
        covered, behind = before[None, :] - before[:, None], 1.0 - before[None, :]
        for path, (_, crossing, _) in self._terms.values():
            if crossing:
                u += crossing * path.crossing
                t += crossing * np.multiply(path.entry, covered, out=np.zeros_like(t), where=covered > 0)
                if path.lead is not None:
                    t -= crossing * behind * path.lead
        u[:, : int(np.flatnonzero(weights)[-1]) + 1] = 0.0
        u[np.isinf(t)] = np.inf
        return t, u

    def entries(self, cuts: list[int]) -> Weights:
        """Length of the way in for each entering quantum under these cuts, beside the work. Shape (n,)."""
        lengths, ahead, start = np.zeros(self.quanta), 0.0, 0
        for end in cuts:
            lengths[start:end] = self._sum(lambda path: path.entry, start, end) - ahead
            ahead += self._sum(lambda path: path.lead, start, end)
            start = end
        return lengths

    def longest_path(self, cuts: list[int]) -> float:
        """Length of the longest of the paths under these cuts."""
        t = self._work()
        starts = [0, *cuts[:-1]]
        work = sum(float(t[p, e]) for p, e in zip(starts, cuts, strict=True))
        entries = self.entries(cuts)[starts]
        crossings = [self._sum(lambda path: path.crossing, p, e) for p, e in zip(starts, cuts, strict=True)]
        behind = np.maximum.accumulate(np.array(crossings)[::-1])[::-1]
        return work + float((entries + behind).max())

    def _work(self) -> Table:
        t = np.zeros((self.quanta + 1, self.quanta + 1))
        for path, (work, _, out) in self._terms.values():
            t += work * path.work
            t[:-1, -1] += out * path.way_out[:-1]
        return t

    def _sum(self, part: Callable[[StagePath], Table | None], start: int, end: int) -> float:
        total = 0.0
        for path, (_, crossing, _) in self._terms.values():
            table = part(path)
            if crossing and table is not None:
                total += crossing * float(table[start, end])
        return total


def best_mixture(
    problem: ChunkProblem, solve: Solve, found: tuple[float, list[int]], clock: float | None
) -> tuple[float, list[int], list[list[int]]]:
    """Climb from ``found``, the bound and cuts with the first chunk entering.

    Parameters
    ----------
    clock
        Moment of ``time.monotonic`` after which no further mixture is tried.

    Returns
    -------
    float, list, list
        The best bound, its cuts, and cuts worth a try, the best by their longest path first.
    """
    best, cuts = found
    if not problem.has_entry or not cuts:
        return best, cuts, [cuts]
    met = {tuple(cuts): problem.longest_path(cuts)}
    weights, tried = problem.first_quantum(), best

    def attempt(mixture: Weights) -> tuple[float, list[int]]:
        nonlocal best, cuts
        bound, other = solve(*problem.tables(mixture))
        if other:
            met.setdefault(tuple(other), problem.longest_path(other))
            if bound > best:
                best, cuts = bound, other
        return bound, other

    span = 1
    for mixture, reach in _spans(problem.quanta, cuts):
        if clock is not None and time.monotonic() >= clock:
            break
        bound, other = attempt(mixture)
        if other and bound > tried:
            weights, tried, span = mixture, bound, reach
    # Quanta behind the best span may gain weight too, but the crossing needs chunks behind the last of them.
    support = max(span, min(problem.quanta // 2, 2 * span))
    weights = 0.9 * weights + 0.1 * _uniform(problem.quanta, support)
    before = best
    for iteration in range(ITERATIONS):
        if iteration % PATIENCE == PATIENCE - 1:
            if best - before <= LEAST_GAIN * best:
                break
            before = best
        if clock is not None and time.monotonic() >= clock:
            break
        _, other = attempt(weights)
        if not other:
            break
        entries = problem.entries(other)
        above = entries - float(entries @ weights)
        # Quanta without weight stay without: their lengths may be far beyond the others'.
        above[weights == 0.0] = 0.0
        scale = float(np.abs(above).max())
        if scale == 0.0:
            break
        weights = weights * np.exp(2.0 / np.sqrt(iteration + 1.0) * above / scale)
        weights[weights < LEAST_WEIGHT * weights.max()] = 0.0
        weights /= weights.sum()
    return best, cuts, [list(key) for key in sorted(met, key=lambda key: met[key])[:CANDIDATES]]


def _spans(quanta: int, cuts: list[int]) -> list[tuple[Weights, int]]:
    """Equal weights on the first quanta, as many as so many of the first chunks cover, and how many these are."""
    chunk = cuts[min(2, len(cuts) - 1)] / min(3, len(cuts))
    reaches = sorted({min(quanta, max(1, round(chunk * factor))) for factor in SPANS})
    return [(_uniform(quanta, reach), reach) for reach in reaches]


def _uniform(quanta: int, reach: int) -> Weights:
    weights = np.zeros(quanta)
    weights[:reach] = 1.0 / min(reach, quanta)
    return weights
