"""The bound that a window on chunks in flight sets: a queue of K places through the pipeline.

Number the chunks of the waves v..w in the order in which they enter. By ``in_flight_window`` chunk n enters only after
chunk n-K has left, so the chunks of one residue modulo K pass through the pipeline one after the other:

    completion(w) >= ready(v) + sum over the chunks of the residue of (sum_s t_s(i) + (N-1) x(i))

for every residue, hence for their average: all transits together, divided by K. Stalls, fetches, waits and contention
only add to a transit. With few places the pipeline is never full, and this exceeds the work of any stage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate

import numpy as np

from formulations.chunks.exact import path_value
from formulations.stage_path import StagePath
from formulations.tables import StageTables, Table, fastest_die
from formulations.wave_counts import Counts
from instances.costs import RooflineSpec
from instances.workload import Shape


def transit(tables: StageTables, size: int, shape: Shape) -> Table:
    """Seconds of each chunk through all stages, transfers included (n+1, n+1); at most those of any layer split."""
    instance = tables.instance
    stages, split, die = instance.pipeline.stages, instance.fixed_layers, fastest_die(instance)
    between = (stages - 1) * tables.transfer(size, shape) if stages > 1 else 0.0
    if split is None:
        # Each stage has the overheads of a chunk, where they are not in the times of the whole model.
        overhead = die.chunk_overhead_s if isinstance(instance.costs, RooflineSpec) else 0.0
        whole = tables.stage(die, 0, instance.model.layer_count, size, shape, head=True)
        return whole + (stages - 1) * overhead + between
    ends = list(accumulate(split))
    total = np.zeros_like(tables.stage(die, 0, ends[0], size, shape, head=stages == 1))
    for stage, (count, end) in enumerate(zip(split, ends, strict=True)):
        total = total + tables.stage(die, end - count, end, size, shape, head=stage == stages - 1)
    return total + between


def window_bound(
    tables: StageTables,
    counts: Mapping[tuple[Shape, int], Counts],
    paths: Mapping[tuple[Shape, int], StagePath],
    most: int,
    fewest: int,
) -> float:
    """Seconds beyond the ready times in a weighted sum of completions; 0 without a window.

    ``counts`` says how often waves of each shape and size lie on the way to the completions that are counted; one list
    of cuts serves all waves of a shape, of ``fewest`` to ``most`` chunks that memory admits.
    """
    places = tables.instance.pipeline.max_in_flight
    if places is None:
        return 0.0
    sums: dict[Shape, Table] = {}
    for (shape, size), count in counts.items():
        admitted = np.isfinite(paths[shape, size].work)
        seconds = np.where(admitted, count.work * transit(tables, size, shape), np.inf)
        sums[shape] = sums[shape] + seconds if shape in sums else seconds
    least = [path_value(table, table, math.inf, most, fewest) for table in sums.values()]
    return sum(math.inf if value is None else value for value in least) / places
