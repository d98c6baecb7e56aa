"""A first plan where there is a host: each stage keeps the chunks that fit, and sends the later ones to host memory.

A die holds one wave at a time, so what a stage cannot hold at its last chunk has to be elsewhere by then. The latest
chunks are fetched by the fewest others, so they go. How much of its free memory a stage may fill before its chunks
leave is found by bisection under the replay: its own chunk in work, writes under way and the next wave need room too.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from instances.plan import Plan, SpillRow
from instances.workload import Shape
from solver.policies.layout import paired_layout
from solver.search import Search

HALVINGS = 6
"""Steps of the bisection: shares of the free memory to 1.6 %."""
SHARES = (1.0, 0.64, 0.41, 0.26, 0.17, 0.11)
"""Largest chunks tried, as shares of the largest that memory admits: its workspace takes the room of KV."""
COUNTS = (1.0, 0.5, 0.25, 0.125)
"""Numbers of equal chunks tried, as shares of max_chunks."""


def host_spill(search: Search, batch: int) -> bool:
    """Offer plans of a batch that spill to the host alone; whether one runs. Nothing without a host."""
    if search.instance.hardware.host is None:
        return False
    layers, placement = paired_layout(search)
    ran = False
    for share in SHARES:
        if search.deadline.over or search.closed:
            return ran
        shapes = search.instance.workload.shapes
        tokens = round(share * max(search.admissible_chunk_tokens(batch, shape) for shape in shapes))
        found = search.restricted_bound(batch, largest_chunk_tokens=tokens, thorough=False)
        if found.bound_s is None or not found.cuts:
            break  # chunks this small do not cover the requests, or time is up
        ran = bisected(search, search.plan(batch, search.sizes(found.cuts), layers, placement)) or ran
    most = search.chunks or search.instance.pipeline.max_chunks
    counts = [most] if search.chunks else sorted({max(1, round(share * most)) for share in COUNTS}, reverse=True)
    for count in () if ran else counts:
        if search.deadline.over:
            break
        ran = bisected(search, search.plan(batch, search.equal_lists(count), layers, placement)) or ran
    return ran


def bisected(search: Search, plan: Plan) -> bool:
    """Whether a plan runs with all it may spill at the host; then keeps as much at home as runs."""
    if search.offer(_spilled(search, plan, 0.0)) is None:
        return False  # what is left at home does not fit, or the host is full
    runs, fails = 0.0, 1.0
    for _ in range(HALVINGS):
        if search.closed or search.deadline.over:
            break
        share = (runs + fails) / 2
        if search.offer(_spilled(search, plan, share)) is None:
            fails = share
        else:
            runs = share
    return True


def _spilled(search: Search, plan: Plan, share: float) -> Plan:
    """The plan with the chunks at the host that come after a share of the stage's free memory is full."""
    shapes = search.instance.workload.shapes
    bare = search.evaluator.lowering.program(plan)
    home = bare.die_of_stage()
    free_bytes = (bare.capacity_units - bare.static_units) / bare.units_per_byte
    # In a V two stages share a die: each may fill the part of the memory that it has of the die's layers.
    layers = np.array(plan.layers)
    part = layers / np.bincount(home, weights=layers)[home]
    kept_bytes = (share * free_bytes[home] * part).tolist()
    rows = [
        row
        for shape in shapes
        for stage, (stop, count) in enumerate(zip(accumulate(plan.layers), plan.layers, strict=True))
        for row in _rows(search, plan, shape, stage, (stop - count, stop), kept_bytes[stage])
    ]
    return plan.model_copy(update={"spill": tuple(rows)})


def _rows(
    search: Search, plan: Plan, shape: Shape, stage: int, part: tuple[int, int], kept_bytes: float
) -> list[SpillRow]:
    cost, size = search.instance.stage_cost, min(plan.batch, len(search.evaluator.requests))
    if not cost.spillable_bytes_per_token(*part):
        return []
    sizes = np.array(plan.chunk_sizes(shape[0] - shape[1]))
    held_bytes = cost.kv_held_bytes(*part, size, shape[1] + np.cumsum(sizes), sizes)
    named = shape if len(search.instance.workload.shapes) > 1 else None
    return [
        SpillRow(stage=stage, chunk=chunk, creditor="host", tokens=tokens, shape=named)
        for chunk, tokens in enumerate(sizes[:-1].tolist())
        if held_bytes[chunk] > kept_bytes
    ]
