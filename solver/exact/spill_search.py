"""Where memory binds: how many chunks, and how large the largest, so that pooled spill finds room for the KV?

The workspace grows with the largest chunk and takes the room of KV on every die; small chunks leave room, but more of
them are in a fixed number only at the price of unequal times. And the number of chunks decides how unlike the stages
are at any moment: they fill and empty one chunk apart, so with as many chunks as stages the memories are half full on
average, and with many more all are nearly full at once. Fewer chunks run longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from formulations.bounds import BatchBound
from instances.plan import Plan
from instances.workload import Shape
from solver.exact.pool import Unlimited, has_room, pooled_plan, unlimited_run
from solver.limits import Deadline
from solver.policies.layout import paired_layout
from solver.search import Search

Cuts = dict[Shape, list[int]]

SHARES = tuple(0.8**step for step in range(24))
"""Largest chunks tried, as shares of the largest that memory admits."""
COUNTS = (1.0, 0.75, 0.56, 0.42, 0.32, 0.25, 0.18, 0.13, 0.09)
"""Numbers of chunks tried, as shares of max_chunks."""
SAFE_STEPS = 2
"""Steps from the first share with room for all KV to the first that is tried: there is a plan, and quickly."""
REFINEMENTS = 3
"""Halvings between the shares that ran and those that did not."""


@dataclass(frozen=True)
class Candidate:
    """Cuts as a plan without spill on paired dies, and its run without memory limits."""

    plan: Plan
    unlimited: Unlimited


@dataclass(frozen=True)
class Restriction:
    """Plans of one batch with at most so many chunks; ``host`` says whether they may spill to the host too."""

    search: Search
    batch: int
    most_chunks: int
    host: bool = True

    def limit_tokens(self, share: float) -> int:
        """Largest chunk for a share."""
        shapes = self.search.instance.workload.shapes
        return round(share * max(self.search.admissible_chunk_tokens(self.batch, shape) for shape in shapes))

    def covers(self, share: float) -> bool:
        """Whether chunks this small can cover the longest request."""
        return self.limit_tokens(share) * self.most_chunks >= max(self.search.instance.workload.uncached_counts)

    def candidate(self, share: float, *, thorough: bool) -> Candidate | None:
        """The best cuts without a larger chunk, judged by their run without memory limits.

        None where no cuts promise to beat the incumbent, and for workloads of several request shapes.
        """
        search = self.search
        found = search.restricted_bound(
            self.batch,
            largest_chunk_tokens=self.limit_tokens(share),
            most_chunks=self.most_chunks,
            thorough=thorough,
        )
        if found.bound_s is None:
            return None
        if search.incumbent.value is not None and found.bound_s >= search.incumbent.value:
            return None
        layers, placement = paired_layout(search)
        candidates = []
        for cuts in cuts_of(found):
            plan = search.plan(self.batch, search.sizes(cuts), layers, placement)
            unlimited = unlimited_run(search, plan)
            if unlimited is not None:
                candidates.append(Candidate(plan, unlimited))
        return min(candidates, key=lambda candidate: candidate.unlimited.value, default=None)

    def room(self, share: float) -> bool:
        """Whether all KV of the best cuts fits in all memories together at every moment."""
        if self.search.deadline.over:
            return False
        found = self.candidate(share, thorough=False)
        return found is not None and has_room(self.search, found.plan, found.unlimited, host=self.host)

    def runs(self, share: float, *, thorough: bool) -> bool:
        """Whether pooled spill makes the best cuts run; offers the plan."""
        if self.search.deadline.over:
            return False
        found = self.candidate(share, thorough=thorough)
        if found is None:
            return False
        return pooled_plan(self.search, found.plan, found.unlimited, host=self.host) is not None


def spill_search(search: Search, batch: int, soft: Deadline, *, host: bool = True) -> None:
    """Offer plans of one batch with pooled spill; stops at the soft deadline once there is any plan.

    Numbers of chunks are tried from the most, for more are faster; the first that runs is refined.
    """
    most = search.chunks or search.instance.pipeline.max_chunks
    counts = [most] if search.chunks else sorted({max(1, round(share * most)) for share in COUNTS}, reverse=True)
    fewer_fail = None
    for count in counts:
        if enough(search, soft):
            return
        if _with_count(Restriction(search, batch, count, host), soft):
            break
        fewer_fail = count
    else:
        return
    if fewer_fail is not None and not enough(search, soft):
        _with_count(Restriction(search, batch, (count + fewer_fail) // 2, host), soft)


def _with_count(restriction: Restriction, soft: Deadline) -> bool:
    """Whether plans with at most so many chunks run; looks for the largest chunk with which they do."""
    first = _first_with_room(restriction)
    if first is None:
        return False
    usable = [step for step in range(first, len(SHARES)) if restriction.covers(SHARES[step])]
    in_turn = usable[SAFE_STEPS:] + usable[:SAFE_STEPS][::-1]
    search = restriction.search
    in_time = takewhile(lambda _: not enough(search, soft), in_turn)
    ran = next((step for step in in_time if restriction.runs(SHARES[step], thorough=False)), None)
    if ran is None:
        return False
    good, failed = SHARES[ran], SHARES[max(0, first - 1)]
    for _ in range(REFINEMENTS):
        if enough(search, soft):
            break
        middle = (good + failed) / 2
        if restriction.runs(middle, thorough=True):
            good = middle
        else:
            failed = middle
    return True


def _first_with_room(restriction: Restriction) -> int | None:
    """First share whose KV fits in all memories together at every moment; smaller chunks leave more room."""
    low, high = 0, len(SHARES) - 1
    while high > 0 and not restriction.covers(SHARES[high]):
        high -= 1
    if not restriction.room(SHARES[high]):
        return None
    while low < high:
        middle = (low + high) // 2
        if restriction.room(SHARES[middle]):
            high = middle
        else:
            low = middle + 1
    return low


def enough(search: Search, soft: Deadline) -> bool:
    """Whether the gap is closed, time is up, or there is a plan and its time is up."""
    return search.closed or search.deadline.over or (search.incumbent.value is not None and soft.over)


def cuts_of(found: BatchBound) -> list[Cuts]:
    """Cuts of a bound, and those that its other relaxations preferred, where one request shape tells them apart."""
    if not found.cuts:
        return []
    if len(found.other_cuts) != 1:
        return [found.cuts]
    shape, others = next(iter(found.other_cuts.items()))
    return [found.cuts, *({**found.cuts, shape: cuts} for cuts in others if cuts and cuts != found.cuts[shape])]
