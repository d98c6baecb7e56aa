"""Local search on chunk boundaries under the replay."""

from __future__ import annotations

from itertools import product

from instances.plan import Plan
from solver.search import Search

STEPS_QUANTA = (8, 4, 2, 1)


def polish(search: Search) -> None:
    """Move one boundary at a time by a few quanta while that helps, coarse steps first.

    Plans with spill are left as they are: their spill belongs to their cuts.
    """
    for step in STEPS_QUANTA:
        improved = True
        while improved:
            improved = False
            plan = search.incumbent.plan
            if plan is None or plan.spill:
                return
            for key, direction in product(plan.chunks, (-1, 1)):
                for boundary in range(len(plan.chunks[key]) - 1):
                    if search.deadline.over or search.closed:
                        return
                    moved = _moved(search, plan, key, boundary, direction * step)
                    if moved is not None:
                        before = search.incumbent.value
                        value = search.offer(moved)
                        if value is not None and before is not None and value < before:
                            plan, improved = moved, True


def _moved(search: Search, plan: Plan, key: str, boundary: int, quanta: int) -> Plan | None:
    """The plan with one boundary moved by so many quanta, None if a chunk would vanish."""
    sizes = list(plan.chunks[key])
    change = quanta * search.instance.pipeline.chunk_quantum
    sizes[boundary] += change
    sizes[boundary + 1] -= change
    if sizes[boundary] < 1 or sizes[boundary + 1] < 1:
        return None
    return plan.model_copy(update={"chunks": {**plan.chunks, key: tuple(sizes)}})
