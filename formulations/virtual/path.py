"""The path over one die of a V on which a time bound adds up (see ``bound``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from formulations.tables import StageTables, Table, fastest_die
from formulations.virtual.split import fixed_parts, ranges
from instances.costs import RooflineSpec
from instances.gathering import Gathered
from instances.instance import Instance
from instances.workload import Shape


@dataclass(frozen=True)
class FoldPath:
    """Seconds of the parts of a path over a die, for waves of one shape and size. All of shape (n+1, n+1).

    Attributes
    ----------
    work
        Of each chunk on both parts of the die; +inf where memory admits no such chunk.
    entry, lead
        Of each chunk through the parts before the die's first one, transfers included, and by how much its work exceeds
        its time on part 0.
    exit, trail
        Of each chunk through the parts behind the die's second one, and by how much its work exceeds its time on part
        2N-1.
    """

    work: Table
    entry: Table
    lead: Table
    exit: Table
    trail: Table


WaveKind = tuple[Shape, int]
"""(request shape, number of requests) of a wave."""
Build = Callable[[int, Shape, int], FoldPath]
"""The path for waves of so many requests of a shape, with chunks of at most so many tokens."""


def fold_paths(tables: StageTables, waves: Gathered) -> list[Build]:
    """Paths that may give the best bound.

    With fixed parts: those over the dies with more work than any nearer to the fold (of two with equal work, the one
    nearer to the fold has the longer ways in and out). With a free split: the mean over all dies, and the path of one
    chunk through all parts.
    """
    instance = tables.instance
    split = fixed_parts(instance)
    if split is None:
        return [partial(_average, tables), partial(_passing, tables)]
    parts, stages = ranges(split), instance.pipeline.stages
    measured: dict[tuple[tuple[str, int], ...], float] = {}
    of_part = []
    for part in parts:
        kinds = tuple(sorted(instance.model.kind_counts(*part).items()))
        if kinds not in measured:
            measured[kinds] = _measure(instance, waves, part)
        of_part.append(measured[kinds])
    paths: list[Build] = []
    most = -1.0
    for die in reversed(range(stages)):
        work = of_part[die] + of_part[2 * stages - 1 - die]
        if work > most * (1 + 1e-9):
            paths.append(partial(_on_die, tables, parts, die))
            most = work
    return paths


def _measure(instance: Instance, waves: Gathered, part: tuple[int, int]) -> float:
    """Work of a part over all waves, each run as a single chunk; times that are shared by layers go by their number."""
    if not isinstance(instance.costs, RooflineSpec):
        return float(part[1] - part[0])
    cost, die = instance.stage_cost, fastest_die(instance)
    return sum(
        count * float(cost.stage_seconds(die, *part, size, shape[0] - shape[1], shape[1]))
        for (shape, size), count in zip(waves.kinds, waves.waves_of_kind, strict=True)
    )


def _on_die(
    tables: StageTables, parts: list[tuple[int, int]], die: int, size: int, shape: Shape, limit: int
) -> FoldPath:
    """The path over a die."""
    fastest, back = fastest_die(tables.instance), len(parts) - 1 - die
    hop, known = _hops(tables, size, shape, limit)

    def seconds(part: int) -> Table:
        return tables.stage(fastest, *parts[part], size, shape, head=part == len(parts) - 1)

    entry, way_out = np.zeros_like(hop), np.zeros_like(hop)
    for part in range(die):
        entry += seconds(part) + hop
    for part in range(back + 1, len(parts)):
        way_out += seconds(part) + hop
    return _path(known, seconds(die) + seconds(back), entry, seconds(0), way_out, seconds(len(parts) - 1))


def _average(tables: StageTables, size: int, shape: Shape, limit: int) -> FoldPath:
    """Less than the mean over all dies of any split: all work is on some die, every part has a layer at least."""
    stages = tables.instance.pipeline.stages
    hop, known = _hops(tables, size, shape, limit)
    work, least = _shared(tables, size, shape)
    way = (stages - 1) / 2 * (least + hop)
    return _path(known, work / stages, way, least, way, least)


def _passing(tables: StageTables, size: int, shape: Shape, limit: int) -> FoldPath:
    """The path of one chunk through all parts: every other chunk counts with the least part."""
    hop, known = _hops(tables, size, shape, limit)
    work, least = _shared(tables, size, shape)
    nothing = np.zeros_like(hop)
    through = work + 2 * (tables.instance.pipeline.stages - 1) * hop - least
    return _path(known, least, nothing, least, through, least)


def transit(tables: StageTables, size: int, shape: Shape, limit: int) -> Table:
    """Seconds of each chunk through all 2N parts, transfers included; at most those of any split where it is free."""
    split, stages = fixed_parts(tables.instance), tables.instance.pipeline.stages
    hop, known = _hops(tables, size, shape, limit)
    if split is None:
        seconds = _shared(tables, size, shape)[0]
    else:
        die = fastest_die(tables.instance)
        parts = [
            tables.stage(die, *part, size, shape, head=number == 2 * stages - 1)
            for number, part in enumerate(ranges(split))
        ]
        seconds = np.sum(parts, axis=0)
    return np.where(known, seconds + 2 * (stages - 1) * hop, np.inf)


def _shared(tables: StageTables, size: int, shape: Shape) -> tuple[Table, Table]:
    """Seconds of each chunk on all 2N parts together, however they are split, and on the least that one may be."""
    instance, fastest = tables.instance, fastest_die(tables.instance)
    kinds = instance.model.layer_kinds
    # Fitted and measured costs have the overheads in them, and share them like the rest.
    overhead = fastest.chunk_overhead_s if isinstance(instance.costs, RooflineSpec) else 0.0
    whole = tables.stage(fastest, 0, len(kinds), size, shape, head=True)
    work = whole + (2 * instance.pipeline.stages - 1) * overhead
    least = np.full_like(whole, np.inf)
    for layer in {kind: number for number, kind in enumerate(kinds)}.values():
        least = np.minimum(least, tables.stage(fastest, layer, layer + 1, size, shape, head=False))
    return work, np.where(np.isfinite(least), least, 0.0)


def _hops(tables: StageTables, size: int, shape: Shape, limit: int) -> tuple[Table, npt.NDArray[np.bool_]]:
    """Seconds to hand each chunk on, 0 where there is none, and which chunks memory admits."""
    grid = tables.grid(shape)
    chunk = grid.tokens[None, :] - grid.tokens[:, None]
    return np.where(chunk > 0, tables.transfer(size, shape), 0.0), (chunk > 0) & (chunk <= limit)


def _path(
    known: npt.NDArray[np.bool_], work: Table, entry: Table, first: Table, way_out: Table, last: Table
) -> FoldPath:
    """Ways and work of a path, with the times on part 0 and on part 2N-1.

    Chunks outside a measured table have no time, and no plan; what is no chunk counts nothing.
    """
    usable = known & np.isfinite(work)
    on_die, entry, first, way_out, last = (np.where(usable, part, 0.0) for part in (work, entry, first, way_out, last))
    return FoldPath(np.where(usable, work, np.inf), entry, on_die - first, way_out, on_die - last)
