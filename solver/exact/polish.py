"""Local search on chunk boundaries under the replay."""

from __future__ import annotations

import numpy as np

from instances.plan import Plan
from solver.search import Search

AT_ONCE = 32
"""Neighbours replayed in one call."""
PATIENCE = 3
"""Rounds without an improvement, in multiples of the number of pairs of neighbouring chunks, before the search ends."""


def polish(search: Search) -> None:
    """Move quanta from one chunk to another, which shifts all boundaries between them, while that helps.

    Neighbours are drawn at random, near pairs and small steps more often. Plans with spill are left as they are: their
    spill belongs to their cuts.
    """
    rng = np.random.default_rng(search.seed)
    idle = 0
    while True:
        plan = search.incumbent.plan
        if plan is None or plan.spill or search.closed:
            return
        pairs = sum(len(sizes) - 1 for sizes in plan.chunks.values())
        if idle > PATIENCE * pairs * np.sqrt(max(pairs, 1)):
            return
        neighbours = [moved for _ in range(AT_ONCE) if (moved := _moved(search, plan, rng)) is not None]
        if not neighbours or search.deadline.over:
            return
        before = search.incumbent.value
        search.incumbent.offer_all(neighbours)
        idle = 0 if search.incumbent.value != before else idle + AT_ONCE


def _moved(search: Search, plan: Plan, rng: np.random.Generator) -> Plan | None:
    """The plan with some quanta moved between two chunks of one list, or one boundary dropped or added."""
    keys = list(plan.chunks)
    key = keys[int(rng.integers(len(keys)))]
    sizes = list(plan.chunks[key])
    quantum = search.instance.pipeline.chunk_quantum
    if len(sizes) < 2:
        return None
    source = int(rng.integers(len(sizes)))
    distance = int(rng.geometric(0.2)) * (1 if rng.random() < 0.5 else -1)
    target = min(len(sizes) - 1, max(0, source + distance))
    amount = quantum * min(int(rng.geometric(0.6)), max(1, sizes[source] // quantum))
    if target == source or sizes[source] < amount:
        return None
    sizes[source] -= amount
    sizes[target] += amount
    kept = tuple(size for size in sizes if size)
    if search.chunks is not None and len(kept) != len(sizes):
        return None
    # A short last chunk may not be moved forward: only the last chunk may be off the grid.
    if any(size % quantum for size in kept[:-1]):
        return None
    return plan.model_copy(update={"chunks": {**plan.chunks, key: kept}})
