"""Exact minimum of A*sum t + Z*max u over cut sequences, by interval branch and bound over caps on max u.

Let f(c) be the least sum of t with every u <= c (a shortest path). f falls as c rises, so for caps c in [lo, hi] the
objective is at least A*f(hi) + Z*lo. Splitting the interval with the largest promise and solving one shortest path at
the split closes it in a few dozen paths, where scanning every cap (TeraPipe) takes one path per distinct value of u.
A path found under cap c with true maximum u* <= c settles all caps in [u*, c] at once: f is constant there.
"""

import heapq
import time

import numpy as np

from formulations.chunks.paths import NO_CAP, CappedPaths
from formulations.chunks.result import (
    ChunkResult,
    FloatTable,
    checked_counts,
    checked_pair,
    checked_weights,
    chunk_value,
)
from instances.errors import InputError


def solve_chunks(
    t: FloatTable,
    u: FloatTable,
    A: float,
    Z: float,
    max_chunks: int | None,
    min_chunks: int = 1,
    upper_bound: float | None = None,
    deadline_s: float | None = None,
    tolerance: float = 1e-9,
    first_chunk_extra: FloatTable | None = None,
) -> ChunkResult:
    """Cut n quanta into chunks so that A*sum t + Z*max u is least.

    Parameters
    ----------
    t, u
        Shape (n+1, n+1): cost, and time across one stage boundary, of the chunk of quanta p..e-1 at [p, e], p < e.
        +inf forbids a chunk. Column n holds the last chunk's own costs.
    A, Z
        Weights >= 0 (makespan of W equal waves on N equal stages: A = W, Z = N-1; semantics section 5).
    max_chunks, min_chunks
        Limits on the number of chunks; None: as many as there are quanta.
    upper_bound
        Only cut sequences of a smaller value are of interest.
    deadline_s
        Seconds from this call after which no further cap is tried; the bound stays valid.
    tolerance
        Relative difference of value and bound that counts as equal.
    first_chunk_extra
        Shape (n+1,): added to t of a chunk that starts at 0 and ends at e.

    Returns
    -------
    ChunkResult
        `exact` unless the deadline struck first.
    """
    A, Z = checked_weights(A, Z)
    cost, crossing = checked_pair(t, u)
    if first_chunk_extra is not None:
        cost = _with_extra(cost, first_chunk_extra)
    fewest, most = checked_counts(cost.shape[0] - 1, min_chunks, max_chunks)
    search = _CapSearch(cost, crossing, A, Z, fewest, most, upper_bound, tolerance)
    return search.run(None if deadline_s is None else time.monotonic() + deadline_s)


def path_value(
    t: FloatTable,
    u: FloatTable,
    cap: float,
    max_chunks: int | None = None,
    min_chunks: int = 1,
    first_chunk_extra: FloatTable | None = None,
) -> float | None:
    """Least sum of t over cut sequences with every u <= cap (f(cap) above); None where there is none.

    A*path_value(cap hi) + Z*lo is a lower bound for all cut sequences with lo <= max u <= cap hi.
    """
    cost, crossing = checked_pair(t, u)
    if first_chunk_extra is not None:
        cost = _with_extra(cost, first_chunk_extra)
    fewest, most = checked_counts(cost.shape[0] - 1, min_chunks, max_chunks)
    found = CappedPaths(cost, crossing, fewest, most).under(min(cap, NO_CAP))
    return None if found is None else found.total


def _with_extra(cost: FloatTable, extra: FloatTable) -> FloatTable:
    if extra.shape != (cost.shape[0],) or np.isnan(extra[1:]).any():
        raise InputError("first_chunk_extra", extra, f"{cost.shape[0]} numbers, one for each end position")
    changed = cost.copy()
    changed[0, 1:] += extra[1:]
    return changed


class _CapSearch:
    """State of one branch and bound: incumbent, open intervals of caps (best bound first)."""

    def __init__(
        self,
        t: FloatTable,
        u: FloatTable,
        A: float,
        Z: float,
        fewest: int,
        most: int,
        upper_bound: float | None,
        tolerance: float,
    ) -> None:
        self.t, self.u, self.A, self.Z = t, u, A, Z
        self.tolerance = tolerance
        self.cuts: list[int] = []
        self.value = np.inf
        self.target = np.inf if upper_bound is None else float(upper_bound)
        self.paths = CappedPaths(t, u, fewest, most)

    def run(self, deadline: float | None) -> ChunkResult:
        free = self.paths.under(NO_CAP)
        if free is None:
            return ChunkResult([], None, None, True, self.paths.paths)
        floor = self.A * free.bound
        caps = self._useful_caps(free.cuts, floor)
        # One interval: (bound, first cap, last cap, lower bound of A*f on it).
        intervals = [(floor + self.Z * float(caps[0]), 0, len(caps) - 1, floor)] if len(caps) else []
        while intervals:
            bound, first, last, floor = intervals[0]
            if bound >= self._cutoff():
                break
            if deadline is not None and time.monotonic() >= deadline:
                return self._result(bound, exact=False)
            heapq.heappop(intervals)
            for child in self._split(caps, first, last, floor):
                heapq.heappush(intervals, child)
        return self._result(intervals[0][0] if intervals else np.inf, exact=True)

    def _useful_caps(self, cuts: list[int] | None, floor: float) -> FloatTable:
        """Sorted values of u between the least cap that admits any path and the largest that could still pay."""
        ceiling = np.inf
        if cuts is not None:
            self._offer(cuts)
            ceiling = self.paths.largest_u(cuts)
        if self.Z > 0:
            ceiling = min(ceiling, (min(self.value, self.target) - floor) / self.Z)
        lowest = self._bottleneck(ceiling)
        values = self.u[np.triu_indices(self.u.shape[0], 1)]
        return np.unique(values[(values >= lowest) & (values <= ceiling) & (values <= NO_CAP)])

    def _bottleneck(self, ceiling: float) -> float:
        """A cap below which no path of few enough chunks exists, to about a thousandth of the range."""
        low, high = 0.0, ceiling
        if not np.isfinite(high):
            return low
        for _ in range(10):
            middle = (low + high) / 2
            chunks = self.paths.fewest_chunks(middle)
            if chunks is None or chunks > self.paths.most:
                low = middle
            else:
                high = middle
        return low

    def _split(self, caps: FloatTable, first: int, last: int, floor: float) -> list[tuple[float, int, int, float]]:
        """Solve one cap inside the interval and return what remains of it on either side."""
        middle = (caps[first] + caps[last]) / 2
        chosen = min(max(int(np.searchsorted(caps, middle, side="right")) - 1, first), last)
        lowest_value = self.Z * float(caps[first])
        enough = (self._cutoff() - lowest_value) / self.A if self.A > 0 else np.inf
        found = self.paths.under(float(caps[chosen]), enough)
        children = []
        if found is not None:
            left_floor = max(floor, self.A * found.bound)
            left_last = chosen
            if found.cuts is not None:
                self._offer(found.cuts)
                left_last = int(np.searchsorted(caps, self.paths.largest_u(found.cuts), side="left")) - 1
            if left_last >= first:
                children.append((left_floor + lowest_value, first, left_last, left_floor))
        if chosen < last:
            children.append((floor + self.Z * float(caps[chosen + 1]), chosen + 1, last, floor))
        return children

    def _offer(self, cuts: list[int]) -> None:
        value = chunk_value(self.t, self.u, self.A, self.Z, cuts)
        if value < min(self.value, self.target):
            self.value, self.cuts = value, cuts

    def _cutoff(self) -> float:
        best = min(self.value, self.target)
        return best - self.tolerance * abs(best) if np.isfinite(best) else best

    def _result(self, open_bound: float, exact: bool) -> ChunkResult:
        bound = min(open_bound, self.value, self.target)
        return ChunkResult(self.cuts, self.value if self.cuts else None, bound, exact, self.paths.paths)
