"""Runs a program: builds the tables, calls the compiled loop, names what comes back (spec section 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solver.simulation import columns as c
from solver.simulation.kernel import simulate
from solver.simulation.program import Int64s, Program
from solver.simulation.tables import Tables, pack
from solver.simulation.waiting import Waiting, who_waits


@dataclass(frozen=True, eq=False)
class Events:
    """What a traced run saw, in the order in which it happened (memory, stalls) or was requested (transfers).

    Parameters
    ----------
    transfers
        Columns: kind (0 activation, 1 spill write, 2 remote fetch), from die, to die (-1: the host of the other), task
        (producer, writer or reader), units, requested, start, arrival (ps).
    holds
        Columns: transfer (row of ``transfers``), link, start, end (ps): one row for each link of a transfer's route.
    memory
        Columns: time (ps), memory (d: die d, D + d: its host), units used, units hosted for others.
    stalls
        Columns: die, start, length (ps).
    """

    transfers: Int64s
    holds: Int64s
    memory: Int64s
    stalls: Int64s


@dataclass(frozen=True, eq=False)
class Run:
    """What a replay measured, in picoseconds and units.

    Parameters
    ----------
    start_ps, end_ps, compute_start_ps
        Of each task, -1 where it never ran; compute starts with the task, or without overlap when its fetches are
        there. Shape [T].
    stall_ps, peak_units, host_peak_units
        Service time imposed on each die, and the most that its memory and its host's held. Shape [D].
    link_units, link_busy_ps
        What each link carried and how long it was held; host links come last. Shape [L].
    byte_hops_units
        Units times hops over all transfers, host traffic not counted.
    deadlock, waiting
        Whether tasks remain, and then what each die waits for.
    events
        What a traced run saw; None if it was not traced.
    """

    start_ps: Int64s
    end_ps: Int64s
    compute_start_ps: Int64s
    stall_ps: Int64s
    peak_units: Int64s
    host_peak_units: Int64s
    link_units: Int64s
    link_busy_ps: Int64s
    byte_hops_units: int
    deadlock: bool
    waiting: tuple[Waiting, ...]
    events: Events | None


def run(program: Program, *, traced: bool = False) -> Run:
    """Replay a program.

    The program is taken as sound: call ``check_program`` first where it comes from outside.

    Parameters
    ----------
    traced
        Whether to keep every transfer, change of memory and stall; times and totals are the same either way.
    """
    tables = pack(program)
    records = np.empty((_most_records(program) if traced else 0, c.TRACE_COLUMNS), dtype=np.int64)
    none = np.empty((0, 0), dtype=np.int64)
    counters = simulate(*tables, float(program.serve_fraction), records, none, none)
    dies = program.dies
    deadlock = bool(counters[c.DONE] < program.tasks)
    return Run(
        start_ps=tables.tasks[:, c.START_PS],
        end_ps=tables.tasks[:, c.END_PS],
        compute_start_ps=tables.tasks[:, c.COMPUTE_PS],
        stall_ps=tables.dies[:, c.STALL_PS],
        peak_units=tables.pools[:dies, c.PEAK],
        host_peak_units=tables.pools[dies:, c.PEAK],
        link_units=tables.links[:, c.CARRIED],
        link_busy_ps=tables.links[:, c.BUSY_PS],
        byte_hops_units=int(counters[c.BYTE_HOPS]),
        deadlock=deadlock,
        waiting=_waiting(program, tables, int(counters[c.INSIDE])) if deadlock else (),
        events=_events(tables, records[: counters[c.RECORDS]]) if traced else None,
    )


def _waiting(program: Program, tables: Tables, inside: int) -> tuple[Waiting, ...]:
    return who_waits(
        program,
        next_position=tables.dies[:, c.NEXT],
        used_units=tables.pools[: program.dies, c.USED],
        inputs_left=tables.tasks[:, c.INPUTS],
        inside=inside,
        writes=_waiting_writes(tables),
    )


def _waiting_writes(tables: Tables) -> dict[int, tuple[int, int]]:
    """Units and memory of the first write of each die that is in a queue, in the order of the program's writes."""
    first: dict[int, tuple[int, int]] = {}
    for memory, write in enumerate(tables.pools[:, c.FIRST].tolist()):
        while write >= 0:
            die = int(tables.tasks[tables.writes[write, c.WRITER], c.DIE])
            first[die] = min(first.get(die, (write, memory)), (write, memory))
            write = int(tables.writes[write, c.AFTER])
    return {die: (int(tables.writes[write, c.UNITS]), memory) for die, (write, memory) in first.items()}


def _events(tables: Tables, records: Int64s) -> Events:
    kind = records[:, 0]
    transfers = records[kind == c.TRANSFER]
    path = transfers[:, 2]
    # The holds of a transfer precede it: the number of transfers noted before is the row of the one they belong to.
    row = np.cumsum(kind == c.TRANSFER)[kind == c.HOLD]
    return Events(
        transfers=np.column_stack(
            (transfers[:, 1], tables.paths[path, c.SOURCE], tables.paths[path, c.TARGET], transfers[:, 3:])
        ),
        holds=np.column_stack((row, records[kind == c.HOLD][:, 1:4])),
        memory=records[kind == c.MEMORY][:, 1:5],
        stalls=records[kind == c.STALL][:, 1:4],
    )


def _most_records(program: Program) -> int:
    """The most that a run can note."""
    tasks, writes = program.tasks, len(program.write_units)
    slots = np.diff(program.group_slot_ptr)
    fetches = int(slots[program.group].sum())
    transfers = tasks + writes + fetches
    longest = max(1, program.network.longest_route)
    changes = program.dies + tasks + 2 * writes + len(slots) + int(slots.sum())
    return transfers * (1 + longest) + changes + fetches
