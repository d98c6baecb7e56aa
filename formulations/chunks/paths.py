"""Cheapest cut sequence under a cap on u and limits on the number of chunks.

Without a binding limit it is one shortest path. Where the limit binds, a price per chunk moves along the lower hull of
(number of chunks, sum): the hull is a lower bound, and the answer itself when a hull corner has exactly the number of
chunks allowed (always so for convex sums, such as attention's). Only the rest needs a layered path.
"""

import sys
from dataclasses import dataclass

import numpy as np

from formulations.chunks.kernels import (
    Floats,
    Ints,
    extreme_count_path,
    fewest_to_go,
    last_open,
    layered_path,
    shortest_path,
    suffix_minimum,
)

NO_CAP = sys.float_info.max
"""A cap that every finite u keeps and +inf (a forbidden chunk) does not."""


@dataclass(frozen=True)
class CapPath:
    """Outcome under one cap: `bound` <= least sum; `cuts` is None if the bound alone settled the question."""

    bound: float
    cuts: list[int] | None
    total: float


class CappedPaths:
    """Shortest paths over one table of costs, for many caps.

    Parameters
    ----------
    t, u
        Cost and capped quantity of every chunk, shape (n+1, n+1), [start, end] in quanta.
    fewest, most
        Admitted number of chunks.
    """

    def __init__(self, t: Floats, u: Floats, fewest: int, most: int) -> None:
        self.t = t
        self.u = u
        self.fewest = fewest
        self.most = most
        self.quanta = t.shape[0] - 1
        self.paths = 0
        self._least = suffix_minimum(u)

    def under(self, cap: float, enough: float = np.inf) -> CapPath | None:
        """Least sum of t with every u <= cap; None if no cut sequence is admitted.

        As soon as the sum is known to be at least `enough` the search may stop with a bound and no cuts.
        """
        reach = last_open(self._least, cap)
        total, cuts = self._priced(reach, cap, 0.0)
        if cuts is None:
            return None
        if self.fewest <= len(cuts) <= self.most:
            return CapPath(total, cuts, total)
        too_many = len(cuts) > self.most
        limit = self.most if too_many else self.fewest
        self.paths += 1
        other = self._unwound(extreme_count_path(self.t, self.u, reach, cap, 1 if too_many else -1))
        if other is None or (len(other) > limit if too_many else len(other) < limit):
            return None
        bound, best = self._hull(reach, cap, cuts, other, limit)
        total = self._sum(best)
        if self.fewest <= len(best) <= self.most and total <= bound + 1e-12 * abs(bound):
            return CapPath(total, best, total)
        if bound >= enough:
            return CapPath(bound, None, np.inf)
        return self._layered(reach, cap)

    def fewest_chunks(self, cap: float) -> int | None:
        """Fewest chunks under a cap, or None if position n is out of reach."""
        self.paths += 1
        cuts = self._unwound(extreme_count_path(self.t, self.u, last_open(self._least, cap), cap, 1))
        return None if cuts is None else len(cuts)

    def largest_u(self, cuts: list[int]) -> float:
        """Largest u of a cut sequence."""
        return float(max(self.u[p, e] for p, e in zip([0, *cuts[:-1]], cuts, strict=True)))

    def _sum(self, cuts: list[int]) -> float:
        return float(sum(self.t[p, e] for p, e in zip([0, *cuts[:-1]], cuts, strict=True)))

    def _priced(self, reach: Ints, cap: float, price: float) -> tuple[float, list[int] | None]:
        self.paths += 1
        distance, before = shortest_path(self.t, self.u, reach, cap, price)
        return float(distance[-1]), self._unwound(before)

    def _unwound(self, before: Ints) -> list[int] | None:
        if before[self.quanta] < 0:
            return None
        cuts = [self.quanta]
        while before[cuts[-1]] > 0:
            cuts.append(int(before[cuts[-1]]))
        return cuts[::-1]

    def _hull(
        self, reach: Ints, cap: float, refused: list[int], admitted: list[int], limit: int
    ) -> tuple[float, list[int]]:
        """Walk to the hull edge that spans `limit` chunks; returns (bound at the limit, best admitted cuts).

        A price gives min(sum + price*chunks) - price*limit, a lower bound for every path on the admitted side of the
        limit, since the price is >= 0 where chunks are too many and <= 0 where they are too few. Every round replaces
        one end of the edge by a path with a number of chunks strictly between, so the walk ends.
        """
        bound = self._sum(refused)
        while len(admitted) != limit:
            price = (self._sum(admitted) - self._sum(refused)) / (len(refused) - len(admitted))
            value, cuts = self._priced(reach, cap, price)
            bound = max(bound, value - price * limit)
            chunks = 0 if cuts is None else len(cuts)
            if cuts is None or not min(len(refused), len(admitted)) < chunks < max(len(refused), len(admitted)):
                return bound, admitted
            if value >= self._sum(refused) + price * len(refused) - 1e-13 * abs(value):
                return bound, admitted
            if (chunks - limit) * (len(refused) - limit) > 0:
                refused = cuts
            else:
                admitted = cuts
        return self._sum(admitted), admitted

    def _layered(self, reach: Ints, cap: float) -> CapPath | None:
        self.paths += self.most
        need = fewest_to_go(self.t, self.u, reach, cap)
        total, chunks, before = layered_path(self.t, self.u, reach, need, cap, self.fewest, self.most)
        if not np.isfinite(total):
            return None
        cuts = [self.quanta]
        for layer in range(chunks, 1, -1):
            cuts.append(int(before[layer, cuts[-1]]))
        return CapPath(float(total), cuts[::-1], float(total))
