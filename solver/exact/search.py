"""The exact method: bounds first, the relaxation's cuts as plans, heuristics, pooled spill where memory binds."""

from __future__ import annotations

import math
from dataclasses import replace

from formulations.interface import relative_gap
from instances.plan import Plan
from solver.exact.compare import compare
from solver.exact.host_spill import host_spill
from solver.exact.joint import joint
from solver.exact.layer_moves import layer_moves
from solver.exact.polish import polish
from solver.exact.pool import unlimited_run
from solver.exact.spill_search import cuts_of, enough, spill_search
from solver.exact.split_cuts import split_cuts
from solver.exact.virtual import search_folded
from solver.policies.layout import pipeline_layout
from solver.policies.uniform import uniform_plans
from solver.search import Search

OWN_SHARE = 0.6
"""Share of the time for the search itself where the heuristics run too."""
V_SHARE = 0.5
"""Share of that for plain plans, and of the rest for V-shaped ones, where both are in scope."""
MOVES_SHARE = 0.15
"""Share of the time left for other layer splits before the heuristics, whose plans may be better ones to start from."""
SPLIT_SHARE = 0.4
"""Share of the time left after the heuristics for the cuts of the best layer split."""
POLISH_SHARE = 0.3
"""Share of the time left for moving boundaries of plain plans before V-shaped ones are looked at."""


def exact(search: Search) -> Plan | None:
    """Find a plan and narrow its gap to the bound, until the gap is closed or time is up.

    0. Where replays take long, look for a first plan among those with few waves and chunks.
    1. For each batch, best bound first, replay the cuts that minimise the bound's relaxation.
    2. Where those do not run or wait for memory: late chunks at the host, where there is one; then cuts with a smaller
       largest chunk, with spill from a linear program over all creditors. Where the layer split is free, other
       splits, and the cuts of the best. Where there are few plans, all of them, and the joint model.
    3. Where V-shaped schedules are in scope: plans of these (``virtual``).
    4. Run the heuristics, and take over the best plan if it is better.
    5. Cut exactly for the best of free splits. Move single boundaries, and layers of a free split, under the replay.
    """
    if not search.evaluator.always_quick and search.structural is None:
        search.note("plans that are replayed soonest")
        for plan in uniform_plans(search, largest_batch_first=True):
            if search.offer(plan) is not None or search.deadline.over:
                break
    heuristics = search.knobs["compare"] != "no"
    search.note("cuts from the bound")
    batches = batches_in_turn(search)
    soft = search.deadline.part(OWN_SHARE, math.inf) if heuristics else search.deadline
    if search.v_shaped and search.plain:
        soft = soft.part(V_SHARE, math.inf)
    for batch in batches:
        bound = search.bounds[batch].bound_s
        assert bound is not None
        if enough(search, soft) or (search.incumbent.value is not None and bound >= search.incumbent.value):
            break
        if not as_the_bound_suggests(search, batch):
            host_spill(search, batch)
            spill_search(search, batch, soft)
    layer_moves(replace(search, deadline=search.deadline.part(MOVES_SHARE, math.inf)))
    joint(search)
    if search.v_shaped and not search.closed:
        if not _plain_is_settled(search):
            # A V that is better than a plain plan before its polish may be worse than it afterwards.
            polish(replace(search, deadline=search.deadline.part(POLISH_SHARE, math.inf)))
        search.note("V-shaped schedules")
        search_folded(search, search.deadline.part(V_SHARE, math.inf))
    if heuristics:
        compare(search)
    split_cuts(replace(search, deadline=search.deadline.part(SPLIT_SHARE, math.inf)))
    search.note("moving boundaries")
    polish(search)
    layer_moves(search)
    return search.incumbent.plan


def batches_in_turn(search: Search) -> list[int]:
    """Batches that may have a plain plan, best bound first."""
    bounded = [(found.bound_s, batch) for batch, found in search.bounds.items() if found.bound_s is not None]
    return [batch for _, batch in sorted(bounded)]


def _plain_is_settled(search: Search) -> bool:
    """Whether no plain plan can be better than the best one by more than the gap asked for, or there is none yet."""
    bounds = [found.bound_s for found in search.bounds.values() if found.bound_s is not None]
    gap = relative_gap(search.incumbent.value, min(bounds, default=None))
    return gap is None or gap <= search.limits.gap


def as_the_bound_suggests(search: Search, batch: int) -> bool:
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
