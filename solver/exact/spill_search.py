"""Where memory binds: how large may the largest chunk be, so that pooled spill finds room for the KV beside it?

The workspace grows with the largest chunk and takes the room of KV on every die; small chunks leave room, but more of
them are in the fixed number only at the price of unequal times. The search is over the largest chunk.
"""

from __future__ import annotations

from dataclasses import dataclass

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
SAFE_STEPS = 2
"""Steps from the first share with room for all KV to the first that is tried: there is a plan, and quickly."""
REFINEMENTS = 3
"""Halvings between the shares that ran and those that did not."""


@dataclass(frozen=True)
class Candidate:
    """Cuts as a plan without spill on paired dies, and its run without memory limits."""

    plan: Plan
    unlimited: Unlimited


def spill_search(search: Search, batch: int, soft: Deadline) -> None:
    """Offer plans of one batch with pooled spill; stops at the soft deadline once there is any plan."""
    found = _first_with_room(search, batch)
    if found is None:
        return
    ran = next(
        (step for step in _tried(search, batch, found) if _runs(search, batch, SHARES[step], thorough=False)), None
    )
    if ran is None:
        return
    good, failed = SHARES[ran], SHARES[max(0, found - 1)]
    for _ in range(REFINEMENTS):
        if enough(search, soft):
            return
        middle = (good + failed) / 2
        if _runs(search, batch, middle, thorough=True):
            good = middle
        else:
            failed = middle


def enough(search: Search, soft: Deadline) -> bool:
    """Whether the gap is closed, time is up, or there is a plan and its time is up."""
    return search.closed or search.deadline.over or (soft.over and search.incumbent.value is not None)


def cuts_of(found: BatchBound) -> list[Cuts]:
    """Cuts of a bound, and those that its other relaxations preferred, where one request shape tells them apart."""
    if not found.cuts:
        return []
    others = next(iter(found.other_cuts.values())) if len(found.other_cuts) == 1 else []
    shape = next(iter(found.cuts))
    return [found.cuts, *({shape: cuts} for cuts in others if cuts and cuts != found.cuts[shape])]


def _first_with_room(search: Search, batch: int) -> int | None:
    """First share whose KV fits in all memories together at every moment; smaller chunks leave more room."""
    low, high = 0, len(SHARES) - 1
    while high > 0 and not _covers(search, batch, SHARES[high]):
        high -= 1
    if not _room(search, batch, SHARES[high]):
        return None
    while low < high:
        middle = (low + high) // 2
        if _room(search, batch, SHARES[middle]):
            high = middle
        else:
            low = middle + 1
    return low


def _tried(search: Search, batch: int, first: int) -> list[int]:
    """Steps to try in turn: a safe one, smaller chunks, and last the larger ones that were passed over."""
    usable = [step for step in range(first, len(SHARES)) if _covers(search, batch, SHARES[step])]
    return usable[SAFE_STEPS:] + usable[:SAFE_STEPS][::-1]


def _limit_tokens(search: Search, batch: int, share: float) -> int:
    largest = max(search.admissible_chunk_tokens(batch, shape) for shape in search.instance.workload.shapes)
    return round(share * largest)


def _covers(search: Search, batch: int, share: float) -> bool:
    """Whether chunks this small can cover the longest request."""
    longest = max(search.instance.workload.uncached_counts)
    most = search.chunks or search.instance.pipeline.max_chunks
    return _limit_tokens(search, batch, share) * most >= longest


def _room(search: Search, batch: int, share: float) -> bool:
    if search.deadline.over:
        return False
    candidate = _candidate(search, batch, share, thorough=False)
    return candidate is not None and has_room(search, candidate.plan, candidate.unlimited)


def _runs(search: Search, batch: int, share: float, *, thorough: bool) -> bool:
    if search.deadline.over:
        return False
    candidate = _candidate(search, batch, share, thorough=thorough)
    return candidate is not None and pooled_plan(search, candidate.plan, candidate.unlimited) is not None


def _candidate(search: Search, batch: int, share: float, *, thorough: bool) -> Candidate | None:
    """The best cuts without a larger chunk, judged by their run without memory limits.

    None where no cuts promise to beat the incumbent, and for workloads of several request shapes.
    """
    limit = _limit_tokens(search, batch, share)
    found = search.restricted_bound(batch, largest_chunk_tokens=limit, thorough=thorough)
    if found.bound_s is None:
        return None
    if search.incumbent.value is not None and found.bound_s >= search.incumbent.value:
        return None
    layers, placement = paired_layout(search)
    candidates = []
    for cuts in cuts_of(found):
        plan = search.plan(batch, search.sizes(cuts), layers, placement)
        unlimited = unlimited_run(search, plan)
        if unlimited is not None:
            candidates.append(Candidate(plan, unlimited))
    return min(candidates, key=lambda candidate: candidate.unlimited.value, default=None)
