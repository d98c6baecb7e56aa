"""The event simulator of spec section 3, one method for each rule, under the rule's name.

There is no heap and no cache: at every step all pending events and all possible starts are listed, and the first one
in the order of the page is carried out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.reference.lowering import die_programs
from tests.reference.memory import Memory, MemoryChange, Write
from tests.reference.network import Network, Transfer, die_place, host_place
from tests.reference.program import HOST, PICOSECONDS, Die, Place, Program, Task, read_program

TASK_END, TRANSFER_ARRIVAL, SERVICE_STALL, START = range(4)


@dataclass(frozen=True)
class Stall:
    """A creditor's die stands still for `duration_ps` from `start_ps` on; `idle` = no task was running."""

    die: Die
    start_ps: int
    duration_ps: int
    idle: bool = False


@dataclass
class Running:
    """A task that has started: rule 8 gives its end from these numbers."""

    task: Task
    start_ps: int
    compute_ps: int
    fetch_arrival_ps: int
    stalled_ps: int = 0


@dataclass(frozen=True)
class Event:
    """An event and its place in the queue; `subject` is what it is about."""

    time_ps: int
    kind: int
    task: Task
    request: int
    subject: Transfer | Write | Stall | None = None

    @property
    def order(self) -> tuple[int, int, Task, int]:
        return (self.time_ps, self.kind, self.task, self.request)


class Simulator:
    """One replay. `run` carries out every event; the public attributes are the log."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.network = Network(program)
        self.order_of = die_programs(program)
        self.done: dict[Die, int] = dict.fromkeys(self.order_of, 0)
        self.running: dict[Die, Running] = {}
        self.blocked_until_ps: dict[Die, int] = dict.fromkeys(self.order_of, 0)
        self.memories: dict[Place, Memory] = {}
        for stage, die in enumerate(program.die_of):
            capacity = None if program.capacity_bytes is None else program.capacity_bytes[stage]
            # A die shared by two virtual stages has one memory, described at its first stage.
            self.memories.setdefault(die_place(die), Memory(die_place(die), capacity, program.static_bytes[stage]))
            self.memories.setdefault(host_place(die), Memory(host_place(die), program.host_bytes, Fraction(0)))
        self.now_ps = 0
        self.requests = 0
        self.inside = 0
        self.pending: list[Event] = []
        self.activation_arrived: set[Task] = set()
        self.local_bytes: dict[tuple[int, int], Fraction] = {}
        self.granted: dict[tuple[int, int], list[Write]] = {}
        self.start_ps: dict[Task, int] = {}
        self.end_ps: dict[Task, int] = {}
        self.stalled_ps: dict[Die, int] = dict.fromkeys(self.order_of, 0)
        self.transfers: list[Transfer] = []
        self.memory_changes: list[MemoryChange] = []
        self.stalls: list[Stall] = []
        self.cancelled: list[Write] = []

    def run(self) -> None:
        """Carry out events in the order of the page until none is left."""
        while (events := self.pending + self.possible_starts()) != []:
            event = min(events, key=lambda event: event.order)
            if event.kind != START:
                self.pending.remove(event)
            self.now_ps = event.time_ps
            if event.kind == TASK_END:
                self.task_end(event.task)
            elif isinstance(event.subject, Write):
                self.write_arrival(event.subject)
            elif event.kind == TRANSFER_ARRIVAL:
                self.activation_arrived.add(Task(event.task.wave, event.task.chunk, event.task.stage + 1))
            elif isinstance(event.subject, Stall):
                self.serve_stall(event.subject)
            else:
                self.task_start(event.task)

    def push(self, time_ps: int, kind: int, task: Task, subject: Transfer | Write | Stall | None = None) -> None:
        self.requests += 1
        self.pending.append(Event(time_ps, kind, task, self.requests, subject))

    def possible_starts(self) -> list[Event]:
        """One start for each idle die whose next task misses nothing but time."""
        starts: list[Event] = []
        for die in self.order_of:
            task = self.die_serial(die)
            if task is None:
                continue
            ready_ps = self.activation_ready(task)
            if ready_ps is None or not self.in_flight_window(task) or not self.memory_admission(task):
                continue
            starts.append(Event(max(self.now_ps, ready_ps, self.blocked_until_ps[die]), START, task, 0))
        return starts

    def die_serial(self, die: Die) -> Task | None:
        """Rule 1: the next task of an idle die's program; None while it runs one or after its last."""
        if die in self.running or self.done[die] == len(self.order_of[die]):
            return None
        return self.order_of[die][self.done[die]]

    def activation_ready(self, task: Task) -> int | None:
        """Rule 2: the moment from which the task has its input; None while that is unknown."""
        if task.stage == 0:
            ready_ps = self.program.arrivals_ps[task.wave]
        elif task in self.activation_arrived:
            ready_ps = self.now_ps
        else:
            return None
        held = self.program.not_before_ps
        return ready_ps if held is None else max(ready_ps, held[task.stage][task.chunk])

    def in_flight_window(self, task: Task) -> bool:
        """Rule 3: stage 0 starts a chunk only while fewer than max_in_flight chunks are inside."""
        window = self.program.max_in_flight
        return task.stage != 0 or window is None or self.inside < window

    def memory_admission(self, task: Task) -> bool:
        """Rule 4: the task's own KV must fit beside what its die holds; a negative amount always passes."""
        own_bytes = self.program.kv_bytes[task.stage][task.chunk]
        return own_bytes < 0 or self.home(task.stage).fits(own_bytes)

    def home(self, stage: int) -> Memory:
        return self.memories[die_place(self.program.die_of[stage])]

    def creditor_place(self, stage: int, creditor: int | str) -> Place:
        if creditor == HOST:
            return host_place(self.program.die_of[stage])
        return die_place(self.program.die_of[int(creditor)])

    def task_start(self, task: Task) -> None:
        """A start takes its KV first (or releases it, if negative), then requests its fetches."""
        self.start_ps[task] = self.now_ps
        if task.stage == 0:
            self.inside += 1
        compute_ps = self.program.compute_ps[task.stage][task.chunk]
        self.running[self.program.die_of[task.stage]] = Running(task, self.now_ps, compute_ps, self.now_ps)
        own_bytes = self.program.kv_bytes[task.stage][task.chunk]
        key = (task.wave, task.stage)
        self.local_bytes[key] = self.local_bytes.get(key, Fraction(0)) + own_bytes
        if own_bytes < 0:
            self.give_back(self.home(task.stage), task, "start", -own_bytes)
        else:
            self.memory_changes.append(self.home(task.stage).change(self.now_ps, task, "start", own_bytes))
        self.remote_fetch(task)
        self.schedule_end(task)

    def schedule_end(self, task: Task) -> None:
        """Rule 8: end = max(compute end, fetch arrival), or fetch arrival + compute + stalls without overlap."""
        running = self.running[self.program.die_of[task.stage]]
        work_ps = running.compute_ps + running.stalled_ps
        if self.program.overlap:
            end_ps = max(running.start_ps + work_ps, running.fetch_arrival_ps)
        else:
            end_ps = running.fetch_arrival_ps + work_ps
        self.pending = [event for event in self.pending if not (event.kind == TASK_END and event.task == task)]
        self.push(end_ps, TASK_END, task)

    def task_end(self, task: Task) -> None:
        """An end requests the activation transfer, then the spill writes; the last chunk releases instead."""
        die = self.program.die_of[task.stage]
        self.end_ps[task] = self.now_ps
        del self.running[die]
        self.done[die] += 1
        if task.stage == self.program.stages - 1:
            self.inside -= 1
        else:
            target = self.program.die_of[task.stage + 1]
            sent_bytes = self.program.activation_bytes[task.chunk]
            transfer = self.link_fifo("activation", task, die_place(die), die_place(target), sent_bytes, self.now_ps)
            self.push(transfer.arrival_ps, TRANSFER_ARRIVAL, task, transfer)
        if task.chunk == self.program.chunks - 1:
            self.release(task)
        else:
            self.spill_write(task)

    def spill_write(self, task: Task) -> None:
        """Rule 5: each write is granted at once if it fits and none waits at the creditor, else it queues there."""
        for spill in self.program.spills.get((task.stage, task.chunk), []):
            memory = self.memories[self.creditor_place(task.stage, spill.creditor)]
            write = Write(task, memory.place, spill.spilled_bytes)
            if memory.waiting == [] and memory.fits(write.spilled_bytes):
                self.grant(write)
            else:
                memory.waiting.append(write)

    def grant(self, write: Write) -> None:
        """The creditor's memory is taken now; the source's is released when the bytes arrive."""
        task = write.task
        change = self.memories[write.place].change(self.now_ps, task, "grant", write.spilled_bytes)
        self.memory_changes.append(change)
        source = die_place(self.program.die_of[task.stage])
        write.transfer = self.link_fifo("write", task, source, write.place, write.spilled_bytes, self.now_ps)
        self.granted.setdefault((task.wave, task.stage), []).append(write)
        self.push(write.transfer.arrival_ps, TRANSFER_ARRIVAL, task, write)

    def write_arrival(self, write: Write) -> None:
        """The source's copy goes when the write arrives, unless the wave's KV was freed meanwhile."""
        if write.void:
            return
        self.local_bytes[(write.task.wave, write.task.stage)] -= write.spilled_bytes
        self.give_back(self.home(write.task.stage), write.task, "arrival", write.spilled_bytes)

    def give_back(self, memory: Memory, task: Task, reason: str, freed_bytes: Fraction) -> None:
        """A release of memory: waiting writes are granted at once, in order, up to the first that does not fit."""
        self.memory_changes.append(memory.change(self.now_ps, task, reason, -freed_bytes))
        while memory.waiting != [] and memory.fits(memory.waiting[0].spilled_bytes):
            self.grant(memory.waiting.pop(0))

    def remote_fetch(self, task: Task) -> None:
        """Rule 6: one fetch per creditor brings back all bytes of this wave and stage granted there so far."""
        die = self.program.die_of[task.stage]
        writes = self.granted.get((task.wave, task.stage), [])
        for place in sorted({write.place for write in writes}, key=self.stage_order):
            there = [write for write in writes if write.place == place]
            fetched_bytes = sum((write.spilled_bytes for write in there), Fraction(0))
            arrivals_ps = [write.transfer.arrival_ps for write in there if write.transfer is not None]
            ready_ps = max(self.now_ps, *arrivals_ps)
            transfer = self.link_fifo("fetch", task, place, die_place(die), fetched_bytes, ready_ps)
            running = self.running[die]
            running.fetch_arrival_ps = max(running.fetch_arrival_ps, transfer.arrival_ps)
            if place[0] == 0:
                bandwidth = self.network.bandwidth(place, die_place(die))
                stall_ps = self.program.duration_ps(self.program.serve_fraction * fetched_bytes / bandwidth)
                self.push(transfer.start_ps, SERVICE_STALL, task, Stall(place[1:], transfer.start_ps, stall_ps))

    def serve_stall(self, stall: Stall) -> None:
        """Rule 7: a running task's compute ends that much later; an idle die is blocked for that long."""
        self.stalled_ps[stall.die] += stall.duration_ps
        running = self.running.get(stall.die)
        self.stalls.append(Stall(stall.die, stall.start_ps, stall.duration_ps, running is None))
        if running is None:
            block_ps = max(self.blocked_until_ps[stall.die], stall.start_ps)
            self.blocked_until_ps[stall.die] = block_ps + stall.duration_ps
        else:
            running.stalled_ps += stall.duration_ps
            self.schedule_end(running.task)

    def link_fifo(
        self, kind: str, task: Task, source: Place, target: Place, sent_bytes: Fraction, ready_ps: int
    ) -> Transfer:
        """Rule 9: links are granted in the order in which transfers are requested."""
        transfer = self.network.send(kind, task, source, target, sent_bytes, ready_ps)
        self.transfers.append(transfer)
        return transfer

    def release(self, task: Task) -> None:
        """Rule 10: the wave's KV at this stage is freed everywhere, its waiting writes are cancelled."""
        key = (task.wave, task.stage)
        freed: dict[Place, Fraction] = {self.home(task.stage).place: self.local_bytes.pop(key)}
        for write in self.granted.pop(key, []):
            write.void = True
            freed[write.place] = freed.get(write.place, Fraction(0)) + write.spilled_bytes
        for memory in self.memories.values():
            mine = [write for write in memory.waiting if (write.task.wave, write.task.stage) == key]
            if mine:
                memory.waiting = [write for write in memory.waiting if write not in mine]
                self.cancelled += mine
                freed.setdefault(memory.place, Fraction(0))
        for place in sorted(freed, key=self.stage_order):
            self.give_back(self.memories[place], task, "release", freed[place])

    def stage_order(self, place: Place) -> tuple[int, int]:
        """Dies by the number of their first stage, host memories last."""
        return (place[0], self.program.die_of.index(place[1:]))

    def deadlock(self) -> bool:
        """Rule 11: tasks remain and no event is left."""
        return any(self.done[die] < len(tasks) for die, tasks in self.order_of.items())

    def result(self) -> dict[str, Any]:
        """The "expected" part of a worked example, with the exact picoseconds and bytes beside it."""
        program = self.program
        tasks = sorted(task for order in self.order_of.values() for task in order)
        ran = [task for task in tasks if task in self.end_ps]
        answer: dict[str, Any] = {
            "deadlock": self.deadlock(),
            "start_ps": {task.label: self.start_ps[task] for task in ran},
            "end_ps": {task.label: self.end_ps[task] for task in ran},
        }
        if answer["deadlock"]:
            answer["says"] = f"{len(tasks) - len(ran)} tasks never ran"
            answer["waiting"] = self.waiting_for_memory()
            return answer
        last = [Task(wave, program.chunks - 1, program.stages - 1) for wave in range(program.waves)]
        latency_ps = [self.end_ps[task] - program.arrivals_ps[task.wave] for task in last]
        answer["makespan_s"] = max(self.end_ps.values()) / PICOSECONDS
        answer["latency_s"] = [latency / PICOSECONDS for latency in latency_ps]
        answer["peak_memory_bytes"] = [float(self.home(stage).peak_bytes) for stage in range(program.stages)]
        answer["stall_s"] = [self.stalled_ps[die] / PICOSECONDS for die in program.die_of]
        answer["start_s"] = {label: time / PICOSECONDS for label, time in answer["start_ps"].items()}
        answer["end_s"] = {label: time / PICOSECONDS for label, time in answer["end_ps"].items()}
        return answer

    def waiting_for_memory(self) -> list[dict[str, Any]]:
        """After a deadlock: the stages whose next task lacks nothing but memory, and the bytes it asks for."""
        waiting = []
        for die in self.order_of:
            task = self.die_serial(die)
            if task is None or self.activation_ready(task) is None or not self.in_flight_window(task):
                continue
            if not self.memory_admission(task):
                waiting.append({"stage": task.stage, "bytes": float(self.program.kv_bytes[task.stage][task.chunk])})
        return waiting


def replay(document: Mapping[str, Any]) -> Simulator:
    """Run a program document and return the simulator with its whole log."""
    simulator = Simulator(read_program(document))
    simulator.run()
    return simulator


def simulate(document: Mapping[str, Any]) -> dict[str, Any]:
    """Run a program document; the result has the keys of the worked examples' "expected" part and more."""
    return replay(document).result()
