"""What the two models of a V share: one schedule, batch and number of chunks, with times in whole ticks, and names.

``chunk[s,i,p,e]``: chunk i of the s-th request shape covers quanta p..e-1. ``part[j,a,b]``: part j has the layers
a..b-1. ``seconds[k,j,i]``: ticks of chunk i on part j in waves of the k-th kind. ``start[w,j,i]``: when it starts in
wave w. Dies and links are the fastest there are, neighbours are one hop apart, memory is only asked for the largest
chunk that it admits: a relaxation of the replay, exact where no plan waits for memory or for a link.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from formulations.scope import V_SHAPED
from formulations.tables import StageTables, fastest_die
from formulations.virtual.memory import VirtualMemory
from formulations.virtual.split import fixed_parts, ranges
from instances.instance import Instance
from instances.plan import Schedule

Arc = tuple[int, int]
Part = tuple[int, int]
Task = tuple[int, int, int]
"""Wave, part, chunk."""
At = tuple[int, int, int]
"""Kind of wave, part, chunk."""

HORIZON_TICKS = 1 << 16
"""All work of all dies, one after the other, unless a tick is given: coarse enough for the tolerances of a MILP."""


@dataclass(frozen=True)
class Cell:
    """What a model does not decide: the schedule, the batch, and the number of chunks of each request shape."""

    schedule: Schedule
    batch: int
    counts: tuple[int, ...]


@dataclass(frozen=True)
class VirtualProblem:
    """One cell of an instance, in ticks.

    Attributes
    ----------
    dies
        N.
    quanta
        Of each request shape.
    arcs
        Chunks that are admitted for each (shape, number of the chunk).
    parts
        Layer ranges that each part may have.
    kinds
        Index of the shape for each kind of wave.
    wave_kind, ready
        Kind of each wave, and when it may start, rounded down.
    ticks
        Time of (kind, part with the head or without, layers) for each chunk, rounded down.
    hop
        Time to hand each chunk on, for each kind, rounded down.
    late
        Latencies that may exceed the objective (p95: those above its rank).
    arrivals
        Wave and arrival of each request, the arrival rounded up.
    window
        Chunks that may be inside at once.
    mean_arrival_s, requests
        What turns the sum of completions into the mean latency.
    """

    cell: Cell
    objective: str
    dies: int
    layers: int
    tick_s: float
    quanta: tuple[int, ...]
    arcs: Mapping[tuple[int, int], list[Arc]]
    parts: tuple[tuple[Part, ...], ...]
    kinds: tuple[int, ...]
    wave_kind: tuple[int, ...]
    ready: tuple[int, ...]
    ticks: Mapping[tuple[int, bool, Part], Mapping[Arc, int]]
    hop: Mapping[int, Mapping[Arc, int]]
    late: int
    arrivals: tuple[tuple[int, int], ...]
    window: int | None
    mean_arrival_s: float
    requests: int

    @property
    def horizon(self) -> int:
        """A time by which everything is done."""
        longest = max(self.ready)
        for kind in self.wave_kind:
            for i in range(self.count(kind)):
                arcs = self.arcs[self.kinds[kind], i]
                longest += sum(
                    max((self.ticks[self.key(kind, j, part)][arc] for part in parts for arc in arcs), default=0)
                    for j, parts in enumerate(self.parts)
                )
                longest += len(self.parts) * max((self.hop[kind][arc] for arc in arcs), default=0)
        return longest

    def count(self, kind: int) -> int:
        """Number of chunks in waves of a kind."""
        return self.cell.counts[self.kinds[kind]]

    def key(self, kind: int, j: int, part: Part) -> tuple[int, bool, Part]:
        """Where the times of a part are."""
        return kind, j == len(self.parts) - 1, part

    def tasks(self) -> Iterator[Task]:
        """All tasks, in any order."""
        for wave, kind in enumerate(self.wave_kind):
            yield from product([wave], range(len(self.parts)), range(self.count(kind)))

    def chunks(self) -> list[tuple[int, int]]:
        """(wave, chunk) of all chunks in the order in which they enter."""
        return [(wave, i) for wave, kind in enumerate(self.wave_kind) for i in range(self.count(kind))]

    def programs(self) -> list[list[Task]]:
        """The tasks of each die in their order (spec section 3, V-shaped schedule)."""
        everything = self.chunks()
        packed = self.cell.schedule == "vpp-packed"
        lists = [everything] if packed else [[c for c in everything if c[0] == w] for w in range(len(self.wave_kind))]
        return [[task for chunks in lists for task in self._periods(die, chunks)] for die in range(self.dies)]

    def _periods(self, die: int, chunks: list[tuple[int, int]]) -> Iterator[Task]:
        """Period k has the head of chunk k+d and the tail of chunk k-d, where they exist."""
        away, back = self.dies - 1 - die, 2 * self.dies - 1 - die
        for period in range(-away, len(chunks) + away):
            pair = [(die, period + away), (back, period - away)]
            if self.cell.schedule == "vpp" and away:
                pair.reverse()
            for part, number in pair:
                if 0 <= number < len(chunks):
                    wave, i = chunks[number]
                    yield wave, part, i

    def ways(self) -> Iterator[tuple[Task, Task, bool]]:
        """Task, the same chunk's next one, and whether it is handed to another die in between."""
        for wave, j, i in self.tasks():
            if j + 1 < len(self.parts):
                yield (wave, j, i), (wave, j + 1, i), j != self.dies - 1

    def windows(self) -> Iterator[tuple[Task, Task]]:
        """Last task of a chunk, and the first of the one that may enter when it has left."""
        chunks = self.chunks()
        for number in range(self.window or len(chunks), len(chunks)):
            (left, i), (entering, k) = chunks[number - (self.window or 0)], chunks[number]
            yield (left, len(self.parts) - 1, i), (entering, 0, k)

    def seconds(self, objective_ticks: float) -> float:
        """The objective in seconds of what the models minimise in ticks."""
        if self.objective == "mean_latency":
            return objective_ticks * self.tick_s / self.requests - self.mean_arrival_s
        return objective_ticks * self.tick_s


def cells(instance: Instance) -> list[Cell]:
    """All schedules, batches that differ in effect, and numbers of chunks."""
    pipeline, workload = instance.pipeline, instance.workload
    most = [min(pipeline.max_chunks, -(-(t - c) // pipeline.chunk_quantum)) for t, c in workload.shapes]
    batches = range(1, min(pipeline.max_batch, workload.count) + 1)
    numbers = list(product(*(range(1, count + 1) for count in most)))
    return [Cell(*choice) for choice in product(V_SHAPED, batches, numbers)]


def state(instance: Instance, cell: Cell, tick_s: float | None = None) -> VirtualProblem:
    """One cell of an instance.

    Parameters
    ----------
    instance
        One that admits V-shaped plans (`virtual_reason`).
    tick_s
        Unit of time; by default all work on one die is `HORIZON_TICKS`.
    """
    tables, waves = StageTables(instance), instance.workload.gathered(cell.batch)
    shapes = list(instance.workload.shapes)
    grids = [tables.grid(shape) for shape in shapes]
    kinds = tuple(shapes.index(shape) for shape, _ in waves.kinds)
    memory = VirtualMemory(instance)
    limit = [min(memory.chunk_tokens(size, of)[0] for of, size in waves.kinds if of == shape) for shape in shapes]
    parts = _parts(instance)
    die, last = fastest_die(instance), len(parts) - 1
    heads = {(j == last, part) for j, options in enumerate(parts) for part in options}
    seconds = {
        (kind, head, part): tables.stage(die, *part, size, shape, head=head)
        for kind, (shape, size) in enumerate(waves.kinds)
        for head, part in heads
    }
    arcs = {
        (number, i): [
            (p, e)
            for p, e in _positions(grid.quanta, cell.counts[number], i)
            if grid.tokens[e] - grid.tokens[p] <= limit[number]
            and all(np.isfinite(table[p, e]) for (kind, _, _), table in seconds.items() if kinds[kind] == number)
        ]
        for number, grid in enumerate(grids)
        for i in range(cell.counts[number])
    }
    used = {
        kind: {arc for (n, _), some in arcs.items() if n == number for arc in some} for kind, number in enumerate(kinds)
    }
    if tick_s is None:
        longest = {
            kind: max(
                (float(table[arc]) for key, table in seconds.items() if key[0] == kind for arc in some), default=0.0
            )
            for kind, some in used.items()
        }
        work_s = sum(len(parts) * longest[kind] * cell.counts[kinds[kind]] for kind in waves.kind.tolist())
        tick_s = max(work_s + float(waves.ready_s.max()), 1e-12) / HORIZON_TICKS

    def floor(time_s: float) -> int:
        # Whole ticks stay whole, whatever the division rounds to.
        return math.floor(time_s / tick_s + 1e-6)

    hops = [tables.transfer(size, shape) for shape, size in waves.kinds]
    total = instance.workload.count
    late = total - math.ceil(0.95 * total) if instance.objective == "p95_latency" else 0
    arrivals = [
        (int(wave), math.ceil(arrival_s / tick_s - 1e-6))
        for wave, arrival_s in zip(waves.wave_of_request, waves.arrival_s.tolist(), strict=True)
    ]
    return VirtualProblem(
        cell=cell,
        objective=instance.objective,
        dies=instance.pipeline.stages,
        layers=instance.model.layer_count,
        tick_s=tick_s,
        quanta=tuple(grid.quanta for grid in grids),
        arcs=arcs,
        parts=parts,
        kinds=kinds,
        wave_kind=tuple(waves.kind.tolist()),
        ready=tuple(floor(ready_s) for ready_s in waves.ready_s.tolist()),
        ticks={key: {arc: floor(float(table[arc])) for arc in used[key[0]]} for key, table in seconds.items()},
        hop={kind: {arc: floor(float(hop[arc])) for arc in used[kind]} for kind, hop in enumerate(hops)},
        late=late,
        arrivals=tuple(arrivals),
        window=instance.pipeline.max_in_flight,
        mean_arrival_s=float(waves.arrival_s.mean()),
        requests=total,
    )


def _positions(quanta: int, count: int, i: int) -> Iterator[Arc]:
    """Start and end of the i-th of so many chunks."""
    starts = [0] if i == 0 else range(i, quanta)
    for p in starts:
        yield from ((p, e) for e in ([quanta] if i == count - 1 else range(p + 1, quanta - count + i + 2)) if e > p)


def _parts(instance: Instance) -> tuple[tuple[Part, ...], ...]:
    """Layer ranges of each of the 2N parts."""
    split, layers, number = fixed_parts(instance), instance.model.layer_count, 2 * instance.pipeline.stages
    if split is not None:
        return tuple((part,) for part in ranges(split))
    cuts = [cut for cut in range(1, layers) if cut not in instance.pipeline.forbidden_cuts]
    starts = [[0], *[cuts] * (number - 1), [layers]]
    return tuple(
        tuple((a, b) for a in starts[j] for b in starts[j + 1] if a < b and a >= j and layers - b >= number - 1 - j)
        for j in range(number)
    )


def chunk_name(shape: int, i: int, arc: Arc) -> str:
    """Name of the variable "this chunk covers these quanta"."""
    return f"chunk[{shape},{i},{arc[0]},{arc[1]}]"


def part_name(j: int, part: Part) -> str:
    """Name of the variable "this part has these layers"."""
    return f"part[{j},{part[0]},{part[1]}]"


def start_name(task: Task) -> str:
    """Name of the start of a task."""
    return f"start[{task[0]},{task[1]},{task[2]}]"


def seconds_name(at: At) -> str:
    """Name of the time of a chunk on a part."""
    return f"seconds[{at[0]},{at[1]},{at[2]}]"
