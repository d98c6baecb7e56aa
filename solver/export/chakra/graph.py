"""From a traced run to nodes: what the plan does, and what each part of it waits for.

Every wait that a trace can express is a data dependency (ASTRA-sim resolves no others: mlcommons/chakra pull request
11). A task starts after the task before it on its die, after its activations, and after what frees a place in the
in-flight window; a fetch starts with it and must be there when it ends or, without overlap, before it computes; its
end sends activations and spill writes. What follows from a wait on the same die is a dependency without a message.

A creditor learns of a fetch, and stage 0 of a free place in the window, by a message of one byte: a trace has no other
way to wait for another die. What a trace cannot say is left out: waits for memory, and compute that stands still while
a fetch is served.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np

from solver.export.chakra.nodes import Node, NodeType
from solver.export.source import events_of
from solver.simulation.columns import ACTIVATION, WRITE
from solver.simulation.engine import Run
from solver.simulation.program import Int64s, Program

PS_PER_US = 10**6
CONTROL_BYTES = 1
"""Size of a message that carries nothing; ASTRA-sim sends no empty ones."""


def chakra_nodes(program: Program, run: Run, npu_of_die: list[int]) -> list[Node]:
    """Nodes of a run that came to its end; the first T are the program's tasks.

    Parameters
    ----------
    npu_of_die
        Number of the NPU that each die of the program is. Length D.

    Raises
    ------
    ValueError
        If the run was not traced.
    """
    builder = _Builder(program, run, npu_of_die)
    builder.add_transfers()
    builder.add_arrivals()
    builder.add_window()
    return builder.finished()


def whole_us(ps: Int64s) -> Int64s:
    """Picoseconds to the nearest microsecond, halves up: the only durations that the format has."""
    return (ps + PS_PER_US // 2) // PS_PER_US


class _Builder:
    """Nodes in the making.

    ``begins`` has what the start of each task waits for, ``ends`` what is complete when it ends; they fill up as nodes
    are added, and ``waits`` has the nodes that wait for all that is in such a list at last.
    """

    def __init__(self, program: Program, run: Run, npu_of_die: list[int]) -> None:
        self.program, self.run, self.npu_of_die = program, run, npu_of_die
        self.nodes: list[Node] = []
        self.begins: list[list[int]] = [[] for _ in range(program.tasks)]
        self.ends: list[list[int]] = [[task] for task in range(program.tasks)]
        self.waits: list[tuple[int, list[int]]] = list(enumerate(self.begins))
        self.messages = 0
        durations_us = whole_us(program.duration_ps).tolist()
        for task, (us, at_ps) in enumerate(zip(durations_us, run.compute_start_ps.tolist(), strict=True)):
            npu = npu_of_die[program.die[task]]
            self._add(Node(npu, NodeType.COMP, self._label(task), at_ps, duration_us=us, task=task))

    def add_transfers(self) -> None:
        """Activations, writes and fetches, in the order in which the replay had them requested."""
        # At each creditor (group, die or -1 for the host): what nobody asked back yet; who asked last, and for what.
        kept: dict[tuple[int, int], list[int]] = defaultdict(list)
        asked: dict[tuple[int, int], tuple[int, list[int]]] = {}
        for kind, source, target, task, units, requested, start, arrival in events_of(self.run).transfers.tolist():
            size = max(CONTROL_BYTES, -(-units // self.program.units_per_byte))
            group = int(self.program.group[task])
            if kind == ACTIVATION:
                name = f"activation {self._label(task)}"
                sent, received = self._message(name, source, target, size, requested, arrival)
                self.waits.append((sent, self.ends[task]))
                self.begins[self.program.successor[task]].append(received)
            elif kind == WRITE:
                name = f"spill write {self._label(task)}"
                if target < 0:
                    npu = self.npu_of_die[source]
                    sent = received = self._add(Node(npu, NodeType.MEM_STORE, name, requested, size_bytes=size))
                else:
                    sent, received = self._message(name, source, target, size, requested, arrival)
                self.waits.append((sent, self.ends[task]))
                kept[group, target].append(received)
            else:
                # What an earlier task asked for is complete: this one started after that task's end.
                if asked.get((group, source), (-1, []))[0] != task:
                    asked[group, source] = task, kept.pop((group, source), [])
                times_ps = requested, start, arrival
                fetched = self._fetch(task, source, target, size, times_ps, asked[group, source][1])
                (self.ends[task] if self.program.overlap else self.nodes[task].deps).append(fetched)
        for task, reader in enumerate(self.program.successor.tolist()):
            if reader >= 0 and self.program.die[task] == self.program.die[reader]:
                self.begins[reader] += self.ends[task]

    def _fetch(
        self, task: int, source: int, target: int, size: int, times_ps: tuple[int, int, int], kept: list[int]
    ) -> int:
        """Add a fetch, which begins with its task; what is complete when it is there.

        ``times_ps`` has when it was requested, started and there; ``kept`` what must be at the creditor.
        """
        name, (requested, start, arrival) = f"remote fetch {self._label(task)}", times_ps
        if source < 0:
            npu = self.npu_of_die[target]
            loaded = self._add(Node(npu, NodeType.MEM_LOAD, name, start, list(kept), size_bytes=size))
            self.waits.append((loaded, self.begins[task]))
            return loaded
        ask, heard = self._message(f"request of {name}", target, source, CONTROL_BYTES, requested, requested)
        self.waits.append((ask, self.begins[task]))
        sent, received = self._message(name, source, target, size, start, arrival)
        self.nodes[sent].deps += [heard, *kept]
        return received

    def add_arrivals(self) -> None:
        """Arrivals of waves after time 0, as delays that keep a die's processor busy until then."""
        program = self.program
        for die in range(program.dies):
            tasks = program.die_tasks[program.die_ptr[die] : program.die_ptr[die + 1]].tolist()
            moments_us = whole_us(program.earliest_ps[tasks]).tolist()
            delay_until = {0: -1}
            for before_us, us in pairwise(sorted({0, *moments_us})):
                node = Node(self.npu_of_die[die], NodeType.COMP, f"until {us} us", before_us * PS_PER_US, on_cpu=True)
                node.duration_us = us - before_us
                node.deps += [delay_until[before_us]] if before_us else []
                delay_until[us] = self._add(node)
            for task, us in zip(tasks, moments_us, strict=True):
                self.begins[task] += [delay_until[us]] if us else []

    def add_window(self) -> None:
        """Places in the in-flight window: the k-th chunk enters once the one that many places before it has left."""
        program, run = self.program, self.run
        if not program.max_in_flight:
            return
        enters, leaves = np.flatnonzero(program.enters_window), np.flatnonzero(program.leaves_window)
        enters = enters[np.argsort(run.start_ps[enters], kind="stable")]
        leaves = leaves[np.argsort(run.end_ps[leaves], kind="stable")]
        for enter, leave in zip(enters[program.max_in_flight :].tolist(), leaves.tolist(), strict=False):
            source, target, end_ps = int(program.die[leave]), int(program.die[enter]), int(run.end_ps[leave])
            if source == target:
                self.begins[enter] += self.ends[leave]
            else:
                name = f"free place {self._label(leave)}"
                sent, received = self._message(name, source, target, CONTROL_BYTES, end_ps, end_ps)
                self.waits.append((sent, self.ends[leave]))
                self.begins[enter].append(received)

    def finished(self) -> list[Node]:
        """Put tasks in the order of their dies, and lay all waits down."""
        program = self.program
        for first, stop in pairwise(program.die_ptr.tolist()):
            for before, task in pairwise(program.die_tasks[first:stop].tolist()):
                self.begins[task] += self.ends[before]
        for position, awaited in self.waits:
            self.nodes[position].deps += awaited
        for node in self.nodes:
            node.deps = list(dict.fromkeys(node.deps))
        return self.nodes

    def _message(self, name: str, source: int, target: int, size: int, sent_ps: int, got_ps: int) -> tuple[int, int]:
        """A send and its receipt, between two dies."""
        here, there = self.npu_of_die[source], self.npu_of_die[target]
        send = Node(here, NodeType.SEND, f"send {name}", sent_ps)
        receipt = Node(there, NodeType.RECV, f"receive {name}", got_ps)
        for node in (send, receipt):
            node.source, node.target, node.size_bytes, node.tag = here, there, size, self.messages
        self.messages += 1
        return self._add(send), self._add(receipt)

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _label(self, task: int) -> str:
        program = self.program
        return f"wave {program.wave[task]} stage {program.stage[task]} chunk {program.chunk[task]}"
