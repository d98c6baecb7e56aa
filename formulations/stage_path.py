"""The path through the stages on which a time bound adds up (see ``bounds``)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from formulations.mean_stage import mean_work
from formulations.tables import StageTables, Table, fastest_die
from instances.costs import RooflineSpec
from instances.gathering import Gathered
from instances.instance import Instance
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


def heaviest_stages(instance: Instance, waves: Gathered) -> tuple[int, int]:
    """First and last of the stages that have the most work over all waves, each run as a single chunk.

    All waves must settle on the same stages: one that works longest on short requests, or on small waves, may be
    another than the one that works longest on the others, and two dies work at the same time. Stages with the same
    kinds of layers have the same work in every wave. (0, 0) for a free layer split.
    """
    split, die, cost = instance.fixed_layers, fastest_die(instance), instance.stage_cost
    if split is None:
        return 0, 0
    parts = _parts(split)
    # Fitted and measured times of the whole model are shared by layers, and may not be known for a whole request.
    work = [float(stop - start) for start, stop in parts]
    if isinstance(instance.costs, RooflineSpec):
        sizes = np.array([size for _, size in waves.kinds])
        tokens, cached = np.array([shape for shape, _ in waves.kinds]).T
        count = np.array(waves.waves_of_kind)
        alike = [(size, np.flatnonzero(sizes == size)) for size in sorted(set(sizes.tolist()))]
        work = [
            sum(
                float(count[some] @ cost.stage_seconds(die, *part, size, (tokens - cached)[some], cached[some]))
                for size, some in alike
            )
            for part in parts
        ]
    first = work.index(max(work))
    kinds = [instance.model.kind_counts(*part) for part in parts]
    return first, max(s for s, same in enumerate(kinds) if same == kinds[first])


def stage_path(
    tables: StageTables, size: int, shape: Shape, largest_chunk_tokens: int, heaviest: tuple[int, int]
) -> StagePath:
    """The path over the ``heaviest`` stages; for a free layer split the average stage, without crossings.

    With a free split the completion is at least the path that stays at stage s, for every s, hence at least their
    average (``mean_stage``; transfers in and out happen on every path).
    """
    instance = tables.instance
    stages, split, die = instance.pipeline.stages, instance.fixed_layers, fastest_die(instance)
    grid = tables.grid(shape)
    chunk = grid.tokens[None, :] - grid.tokens[:, None]
    admitted = (chunk > 0) & (chunk <= largest_chunk_tokens)
    hop = tables.transfer(size, shape)
    if split is None:
        work, unequal = mean_work(tables, size, shape)
        hops = (0.0 if unequal else (stages - 1) / 2) * np.where(np.isfinite(hop), hop, 0.0)
        return StagePath(np.where(admitted, work, np.inf), np.zeros_like(work), hops, None, hops[:, -1])
    parts = _parts(split)
    plain = [tables.stage(die, *part, size, shape, head=False) for part in parts]
    first, last = heaviest
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


def _parts(split: tuple[int, ...]) -> list[tuple[int, int]]:
    """First layer of each stage, and the one behind its last."""
    return [(stop - count, stop) for stop, count in zip(accumulate(split), split, strict=True)]
