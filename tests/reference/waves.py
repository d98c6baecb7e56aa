"""The reference simulator for programs whose waves differ, and for links of two speeds (see ``plan_to_program``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.reference.lowering import die_programs
from tests.reference.network import Network, Transfer, die_place
from tests.reference.program import Die, Place, Program, Task, exact, read_program
from tests.reference.simulator import Event, Simulator

SHARED = ("waves", "wafer_shape", "wafer_link_bytes_per_s")


@dataclass(frozen=True)
class Outcome:
    """What a replay measured; times in picoseconds by (wave, stage, chunk), bytes and stalls by stage."""

    deadlock: bool
    start_ps: dict[tuple[int, int, int], int]
    end_ps: dict[tuple[int, int, int], int]
    completions_ps: list[int]
    peak_bytes: list[Fraction]
    host_peak_bytes: list[Fraction]
    stall_ps: list[int]


class SeamNetwork(Network):
    """Links that cross a wafer edge have their own speed; a transfer goes at the slowest link of its route.

    A switch has no such links.
    """

    def __init__(self, program: Program, wafer: Die, seam_bytes_per_s: Fraction) -> None:
        super().__init__(program)
        self.wafer, self.seam_bytes_per_s = wafer, seam_bytes_per_s

    def bandwidth(self, source: Place, target: Place) -> Fraction:
        if source[0] != 0 or target[0] != 0 or self.program.topology == "switch":
            return super().bandwidth(source, target)
        slowest = [self.speed(one, other) for one, other in self.route(source[1:], target[1:])]
        return min(slowest)

    def speed(self, one: Place, other: Place) -> Fraction:
        """Bytes per second of one link of the mesh."""
        same = all(one[1 + axis] // self.wafer[axis] == other[1 + axis] // self.wafer[axis] for axis in (0, 1))
        return self.program.link_bytes_per_s if same else self.seam_bytes_per_s

    def send(
        self, kind: str, task: Task, source: Place, target: Place, sent_bytes: Fraction, ready_ps: int
    ) -> Transfer:
        """Link after link where that is asked for, each at its own speed; else as the base class has it."""
        seamed = source[0] == 0 and target[0] == 0 and source != target and self.program.topology != "switch"
        if not (self.program.store_and_forward and seamed):
            return super().send(kind, task, source, target, sent_bytes, ready_ps)
        links = self.route(source[1:], target[1:])
        at_ps = ready_ps
        if self.program.one_send_per_die:
            at_ps = max(at_ps, self.delivered_ps.get(source, 0))
        held = []
        for link in links:
            start_ps = max(at_ps, self.free_ps.get(link, 0))
            until_ps = start_ps + self.program.duration_ps(sent_bytes / self.speed(*link))
            held.append((start_ps, until_ps))
            self.free_ps[link] = until_ps
            at_ps = until_ps + self.program.hop_latency_ps
        self.delivered_ps[source] = at_ps
        return Transfer(kind, task, source, target, sent_bytes, tuple(links), tuple(held), ready_ps, held[0][0], at_ps)


class WaveSimulator(Simulator):
    """One replay of a program from ``plan_to_program.lower``: each rule sees the numbers of its task's wave."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.programs = [_program_of_wave(document, wave) for wave in document["waves"]]
        super().__init__(self.programs[0])
        self.network = SeamNetwork(self.programs[0], document["wafer_shape"], exact(document["wafer_link_bytes_per_s"]))
        self.order_of = die_programs(self.program, [program.chunks for program in self.programs])

    def activation_ready(self, task: Task) -> int | None:
        if task.stage == 0:
            return self.programs[task.wave].arrivals_ps[0]
        return super().activation_ready(task)

    def memory_admission(self, task: Task) -> bool:
        self.program = self.programs[task.wave]
        return super().memory_admission(task)

    def task_start(self, task: Task) -> None:
        self.program = self.programs[task.wave]
        super().task_start(task)

    def task_end(self, task: Task) -> None:
        self.program = self.programs[task.wave]
        super().task_end(task)

    def possible_starts(self) -> list[Event]:
        """As the base class, but the present wave's numbers stay in place."""
        kept = self.program
        starts = super().possible_starts()
        self.program = kept
        return starts

    def outcome(self) -> Outcome:
        """The measures, once the replay has run."""
        stages, deadlock = range(self.program.stages), self.deadlock()
        last = [Task(w, program.chunks - 1, program.stages - 1) for w, program in enumerate(self.programs)]
        hosts = [self.memories[1, row, column] for row, column in self.program.die_of]
        return Outcome(
            deadlock=deadlock,
            start_ps={(task.wave, task.stage, task.chunk): time for task, time in self.start_ps.items()},
            end_ps={(task.wave, task.stage, task.chunk): time for task, time in self.end_ps.items()},
            completions_ps=[] if deadlock else [self.end_ps[task] for task in last],
            peak_bytes=[self.memories[die_place(self.program.die_of[s])].peak_bytes for s in stages],
            host_peak_bytes=[memory.peak_bytes for memory in hosts],
            stall_ps=[self.stalled_ps[die] for die in self.program.die_of],
        )


def replay_waves(document: Mapping[str, Any], compute_ps: list[list[list[int]]] | None = None) -> Outcome:
    """Replay such a program; ``compute_ps[wave][stage][chunk]`` replaces the durations of the tasks."""
    simulator = WaveSimulator(document)
    if compute_ps is not None:
        for program, own in zip(simulator.programs, compute_ps, strict=True):
            program.compute_ps[:] = own
    simulator.run()
    return simulator.outcome()


def _program_of_wave(document: Mapping[str, Any], wave: Mapping[str, Any]) -> Program:
    """One wave's numbers; it may start when its latest request is there."""
    shared = {key: value for key, value in document.items() if key not in SHARED}
    own = {key: wave[key] for key in ("compute_s", "kv_bytes", "activation_bytes", "spill")}
    return read_program({**shared, **own, "arrivals_s": [max(wave["arrivals_s"])]})
