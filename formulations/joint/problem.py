"""The joint problem of one batch: what the two models are told, in whole ticks.

Positions 0..n of a request are its quanta; an arc is a chunk between two of them. A slot is a place in the list of
chunks: slot 0 is the first chunk, slots behind the last chunk stay empty and take no time.

Time is counted in ticks of whole picoseconds, memory in ticks of whole units. Where the common divisor of all durations
is large enough the ticks are that, and nothing is rounded. Otherwise durations and demands are rounded down, and what
is given back up, so that a bound in ticks is one in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from formulations.joint.choices import Configuration
from instances.instance import Instance
from instances.workload import Shape

Goal = Literal["mean_latency", "makespan", "p95_latency"]
HOST = -1
"""The creditor that is no stage."""


class Arc(NamedTuple):
    """A chunk of quanta ``start .. end-1``; ``last``: it ends the request."""

    start: int
    end: int
    last: bool


class Task(NamedTuple):
    """Slot ``slot`` of wave ``wave`` on stage ``stage``."""

    wave: int
    stage: int
    slot: int


class Lent(NamedTuple):
    """What chunk ``slot`` of a stage (in one of its choices) has at a creditor; ``row``: a shape or a wave."""

    row: int
    stage: int
    choice: int
    slot: int
    creditor: int


@dataclass(frozen=True)
class ArcNumbers:
    """Ticks of one arc on one choice of a stage, for waves of one kind."""

    duration: int
    held: int
    workspace: int


@dataclass(frozen=True)
class LentNumbers:
    """Ticks a token lent takes: of memory, rounded down and up, and of time for writing, fetching and serving it."""

    memory: int
    memory_up: int
    transfer: int
    serve: int


@dataclass(frozen=True)
class JointWave:
    """Requests that run together: their kind, when they may start, how many they are, and when each arrived."""

    kind: int
    ready: int
    size: int
    arrivals: tuple[int, ...]


@dataclass(frozen=True)
class JointProblem:
    """One batch of an instance.

    Attributes
    ----------
    kinds
        (shape, requests) of the waves.
    list_of_kind, shape_of_kind
        Which chunk list, and which spill list, waves of a kind use.
    quanta, slots
        Of each chunk list.
    arcs
        Of each chunk list: its chunks, and the slots in which each may be.
    positions
        Tokens before each position of each list.
    configurations
        Layers and placements to choose from; ``choice_of`` and ``way_of`` say which choice and way each of them uses.
    choices, ways
        How many choices each stage has, and ways each stage to the next.
    numbers
        By (kind, stage, choice, arc).
    sent, occupied
        Ticks in which activations reach the next stage, and those in which they hold links, by (kind, stage, way, arc).
    room
        Memory beside the weights by (stage, choice).
    lent
        By (kind, stage, choice, creditor); empty where no plan gains from spill.
    host_room
        Memory of each host, 0 without one.
    memory_binds
        Whether a stage could be too full at all.
    horizon
        Ticks within which some best schedule ends.
    tick_ps, exact
        Picoseconds of a tick, and whether no duration was rounded (those of writes, fetches and stalls may be).
    value_limit
        Only plans whose objective is at most that, in ticks; None: all.
    """

    instance: Instance
    batch: int
    goal: Goal
    kinds: tuple[tuple[Shape, int], ...]
    list_of_kind: tuple[int, ...]
    shape_of_kind: tuple[int, ...]
    shapes: tuple[Shape, ...]
    waves: tuple[JointWave, ...]
    quanta: tuple[int, ...]
    slots: tuple[int, ...]
    arcs: tuple[Mapping[Arc, range], ...]
    positions: tuple[tuple[int, ...], ...]
    configurations: tuple[Configuration, ...]
    choice_of: tuple[tuple[int, ...], ...]
    way_of: tuple[tuple[int, ...], ...]
    choices: tuple[int, ...]
    ways: tuple[int, ...]
    numbers: Mapping[tuple[int, int, int, Arc], ArcNumbers]
    sent: Mapping[tuple[int, int, int, Arc], int]
    occupied: Mapping[tuple[int, int, int, Arc], int]
    room: Mapping[tuple[int, int], int]
    lent: Mapping[tuple[int, int, int, int], LentNumbers]
    host_room: int
    memory_binds: bool
    horizon: int
    tick_ps: int
    exact: bool
    value_limit: int | None = None

    @property
    def stages(self) -> int:
        """N."""
        return len(self.choices)

    @property
    def size(self) -> int:
        """Variables of a model, roughly."""
        chunks = sum(len(slots) for arcs in self.arcs for slots in arcs.values())
        products = sum(count for count in (*self.choices, *self.ways) if count > 1)
        memory = len(self.tasks) ** 2 // 2 + 2 * len(self.tasks) * self.stages**2 if self.memory_binds else 0
        return chunks * (1 + products) + 2 * len(self.tasks) + memory

    @property
    def overlap(self) -> bool:
        """Whether a fetch and its task's compute run at the same time."""
        return self.instance.pipeline.overlap

    def list_of(self, wave: int) -> int:
        """Chunk list of a wave."""
        return self.list_of_kind[self.waves[wave].kind]

    def tokens(self, number: int, arc: Arc) -> int:
        """Size of a chunk of a list."""
        return self.positions[number][arc.end] - self.positions[number][arc.start]

    def task_before(self, task: Task) -> Task | None:
        """The task that the same die runs before this one."""
        w, s, i = task
        if i:
            return Task(w, s, i - 1)
        return Task(w - 1, s, self.slots_of(w - 1) - 1) if w else None

    def slots_of(self, wave: int) -> int:
        """Slots of a wave."""
        return self.slots[self.list_of(wave)]

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks, wave by wave."""
        return tuple(
            Task(w, s, i) for w in range(len(self.waves)) for s in range(self.stages) for i in range(self.slots_of(w))
        )

    @cached_property
    def creditors(self) -> dict[int, tuple[int, ...]]:
        """Creditors of each stage that may have any."""
        found: dict[int, set[int]] = {}
        for _, stage, _, creditor in self.lent:
            found.setdefault(stage, set()).add(creditor)
        return {stage: tuple(sorted(keepers)) for stage, keepers in found.items()}

    @property
    def value_scale(self) -> int:
        """Requests that a sum of completions counts: ticks of the objective are ticks of time times that."""
        return sum(wave.size for wave in self.waves) if self.goal == "mean_latency" else 1

    @property
    def most_value(self) -> int:
        """Upper bound of the objective in ticks."""
        most = self.horizon * self.value_scale
        return most if self.value_limit is None else max(0, min(most, self.value_limit))

    @property
    def offset_s(self) -> float:
        """What is taken off a mean of completions to get a mean of latencies."""
        if self.goal != "mean_latency":
            return 0.0
        arrivals = [request.arrival_s for request in self.instance.workload.all_requests()]
        return sum(arrivals) / len(arrivals)

    def seconds(self, ticks: float) -> float:
        """Objective in seconds, of the objective in ticks."""
        return ticks / self.value_scale * self.tick_ps * 1e-12 - self.offset_s

    def ticks(self, seconds: float) -> int:
        """The largest objective in ticks that is within so many seconds, a rounding error aside."""
        ticks = (seconds + self.offset_s) * self.value_scale / (self.tick_ps * 1e-12)
        return math.floor(ticks * (1 + 1e-12) + 1e-6)

    def bound_s(self, ticks: float) -> float:
        """A bound in seconds of one in ticks, with the last digits of the sums in seconds taken off."""
        seconds = self.seconds(ticks)
        latest_s = max(wave.ready for wave in self.waves) * self.tick_ps * 1e-12
        return seconds - 1e-12 * abs(seconds) - 2**-50 * latest_s

    @property
    def excluded(self) -> int:
        """Requests that nearest rank leaves out of the 95th percentile."""
        total = sum(wave.size for wave in self.waves)
        return total - math.ceil(0.95 * total)


def starts_before(first: Task, second: Task) -> bool | None:
    """Whether the first task starts no later than the second whatever is decided; None if that is open.

    Along a stage tasks follow each other, along a chunk stages do.
    """
    here, there = (first.wave, first.slot), (second.wave, second.slot)
    if first.stage <= second.stage and here <= there:
        return True
    if first.stage >= second.stage and here >= there:
        return False
    return None


def has_left(chain: tuple[int, int], task: Task, last_slot: int) -> bool | None:
    """Whether the wave and stage of a chain have ended when a task starts; None if that is open."""
    wave, stage = chain
    if stage <= task.stage and wave < task.wave:
        return True
    if stage < task.stage and (wave, last_slot) == (task.wave, task.slot):
        return True
    if stage >= task.stage and wave >= task.wave:
        return False
    return None
