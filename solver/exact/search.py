"""The exact method: bounds first, the relaxation's cuts as plans, heuristics, pooled spill where memory binds."""

from __future__ import annotations

import math
from dataclasses import replace

from formulations.bounds import BatchBound
from instances.plan import Plan
from instances.workload import Shape
from solver.exact.compare import compare
from solver.exact.polish import polish
from solver.exact.pool import Unlimited, pooled_plan, unlimited_run
from solver.policies.layout import paired_layout, pipeline_layout
from solver.search import Search

Cuts = dict[Shape, list[int]]

SHARES = tuple(0.8**step for step in range(20))
"""Largest chunks tried where memory binds, as shares of the largest that memory admits: a smaller workspace leaves more
room for KV, and costs time."""
OWN_SHARE = 0.6
"""Share of the time for the search itself where the heuristics run too."""
REFINEMENTS = 3
"""Halvings between the last share that failed and the first that ran."""


def exact(search: Search) -> Plan | None:
    """Find a plan and narrow its gap to the bound, until the gap is closed or time is up.

    1. For each batch, best bound first, replay the cuts that minimise the bound's relaxation.
    2. Where those do not run or wait for memory: cuts with a smaller largest chunk, with spill from a linear program
       over all creditors.
    3. Run the heuristics, and take over the best plan if it is better.
    4. Move single boundaries under the replay.
    """
    heuristics = search.knobs["compare"] == "yes"
    search.note("cuts from the bound")
    batches = [batch for batch, found in search.bounds.items() if found.bound_s is not None]
    batches.sort(key=lambda batch: (search.bounds[batch].bound_s, batch))
    own = replace(search, deadline=search.deadline.part(OWN_SHARE, math.inf)) if heuristics else search
    for batch in batches:
        bound = search.bounds[batch].bound_s
        assert bound is not None
        if _over(own) or (search.incumbent.value is not None and bound >= search.incumbent.value):
            break
        _batch(own, batch)
    if heuristics:
        compare(search)
    search.note("moving boundaries")
    polish(search)
    return search.incumbent.plan


def _batch(search: Search, batch: int) -> None:
    """Plans of one batch: as the bound suggests, then with less workspace and pooled spill until one runs well."""
    largest = max(search.admissible_chunk_tokens(batch, shape) for shape in search.instance.workload.shapes)
    if _try_limit(search, batch, None):
        return
    failed = 1.0
    for share in SHARES[1:]:
        if _over(search):
            return
        ran = _try_limit(search, batch, round(share * largest))
        if ran is None:
            return
        if ran:
            _refine(search, batch, largest, share, failed)
            return
        failed = share


def _refine(search: Search, batch: int, largest: int, ran: float, failed: float) -> None:
    """Larger chunks are faster where they run: halve the interval between what ran and what did not."""
    for _ in range(REFINEMENTS):
        if _over(search):
            return
        middle = (ran + failed) / 2
        if _try_limit(search, batch, round(middle * largest)):
            ran = middle
        else:
            failed = middle


def _try_limit(search: Search, batch: int, largest_chunk_tokens: int | None) -> bool | None:
    """Try the best cuts without a larger chunk: whether they run well; None if there is no use in smaller chunks."""
    found = search.restricted_bound(batch, largest_chunk_tokens)
    if found.bound_s is None or not found.cuts:
        return None  # chunks this small cannot cover the request
    if search.incumbent.value is not None and found.bound_s >= search.incumbent.value:
        return None
    return _try_cuts(search, batch, [found.cuts, *_alternatives(found)])


def _alternatives(found: BatchBound) -> list[Cuts]:
    """Cuts that other relaxations of the same bound preferred; for one request shape, where they can be told apart."""
    if len(found.other_cuts) != 1:
        return []
    shape, lists = next(iter(found.other_cuts.items()))
    return [{shape: cuts} for cuts in lists if cuts and cuts != found.cuts[shape]]


def _try_cuts(search: Search, batch: int, candidates: list[Cuts]) -> bool:
    """Replay cuts without spill, and the best of them with pooled spill where memory slows or stops it.

    True if a plan runs about as fast as the best of these cuts would without memory limits.
    """
    layers, placement = pipeline_layout(search)
    plans = [search.plan(batch, _sizes(search, cuts), layers, placement) for cuts in candidates]
    values = [search.offer(plan) for plan in plans]
    ideal = [unlimited_run(search, plan) for plan in plans]
    order = sorted(range(len(plans)), key=lambda index: _value(ideal[index]))
    unlimited = ideal[order[0]]
    if unlimited is None:
        return any(value is not None for value in values)
    if any(value is not None and value <= unlimited.value * 1.0001 for value in values):
        return True  # memory does not bind: what is lost, is lost to transfers and unequal stages
    layers, placement = paired_layout(search)
    paired = search.plan(batch, _sizes(search, candidates[order[0]]), layers, placement)
    return pooled_plan(search, paired, unlimited) is not None


def _value(unlimited: Unlimited | None) -> float:
    return math.inf if unlimited is None else unlimited.value


def _sizes(search: Search, cuts: Cuts) -> dict[int, tuple[int, ...]]:
    return {shape[0] - shape[1]: search.tables.grid(shape).sizes(ends) for shape, ends in cuts.items()}


def _over(search: Search) -> bool:
    return search.deadline.over or search.closed
