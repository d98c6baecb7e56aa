"""Local search on a free layer split under the replay: other good splits, then single layers over stage boundaries."""

from __future__ import annotations

from collections.abc import Iterator

from instances.plan import Plan
from solver.exact.splits import free_splits
from solver.search import Search


def layer_moves(search: Search) -> None:
    """Give the best plan other splits while that helps; nothing where the split is fixed.

    Plans with spill are left as they are: their spill belongs to their split.
    """
    if search.instance.fixed_layers is not None:
        return
    for split in free_splits(search):
        plan = search.incumbent.plan
        if plan is None or not _movable(search, plan):
            return
        if split != plan.layers:
            search.offer(plan.model_copy(update={"layers": split}))
    while True:
        plan, before = search.incumbent.plan, search.incumbent.value
        if plan is None or not _movable(search, plan):
            return
        neighbours = list(_moved(search, plan))
        search.incumbent.offer_all(neighbours)
        if search.incumbent.value == before:
            return


def _movable(search: Search, plan: Plan) -> bool:
    return plan.schedule == "chunked" and not plan.spill and not search.closed and not search.deadline.over


def _moved(search: Search, plan: Plan) -> Iterator[Plan]:
    """Plans with one layer more on one stage and one less on another, all boundaries between them shifted."""
    stages, forbidden = len(plan.layers), set(search.instance.pipeline.forbidden_cuts)
    for giver in range(stages):
        for taker in range(stages):
            if giver == taker or plan.layers[giver] < 2:
                continue
            split = [count - (stage == giver) + (stage == taker) for stage, count in enumerate(plan.layers)]
            starts = {sum(split[:stage]) for stage in range(1, stages)}
            if not starts & forbidden:
                yield plan.model_copy(update={"layers": tuple(split)})
