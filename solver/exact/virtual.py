"""The search among V-shaped plans: cuts of the relaxations, cuts whose times rise and fall, then local moves.

A chunk passes the dies before the fold one after the other, and so does the last one on its way back; so the first and
the last chunks of a wave should be small. In between, die r works on chunks k+d and k-d while the fold die works twice
on chunk k: times that grow evenly keep all dies busy. With several waves in a row the last chunks of one meet the first
of the next, and equal times are best but for the ends. Plans have no spill.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formulations.scope import V_SHAPED
from formulations.tables import Table, fastest_die
from formulations.virtual.ramps import ramped_cuts
from formulations.virtual.split import ranges, virtual_reason
from instances.plan import Plan
from instances.workload import Shape
from solver.exact.spill_search import cuts_of
from solver.limits import Deadline
from solver.policies.vpp import folded_placement, folded_splits
from solver.search import Search

Cuts = dict[Shape, list[int]]
Split = tuple[int, ...]

RAMPS = (0, 1, 2, 3, 5, 8, 13, 21)
"""Numbers of chunks over which times rise from the first one, and fall to the last one."""
AT_ONCE = 32
"""Neighbours replayed in one call."""
PATIENCE = 6
"""Calls in a row without an improvement before local moves end, beside one for each boundary."""
FINALISTS = 2
"""Families of plans whose best one is improved by local moves."""


@dataclass
class Family:
    """Plans of one batch and split, and the best of them so far."""

    search: Search
    batch: int
    split: Split
    deadline: Deadline
    best: Plan | None = None
    value: float = np.inf

    def offer(self, cuts: Cuts) -> float:
        """Replay cuts in the packed schedule; inf if they do not run, or without time."""
        placement = folded_placement(self.search)
        plan = self.search.plan(self.batch, self.search.sizes(cuts), self.split, placement, schedule="vpp-packed")
        if self.over or not self.search.incumbent.affords(plan):
            return np.inf
        value = self.search.offer(plan)
        self.keep(plan, value)
        return np.inf if value is None else value

    def keep(self, plan: Plan, value: float | None) -> None:
        """Remember a plan if it is the best of the family."""
        if value is not None and value < self.value:
            self.best, self.value = plan, value

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do, or no time."""
        return self.search.closed or self.deadline.over


def search_folded(search: Search, deadline: Deadline) -> None:
    """Offer V-shaped plans, batch by batch, those with the best bound first; improve the best ones by local moves."""
    if virtual_reason(search.instance) is not None:
        return
    bounds = {batch: found.bound_s for batch, found in search.folded.items() if found.bound_s is not None}
    families: list[Family] = []
    for number, batch in enumerate(sorted(bounds, key=lambda batch: (bounds[batch], batch))):
        if deadline.over or search.closed:
            break
        if search.incumbent.value is None or bounds[batch] < search.incumbent.value:
            part = deadline.part(1.0 / (2 + len(bounds) - number), np.inf)
            families += [_constructed(search, batch, split, part) for split in folded_splits(search)]
    running = sorted((family for family in families if family.best is not None), key=lambda family: family.value)
    for family in running[:FINALISTS]:
        family.deadline = deadline
        _improve(family, np.random.default_rng(search.seed))


def _constructed(search: Search, batch: int, split: Split, deadline: Deadline) -> Family:
    """The best plan of a batch and split from cuts of relaxations, and from times that rise and fall."""
    family = Family(search, batch, split, deadline)
    for found in (search.bounds.get(batch), search.folded[batch]):
        for cuts in [] if found is None else cuts_of(found):
            family.offer(cuts)
    _equal_sizes(family)
    _shape_times(family)
    if family.best is not None:
        # The others differ from the packed order where waves meet, and where transfers are slow.
        for schedule in V_SHAPED[:2]:
            plan = family.best.model_copy(update={"schedule": schedule})
            family.keep(plan, None if family.over else search.offer(plan))
    return family


def _equal_sizes(family: Family) -> None:
    """Chunks of equal size: times grow evenly where attention decides."""
    search = family.search
    grids = {shape: search.tables.grid(shape) for shape in search.instance.workload.shapes}
    for count in sorted({count for shape in grids for count in search.chunk_counts(shape)}):
        sizes = {shape: search.equal_sizes(shape, count) for shape in grids}
        family.offer({shape: grid.positions(sizes[shape]) for shape, grid in grids.items()})


def _shape_times(family: Family) -> None:
    """Choose the number of chunks and both ramps, one after the other, and the number once more."""
    search = family.search
    tables: dict[Shape, Table] = {}
    for shape in search.instance.workload.shapes:
        if not search.may_tabulate(shape):
            return
        tables[shape] = _fold_seconds(search, family.batch, shape, family.split)
    counts = sorted({count for shape in tables for count in search.chunk_counts(shape)})
    found: dict[tuple[int, int, int], float] = {}

    def value(choice: tuple[int, int, int]) -> float:
        if choice not in found:
            cuts = {shape: _ramped(search, table, *choice) for shape, table in tables.items()}
            known = {shape: ends for shape, ends in cuts.items() if ends is not None}
            found[choice] = family.offer(known) if len(known) == len(cuts) else np.inf
        return found[choice]

    best = min(((count, 0, 0) for count in counts), key=value)
    best = min(((best[0], rise, best[2]) for rise in RAMPS), key=value)
    best = min(((best[0], best[1], fall) for fall in RAMPS), key=value)
    best = min(((count, best[1], best[2]) for count in counts), key=value)
    min(((best[0], best[1], fall) for fall in RAMPS), key=value)


def _ramped(search: Search, table: Table, count: int, rise: int, fall: int) -> list[int] | None:
    """Cuts of so many chunks; of a short request, of as many as it has quanta."""
    wanted = min(count, len(table) - 1)
    cuts = ramped_cuts(table, wanted, min(rise, wanted - 1), min(fall, max(0, wanted - 1 - rise)))
    exact = search.chunks is None or (cuts is not None and len(cuts) == search.chunks)
    return cuts if exact else None


def _fold_seconds(search: Search, batch: int, shape: Shape, split: Split) -> Table:
    """Seconds of every chunk on both parts of the fold die."""
    die, parts = fastest_die(search.instance), ranges(split)
    size = min(batch, search.instance.workload.requests_of_shape[shape])
    fold = parts[search.stages - 1 : search.stages + 1]
    tables = [search.tables.stage(die, *part, size, shape, head=False) for part in fold]
    seconds: Table = np.sum(tables, axis=0)
    return seconds


def _improve(family: Family, rng: np.random.Generator) -> None:
    """Move boundaries, and layers where they are free, while that helps."""
    search, idle = family.search, 0
    while family.best is not None and not family.over:
        plan = family.best
        boundaries = sum(len(sizes) - 1 for sizes in plan.chunks.values())
        if idle > PATIENCE + boundaries:
            return
        neighbours = [moved for _ in range(AT_ONCE) if (moved := _neighbour(search, plan, rng)) is not None]
        if not neighbours or not search.incumbent.affords(plan, AT_ONCE):
            return
        before = family.value
        for neighbour, value in zip(neighbours, search.incumbent.offer_all(neighbours), strict=True):
            family.keep(neighbour, value)
        idle = 0 if family.value < before else idle + 1


def _neighbour(search: Search, plan: Plan, rng: np.random.Generator) -> Plan | None:
    """A plan with one change: boundaries moved together, dropped or added, or a layer moved to a neighbouring part."""
    if search.instance.fixed_layers is None and rng.random() < 0.2:
        return _layer_moved(search, plan, rng)
    keys = list(plan.chunks)
    key = keys[int(rng.integers(len(keys)))]
    shape = next(shape for shape in search.instance.workload.shapes if str(shape[0] - shape[1]) == key)
    grid = search.tables.grid(shape)
    ends = _moved(np.array(grid.positions(plan.chunks[key])), search.chunks is not None, rng)
    if ends is None or not len(ends) <= min(grid.quanta, search.instance.pipeline.max_chunks):
        return None
    return plan.model_copy(update={"chunks": {**plan.chunks, key: grid.sizes(ends)}})


def _moved(ends: npt.NDArray[np.int64], fixed_number: bool, rng: np.random.Generator) -> list[int] | None:
    """Ends of chunks with some inner ones moved by a few quanta together, or one dropped or added; None if none can."""
    inner, quanta = len(ends) - 1, int(ends[-1])
    kind = rng.random()
    if kind < 0.1 and not fixed_number:
        changed = np.union1d(ends, [int(rng.integers(1, quanta + 1))])
    elif inner == 0:
        return None
    elif kind < 0.2 and not fixed_number:
        changed = np.delete(ends, int(rng.integers(inner)))
    else:
        first = int(rng.integers(inner))
        last = min(inner, first + int(rng.geometric(0.3)))
        changed = ends.copy()
        changed[first:last] += int(rng.geometric(0.5)) * (1 if rng.random() < 0.5 else -1)
    ordered = bool((np.diff(changed, prepend=0) > 0).all()) and len(changed) and changed[-1] == quanta
    return changed.tolist() if ordered else None


def _layer_moved(search: Search, plan: Plan, rng: np.random.Generator) -> Plan | None:
    """A layer handed to the next or the previous part, where the cuts allow it."""
    split = list(plan.layers)
    part, step = int(rng.integers(len(split) - 1)), 1 if rng.random() < 0.5 else -1
    split[part] += step
    split[part + 1] -= step
    cut = sum(split[: part + 1])
    if min(split) < 1 or cut in search.instance.pipeline.forbidden_cuts:
        return None
    return plan.model_copy(update={"layers": tuple(split)})
