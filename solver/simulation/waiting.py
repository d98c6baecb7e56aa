"""Why a replay stopped early: who waits, for what (spec section 3, rule ``deadlock``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from solver.simulation.program import Int64s, Program

Reason = Literal["memory", "activation", "window"]


@dataclass(frozen=True)
class Waiting:
    """The next task of a die, and what keeps it from starting when no event is left.

    Parameters
    ----------
    task, die
        Indices in the program.
    reason
        "memory" (its KV does not fit), "activation" (not arrived) or "window" (``max_in_flight`` chunks are inside).
    units
        Memory that the task asks for when it starts; for reason "memory" that is what it waits for.
    missing_units
        How much of that is not free; 0 for other reasons.
    write_units, write_memory
        The die's first spill write that is not granted, and the memory that it waits for (d: die d, D + d: its host);
        0 and -1 without one.
    """

    task: int
    die: int
    reason: Reason
    units: int
    missing_units: int
    write_units: int = 0
    write_memory: int = -1


def who_waits(
    program: Program,
    *,
    next_position: Int64s,
    used_units: Int64s,
    inputs_left: Int64s,
    inside: int,
    writes: Mapping[int, tuple[int, int]],
) -> tuple[Waiting, ...]:
    """What each die with tasks left waits for when no event is left, those that wait for memory first.

    ``writes`` has units and memory of the first spill write of a die that is not granted.
    """
    found = []
    for die in range(program.dies):
        if next_position[die] == program.die_ptr[die + 1]:
            continue
        task = int(program.die_tasks[next_position[die]])
        take = int(program.take_units[task])
        missing = int(used_units[die]) + take - int(program.capacity_units[die])
        reason: Reason = "memory"
        if inputs_left[task] > 0:
            reason = "activation"
        elif program.enters_window[task] and 0 < program.max_in_flight <= inside:
            reason = "window"
        found.append(Waiting(task, die, reason, take, missing if reason == "memory" else 0, *writes.get(die, (0, -1))))
    return tuple(sorted(found, key=lambda waiting: (waiting.reason != "memory", waiting.task)))


def describe(program: Program, waiting: tuple[Waiting, ...], never_ran: int) -> str:
    """The deadlock in words: how many tasks never ran (left out if 0), and what every stage waits for."""
    sentences = "; ".join(_sentence(program, one) for one in waiting)
    return f"{never_ran} tasks never ran: {sentences}" if never_ran else sentences


def _sentence(program: Program, one: Waiting) -> str:
    task = one.task
    who = f"stage {program.stage[task]} (wave {program.wave[task]}, chunk {program.chunk[task]}) waits for"
    if one.reason == "memory":
        capacity = program.bytes_of(program.capacity_units[one.die])
        asked, missing = program.bytes_of(one.units), program.bytes_of(one.missing_units)
        says = f"{who} {asked:.15g} bytes of memory, {missing:.15g} more than its {capacity:.15g} bytes have free"
        return says + _waiting_write(program, one)
    if one.reason == "window":
        return f"{who} one of the {program.max_in_flight} chunks in flight to leave"
    return f"{who} its activations"


def _waiting_write(program: Program, one: Waiting) -> str:
    if one.write_memory < 0:
        return ""
    size = program.bytes_of(one.write_units)
    if one.write_memory >= program.dies:
        room = program.bytes_of(program.host_capacity_units[one.write_memory - program.dies])
        return f", while its spill of {size:.15g} bytes finds no room in the {room:.15g} bytes of its host"
    stage = int(program.first_stage_of_die()[one.write_memory])
    return f", while its spill of {size:.15g} bytes finds no room at stage {stage}"
