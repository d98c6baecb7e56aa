"""The same pipeline as a SimPy program, the public yardstick of the simulator's speed.

Written as SimPy programs are: a process for each die and each transfer, a resource for each directed link, a container
for each memory. What SimPy can express exactly is in: dies that run one task at a time, activations, spill writes,
remote fetches and the stalls that they bring, cut-through transfers that hold all links of their route together, in the
order of the requests.

Left out: other switching and rounding options, the window of chunks in flight, compute that waits for its fetches,
negative KV, and two orders that SimPy does not have. Events of one instant come in the order in which they were
scheduled, not by kind and task; and a container serves all that wait for memory first come, first served, tasks and
writes in one queue. So results are the same where no two events meet in one instant and memory is not that short.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import simpy
from simpy.resources.container import ContainerGet

from solver.simulation.network import PICOSECONDS_PER_S, Network
from solver.simulation.program import Program

Steps = Generator[simpy.Event, Any, None]


class Task(NamedTuple):
    """A chunk at a stage; ``successor`` is -1 at the last stage, ``writes`` are (slot, units)."""

    die: int
    waits: bool
    earliest_ps: int
    duration_ps: int
    take: int
    group: int
    successor: int
    send: int
    writes: list[tuple[int, int]]
    closes: bool


class Way(NamedTuple):
    """Links that a transfer takes, the smallest bandwidth on them, and what their hops add."""

    links: list[int]
    bytes_per_s: float
    latency_ps: int


class Inputs(NamedTuple):
    """A program as plain lists, so that the simulation does not wait for numpy.

    ``memories`` are (units free at the start, units in all) of the dies, then of their hosts; ``slots`` are (memory,
    way there, way back); ``group_slots`` are the slots of each group.
    """

    tasks: list[Task]
    tasks_of_die: list[list[int]]
    memories: list[tuple[int, int]]
    links: int
    ways: dict[tuple[int, int], Way]
    slots: list[tuple[int, Way, Way]]
    group_slots: list[range]
    units_per_byte: int
    serve_fraction: float


def read(program: Program) -> Inputs:
    """Turn a program into plain lists.

    Raises
    ------
    ValueError
        If the program uses what the SimPy program leaves out.
    """
    network = program.network
    if network.store_and_forward or network.one_send_per_die or network.integer_ns or program.max_in_flight:
        raise ValueError("the SimPy program has neither the options of other simulators nor a window")
    if not program.overlap or (program.take_units < 0).any():
        raise ValueError("the SimPy program has neither compute that waits for fetches nor negative KV")
    ways, host = _ways(network), program.dies
    homes = np.repeat(program.group_die, np.diff(program.group_slot_ptr)).tolist()
    memories = np.where(program.slot_is_host, host + program.slot_die, program.slot_die).tolist()
    writes = list(zip(program.write_slot.tolist(), program.write_units.tolist(), strict=True))
    columns = zip(
        program.die.tolist(),
        (program.inputs > 0).tolist(),
        program.earliest_ps.tolist(),
        program.duration_ps.tolist(),
        program.take_units.tolist(),
        program.group.tolist(),
        program.successor.tolist(),
        program.send_units.tolist(),
        [writes[first:stop] for first, stop in pairwise(program.write_ptr.tolist())],
        program.closes_group.tolist(),
        strict=True,
    )
    capacity, static = program.capacity_units.tolist(), program.static_units.tolist()
    hosts = program.host_capacity_units.tolist()
    return Inputs(
        tasks=[Task(*row) for row in columns],
        tasks_of_die=[program.die_tasks[first:stop].tolist() for first, stop in pairwise(program.die_ptr)],
        memories=[(whole - taken, whole) for whole, taken in zip(capacity, static, strict=True)]
        + [(whole, whole) for whole in hosts],
        links=len(network.link_bytes_per_s),
        ways=ways,
        slots=[(there, ways[home, there], ways[there, home]) for home, there in zip(homes, memories, strict=True)],
        group_slots=[range(first, stop) for first, stop in pairwise(program.group_slot_ptr.tolist())],
        units_per_byte=program.units_per_byte,
        serve_fraction=program.serve_fraction,
    )


def _ways(network: Network) -> dict[tuple[int, int], Way]:
    """Ways between the dies, and between each die and its host, whose number is the die's plus the number of dies."""
    dies = len(network.dies)
    ways = {}
    for a, b in np.ndindex(dies, dies):
        links = network.route(a, b)
        if links:
            ways[a, b] = Way(links, float(network.bottleneck_bytes_per_s[a, b]), network.hop_latency_ps * len(links))
    for die in range(dies):
        speed = float(network.host_bytes_per_s[die])
        ways[die, dies + die] = Way([int(network.host_write_link[die])], speed, 0)
        ways[dies + die, die] = Way([int(network.host_read_link[die])], speed, 0)
    return ways


def simulate(inputs: Inputs) -> list[int]:
    """Run to the end; the end of each task in picoseconds.

    Raises
    ------
    RuntimeError
        If the pipeline locks up.
    """
    pipeline = _Pipeline(inputs)
    pipeline.env.run()
    if -1 in pipeline.end_ps:
        raise RuntimeError(f"{pipeline.end_ps.count(-1)} tasks never ran")
    return pipeline.end_ps


class _Pipeline:
    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.env = env = simpy.Environment()
        self.links = [simpy.Resource(env) for _ in range(inputs.links)]
        # A container needs room for something; no slot names the memory of a host that is not there.
        self.memories = [simpy.Container(env, max(1, whole), free) for free, whole in inputs.memories]
        self.arrived = [env.event() for _ in inputs.tasks]
        self.end_ps = [-1] * len(inputs.tasks)
        dies = len(inputs.tasks_of_die)
        self.computes = [False] * dies
        self.computed_ps = [0] * dies
        self.blocked_ps = [0] * dies
        self.kept = [0] * len(inputs.group_slots)
        self.closed = [False] * len(inputs.group_slots)
        self.granted = [0] * len(inputs.slots)
        self.last_write: list[simpy.Event | None] = [None] * len(inputs.slots)
        self.waiting: list[list[ContainerGet]] = [[] for _ in inputs.slots]
        for die in range(dies):
            env.process(self.run_die(die))

    def duration_ps(self, units: int, way: Way, fraction: float = 1.0) -> int:
        return round(fraction * (units / self.inputs.units_per_byte) / way.bytes_per_s * PICOSECONDS_PER_S)

    def run_die(self, die: int) -> Steps:
        """Tasks in order, one at a time: wait for input and memory, fetch, compute, end."""
        env = self.env
        for number in self.inputs.tasks_of_die[die]:
            task = self.inputs.tasks[number]
            if task.waits:
                yield self.arrived[number]
            elif env.now < task.earliest_ps:
                yield env.timeout(task.earliest_ps - env.now)
            if task.take:
                yield self.memories[die].get(task.take)
            while env.now < self.blocked_ps[die]:
                yield env.timeout(self.blocked_ps[die] - env.now)
            self.kept[task.group] += task.take
            fetches = [
                env.process(self.fetch(slot, self.granted[slot]))
                for slot in self.inputs.group_slots[task.group]
                if self.granted[slot]
            ]
            self.computed_ps[die] = int(env.now) + task.duration_ps
            self.computes[die] = True
            yield from fetches
            # Stalls put the end off while the die computes.
            while env.now < self.computed_ps[die]:
                yield env.timeout(self.computed_ps[die] - env.now)
            self.computes[die] = False
            self.end_ps[number] = int(env.now)
            self.end(task)

    def end(self, task: Task) -> None:
        """Send the activation, write what is to be spilled, give memory back after the last chunk of a wave."""
        if task.successor >= 0:
            self.env.process(self.send(task))
        for slot, units in task.writes:
            room = self.memories[self.inputs.slots[slot][0]].get(units)
            if room.triggered:
                self.grant(task, slot, units)
            else:
                self.waiting[slot].append(room)
                self.env.process(self.wait(room, task, slot, units))
        if task.closes:
            self.close(task)

    def wait(self, room: ContainerGet, task: Task, slot: int, units: int) -> Steps:
        yield room
        self.waiting[slot].remove(room)
        self.grant(task, slot, units)

    def grant(self, task: Task, slot: int, units: int) -> None:
        self.granted[slot] += units
        self.last_write[slot] = self.env.process(self.write(task, slot, units))

    def close(self, task: Task) -> None:
        self.closed[task.group] = True
        for slot in self.inputs.group_slots[task.group]:
            for room in self.waiting[slot]:
                room.cancel()
            if self.granted[slot]:
                self.memories[self.inputs.slots[slot][0]].put(self.granted[slot])
            self.granted[slot] = 0
        if self.kept[task.group]:
            self.memories[task.die].put(self.kept[task.group])

    def send(self, task: Task) -> Steps:
        way = self.inputs.ways[task.die, self.inputs.tasks[task.successor].die]
        yield from self.carry(task.send, way)
        self.arrived[task.successor].succeed()

    def write(self, task: Task, slot: int, units: int) -> Steps:
        way = self.inputs.slots[slot][1]
        yield from self.carry(units, way)
        if not self.closed[task.group]:
            self.kept[task.group] -= units
            self.memories[task.die].put(units)

    def fetch(self, slot: int, units: int) -> Steps:
        """Bring back what was written, once the last of it has arrived; the creditor's die stalls meanwhile."""
        memory, _, way = self.inputs.slots[slot]
        serves = memory if memory < len(self.computes) else None
        yield from self.carry(units, way, after=self.last_write[slot], serves=serves)

    def stall(self, die: int, length_ps: int) -> None:
        if self.computes[die]:
            self.computed_ps[die] += length_ps
        else:
            self.blocked_ps[die] = max(self.blocked_ps[die], int(self.env.now)) + length_ps

    def carry(self, units: int, way: Way, after: simpy.Event | None = None, serves: int | None = None) -> Steps:
        """Ask for all links at once, wait for them and for ``after``, hold them together; latency occupies none."""
        requests = [self.links[link].request() for link in way.links]
        if after is not None:
            yield after
        for request in requests:
            yield request
        if serves is not None:
            self.stall(serves, self.duration_ps(units, way, self.inputs.serve_fraction))
        yield self.env.timeout(self.duration_ps(units, way))
        for link, request in zip(way.links, requests, strict=True):
            self.links[link].release(request)
        if way.latency_ps:
            yield self.env.timeout(way.latency_ps)
