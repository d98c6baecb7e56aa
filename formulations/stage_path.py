"""The path through the stages on which a time bound adds up (see ``bounds``)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from formulations.tables import StageTables, Table, fastest_die
from instances.workload import Shape


@dataclass(frozen=True)
class StagePath:
    """Seconds of the parts of a path, for waves of one shape and size.

    Attributes
    ----------
    work
        Of each chunk on the stages with the most work (n+1, n+1); +inf where memory admits no such chunk.
    crossing
        Of each chunk from the first to the last of these stages, transfers included (n+1, n+1).
    entry
        Of each chunk through the stages before the first of them, transfers included (n+1, n+1).
    lead
        By how much the work of each chunk exceeds its work on stage 0 (n+1, n+1); None with a free layer split, where
        the entering chunk has to be the first one.
    way_out
        Of the last chunk, starting at p, behind the last of them (n+1,).
    """

    work: Table
    crossing: Table
    entry: Table
    lead: Table | None
    way_out: npt.NDArray[np.float64]


def stage_path(tables: StageTables, size: int, shape: Shape, largest_chunk_tokens: int) -> StagePath:
    """The path over the stages with the most work; for a free layer split the average stage, without crossings.

    With a free split the completion is at least the path that stays at stage s, for every s, hence at least their
    average: the whole model's time shared equally (transfers in and out happen on every path).
    """
    instance = tables.instance
    stages, split, die = instance.pipeline.stages, instance.fixed_layers, fastest_die(instance)
    layers = instance.model.layer_count
    grid = tables.grid(shape)
    chunk = grid.tokens[None, :] - grid.tokens[:, None]
    admitted = (chunk > 0) & (chunk <= largest_chunk_tokens)
    hop = tables.transfer(size, shape)
    if split is None:
        whole = tables.stage(die, 0, layers, size, shape, head=True)
        work = (whole - die.chunk_overhead_s) / stages + die.chunk_overhead_s
        hops_out = np.where(np.isfinite(hop[:, -1]), (stages - 1) * hop[:, -1] / 2, 0.0)
        none = np.zeros_like(work)
        return StagePath(np.where(admitted, work, np.inf), none, (stages - 1) * hop / 2, None, hops_out)
    stops = list(accumulate(split))
    parts = [(stop - count, stop) for stop, count in zip(stops, split, strict=True)]
    plain = [tables.stage(die, *part, size, shape, head=False) for part in parts]
    heaviest = max(float(table[0, -1]) for table in plain)
    first = next(s for s, table in enumerate(plain) if table[0, -1] == heaviest)
    last = max(s for s, table in enumerate(plain) if table is plain[first])
    work = plain[first].copy()
    final = tables.stage(die, *parts[-1], size, shape, head=True)
    if last == stages - 1:
        work[:-1, -1] = final[:-1, -1]
    crossing = np.zeros_like(work)
    for s in range(first, last):
        crossing += plain[s] + hop
    entry, way_out = np.zeros_like(work), np.zeros(grid.quanta + 1)
    for s in range(first):
        entry += plain[s] + hop
    for s in range(last + 1, stages):
        way_out += hop[:, -1] + (final if s == stages - 1 else plain[s])[:, -1]
    forward = np.isfinite(work)
    lead = np.where(forward, np.where(forward, work, 0.0) - np.where(forward, plain[0], 0.0), 0.0)
    way_out = np.where(np.isfinite(way_out), way_out, 0.0)
    return StagePath(np.where(admitted, work, np.inf), crossing, entry, lead, way_out)
