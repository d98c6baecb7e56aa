"""Exact cuts for the best split found: where layers are free, the bound's own cuts are those of a mean stage."""

from __future__ import annotations

from formulations.bounds import TimeBounds
from formulations.tables import StageTables
from solver.exact.layer_moves import layer_moves
from solver.exact.spill_search import cuts_of
from solver.search import Search

MOST_ROUNDS = 3
"""Times that a better split is followed by its own cuts."""
SHARE, MOST_S = 0.15, 10.0
"""Share of the time left, and seconds, for the cuts of one split."""


def split_cuts(search: Search) -> None:
    """Cut as if the best plan's split were fixed, then move its layers again; nothing where the split is fixed anyway.

    Plans with spill are left as they are: their spill belongs to their cuts.
    """
    if search.instance.fixed_layers is not None:
        return
    for _ in range(MOST_ROUNDS):
        plan, value = search.incumbent.plan, search.incumbent.value
        if plan is None or plan.v_shaped or plan.spill or search.closed or search.deadline.over:
            return
        fixed = search.instance.with_pipeline(layers=plan.layers)
        bounds = TimeBounds(fixed, StageTables(fixed), search.chunks, in_time=search.incumbent.affords_s)
        share_s = search.deadline.share(SHARE, MOST_S) if search.deadline.by_clock else None
        for cuts in cuts_of(bounds.batch(plan.batch, share_s)):
            search.offer(search.plan(plan.batch, search.sizes(cuts), plan.layers, plan.placement))
        layer_moves(search)
        if search.incumbent.value == value:
            return
