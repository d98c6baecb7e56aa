"""The exact method: bounds first, the relaxation's cuts as plans, heuristics, pooled spill where memory binds."""

from __future__ import annotations

import math

from instances.plan import Plan
from solver.exact.compare import compare
from solver.exact.host_spill import host_spill
from solver.exact.polish import polish
from solver.exact.pool import unlimited_run
from solver.exact.spill_search import cuts_of, enough, spill_search
from solver.policies.layout import pipeline_layout
from solver.policies.uniform import uniform_plans
from solver.search import Search

OWN_SHARE = 0.6
"""Share of the time for the search itself where the heuristics run too."""


def exact(search: Search) -> Plan | None:
    """Find a plan and narrow its gap to the bound, until the gap is closed or time is up.

    0. Where replays take long, look for a first plan among those with few waves and chunks.
    1. For each batch, best bound first, replay the cuts that minimise the bound's relaxation.
    2. Where those do not run or wait for memory: late chunks at the host, where there is one; then cuts with a smaller
       largest chunk, with spill from a linear program over all creditors.
    3. Run the heuristics, and take over the best plan if it is better.
    4. Move single boundaries under the replay.
    """
    if not search.evaluator.always_quick:
        search.note("plans that are replayed soonest")
        for plan in uniform_plans(search, largest_batch_first=True):
            if search.offer(plan) is not None or search.deadline.over:
                break
    heuristics = search.knobs["compare"] == "yes"
    search.note("cuts from the bound")
    batches = [batch for batch, found in search.bounds.items() if found.bound_s is not None]
    batches.sort(key=lambda batch: (search.bounds[batch].bound_s, batch))
    soft = search.deadline.part(OWN_SHARE, math.inf) if heuristics else search.deadline
    for batch in batches:
        bound = search.bounds[batch].bound_s
        assert bound is not None
        if enough(search, soft) or (search.incumbent.value is not None and bound >= search.incumbent.value):
            break
        if not _as_the_bound_suggests(search, batch):
            host_spill(search, batch)
            spill_search(search, batch, soft)
    if heuristics:
        compare(search)
    search.note("moving boundaries")
    polish(search)
    return search.incumbent.plan


def _as_the_bound_suggests(search: Search, batch: int) -> bool:
    """Replay the cuts of the bound without spill; True if memory does not slow the best of them down."""
    candidates = cuts_of(search.restricted_bound(batch))
    layers, placement = pipeline_layout(search)
    plans = [search.plan(batch, search.sizes(cuts), layers, placement) for cuts in candidates]
    if not any(search.incumbent.affords(plan) for plan in plans):
        return True  # nothing that can be replayed in time; with spill it would take longer
    values = [search.offer(plan) for plan in plans]
    ran = [value for value in values if value is not None]
    ideal = [found.value for plan in plans if (found := unlimited_run(search, plan)) is not None]
    if not ideal:
        return bool(ran)  # several request shapes, for which there is no pooled spill
    # What is lost beside that, is lost to transfers and unequal stages.
    return bool(ran) and min(ran) <= min(ideal) * 1.0001
