"""The log of a replay in one plain form, from the engine's traced run or from the witness."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from solver.simulation.engine import run
from solver.simulation.program_file import read_program
from tests.reference.network import SWITCH
from tests.reference.program import Place
from tests.reference.simulator import Simulator

KINDS = ("activation", "write", "fetch")
Label = tuple[int, int, int]
Sent = tuple[str, Label, Place, Place, Fraction, int, int]
Hold = tuple[Place, Place, int, int]
Change = tuple[int, Place, Fraction]


@dataclass(frozen=True)
class ReplayLog:
    """Everything that happened, in order.

    Parameters
    ----------
    transfers
        Kind, task (wave, chunk, stage), from, to, bytes, start and arrival (ps), in the order of the requests; without
        those inside a die, which take no link and no time.
    holds
        From, to, start and end (ps) of the time for which each link of each transfer was held, in the same order.
    die_memory, host_memory
        Time (ps), place, bytes then in use: every change that changes something. Apart, because the page orders
        releases at several dies, but not a host's among them (each host serves one die, so nothing depends on it).
    stalls
        Die, start and length (ps) of every service that takes time.
    """

    transfers: list[Sent]
    holds: list[Hold]
    die_memory: list[Change]
    host_memory: list[Change]
    stalls: list[tuple[Place, int, int]]


def witness_log(simulator: Simulator) -> ReplayLog:
    program = simulator.program
    static = {(0, *die): program.static_bytes[stage] for stage, die in enumerate(program.die_of)}
    memory = _changes(static, ((row.time_ps, row.place, row.used_bytes) for row in simulator.memory_changes))
    transfers: list[Sent] = []
    holds: list[Hold] = []
    for sent in simulator.transfers:
        if sent.source == sent.target:
            continue
        label = (sent.task.wave, sent.task.chunk, sent.task.stage)
        transfers.append((sent.kind, label, sent.source, sent.target, sent.sent_bytes, sent.start_ps, sent.arrival_ps))
        holds += [(*link, *held_ps) for link, held_ps in zip(sent.links, sent.held_ps, strict=True)]
    return ReplayLog(
        transfers,
        holds,
        [change for change in memory if change[1][0] == 0],
        [change for change in memory if change[1][0] == 1],
        [((0, *stall.die), stall.start_ps, stall.duration_ps) for stall in simulator.stalls if stall.duration_ps],
    )


def engine_log(document: dict[str, Any]) -> ReplayLog:
    program = read_program(document)
    events = run(program, traced=True).events
    assert events is not None
    cells = [(int(row), int(column)) for row, column in program.network.dies]

    def place(die: int, other: int) -> Place:
        return (0, *cells[die]) if die >= 0 else (1, *cells[other])

    def end(row: int, column: int, other_row: int, other_column: int) -> Place:
        if row < -1:
            return SWITCH
        return (0, row, column) if row >= 0 else (1, other_row, other_column)

    def in_bytes(units: int) -> Fraction:
        return Fraction(units, program.units_per_byte)

    transfers: list[Sent] = []
    for kind, source, target, task, units, _, start_ps, arrival_ps in events.transfers.tolist():
        label = (int(program.wave[task]), int(program.chunk[task]), int(program.stage[task]))
        ends = (place(source, target), place(target, source))
        transfers.append((KINDS[kind], label, *ends, in_bytes(units), start_ps, arrival_ps))
    holds: list[Hold] = []
    for _, link, start_ps, end_ps in events.holds.tolist():
        row, column, other_row, other_column = program.network.link_ends[link].tolist()
        ends = (end(row, column, other_row, other_column), end(other_row, other_column, row, column))
        holds.append((*ends, start_ps, end_ps))
    static = {(0, *cells[die]): in_bytes(units) for die, units in enumerate(program.static_units.tolist())}
    places: list[Place] = [(0, *cell) for cell in cells] + [(1, *cell) for cell in cells]
    rows = events.memory.tolist()
    memory = _changes(static, ((time_ps, places[index], in_bytes(used)) for time_ps, index, used, _ in rows))
    return ReplayLog(
        transfers,
        holds,
        [change for change in memory if change[1][0] == 0],
        [change for change in memory if change[1][0] == 1],
        [(places[die], start_ps, length_ps) for die, start_ps, length_ps in events.stalls.tolist() if length_ps],
    )


def first_differences(one: ReplayLog, other: ReplayLog) -> dict[str, tuple[int, Any, Any]]:
    """For each part of the log that differs: the first row that does, in both (None after the end)."""
    found: dict[str, tuple[int, Any, Any]] = {}
    for part in fields(ReplayLog):
        rows = itertools.zip_longest(getattr(one, part.name), getattr(other, part.name))
        for number, (row, other_row) in enumerate(rows):
            if row != other_row:
                found[part.name] = (number, row, other_row)
                break
    return found


def _changes(static: dict[Place, Fraction], rows: Iterable[Change]) -> list[Change]:
    """Leave out rows that repeat what their place held before: its static bytes at first, nothing at a host."""
    used = dict(static)
    kept = []
    for time_ps, place, used_bytes in rows:
        if used.get(place, 0) != used_bytes:
            kept.append((time_ps, place, used_bytes))
        used[place] = used_bytes
    return kept
