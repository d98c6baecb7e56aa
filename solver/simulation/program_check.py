"""Soundness of a lowered plan: lengths, ranges and the links between arrays, not whether it runs to its end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from solver.simulation.columns import MOST_TASKS
from solver.simulation.program import Program
from solver.simulation.range_check import too_large

_INT32, _INT64, _BOOL = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.bool_)
# Field -> (number type, what its length counts).
_ARRAYS = {
    "die": (_INT32, "tasks"),
    "die_ptr": (_INT64, "dies + 1"),
    "die_tasks": (_INT32, "tasks"),
    "duration_ps": (_INT64, "tasks"),
    "earliest_ps": (_INT64, "tasks"),
    "inputs": (_INT32, "tasks"),
    "successor": (_INT32, "tasks"),
    "send_units": (_INT64, "tasks"),
    "take_units": (_INT64, "tasks"),
    "group": (_INT32, "tasks"),
    "closes_group": (_BOOL, "tasks"),
    "enters_window": (_BOOL, "tasks"),
    "leaves_window": (_BOOL, "tasks"),
    "write_ptr": (_INT64, "tasks + 1"),
    "write_slot": (_INT32, "writes"),
    "write_units": (_INT64, "writes"),
    "group_slot_ptr": (_INT64, "groups + 1"),
    "slot_die": (_INT32, "slots"),
    "slot_is_host": (_BOOL, "slots"),
    "slot_stage": (_INT32, "slots"),
    "group_die": (_INT32, "groups"),
    "group_stage": (_INT32, "groups"),
    "capacity_units": (_INT64, "dies"),
    "static_units": (_INT64, "dies"),
    "host_capacity_units": (_INT64, "dies"),
    "wave": (_INT32, "tasks"),
    "stage": (_INT32, "tasks"),
    "chunk": (_INT32, "tasks"),
}


def check_program(program: Program) -> None:
    """Refuse a program that the engine would misread.

    Raises
    ------
    ValueError
        Naming the array and what is wrong with it.
    """
    for problem in _problems(program):
        raise ValueError(f"unsound program: {problem}")


def _problems(program: Program) -> Iterator[str]:
    # Generators, so that later checks may rely on what earlier ones established: the first problem stops the rest.
    yield from _shapes(program)
    yield from _ranges(program)
    yield from _structure(program)
    yield from _spill(program)
    if excess := too_large(program):
        yield excess.says


def _shapes(program: Program) -> Iterator[str]:
    lengths = {
        "tasks": program.tasks,
        "tasks + 1": program.tasks + 1,
        "dies": program.dies,
        "dies + 1": program.dies + 1,
        "groups": len(program.group_die),
        "groups + 1": len(program.group_die) + 1,
        "slots": len(program.slot_die),
        "writes": len(program.write_slot),
    }
    if not 0 < program.tasks <= MOST_TASKS:
        yield f"{program.tasks} tasks; from 1 to {MOST_TASKS} are possible"
    for name, (kind, length) in _ARRAYS.items():
        array: NDArray[np.generic] = getattr(program, name)
        if array.dtype != kind or array.shape != (lengths[length],):
            yield f"{name} is {array.dtype}{list(array.shape)}, not {kind}[{lengths[length]}] ({length})"
    if len(program.network.dies) != program.dies:
        yield f"the network joins {len(program.network.dies)} dies, the program uses {program.dies}"


def _ranges(program: Program) -> Iterator[str]:
    groups, slots = len(program.group_die), len(program.slot_die)
    for name, low, high in (
        ("die", 0, program.dies - 1),
        ("duration_ps", 0, None),
        ("earliest_ps", 0, None),
        ("inputs", 0, None),
        ("successor", -1, program.tasks - 1),
        ("send_units", 0, None),
        ("group", 0, groups - 1),
        ("write_slot", 0, slots - 1),
        ("write_units", 1, None),
        ("slot_die", 0, program.dies - 1),
        ("slot_stage", 0, program.stages - 1),
        ("group_die", 0, program.dies - 1),
        ("group_stage", 0, program.stages - 1),
        ("capacity_units", 0, None),
        ("static_units", 0, None),
        ("host_capacity_units", 0, None),
        ("stage", 0, program.stages - 1),
    ):
        array = getattr(program, name)
        outside = (array < low) | ((array > high) if high is not None else False)
        if outside.any():
            first = int(np.flatnonzero(outside)[0])
            yield f"{name}[{first}] = {array[first]} is not {'at least' if high is None else 'from'} {low}" + (
                "" if high is None else f" to {high}"
            )
    for name, last in (
        ("die_ptr", program.tasks),
        ("write_ptr", len(program.write_slot)),
        ("group_slot_ptr", slots),
    ):
        pointers = getattr(program, name)
        if pointers[0] != 0 or pointers[-1] != last or (np.diff(pointers) < 0).any():
            yield f"{name} does not rise from 0 to {last}"
    if program.units_per_byte < 1 or program.max_in_flight < 0:
        yield f"units_per_byte {program.units_per_byte}, max_in_flight {program.max_in_flight}: too small"
    if not (np.isfinite(program.serve_fraction) and program.serve_fraction >= 0):
        yield f"serve_fraction {program.serve_fraction} is not a finite number of at least 0"


def _structure(program: Program) -> Iterator[str]:
    runs_at = np.repeat(np.arange(program.dies), np.diff(program.die_ptr))
    if (np.bincount(program.die_tasks, minlength=program.tasks) != 1).any():
        yield "die_tasks does not name every task once"
    if (program.die[program.die_tasks] != runs_at).any():
        yield "die_tasks and die disagree"
    in_turn = program.die_tasks[np.argsort(program.group[program.die_tasks], kind="stable")]
    if ((np.diff(program.group[in_turn]) == 0) & (np.diff(in_turn) <= 0)).any():
        yield "die_tasks runs the chunks of a stage and wave out of order"
    successors = program.successor[program.successor >= 0]
    if (np.bincount(successors, minlength=program.tasks) != program.inputs).any():
        yield "inputs is not the number of tasks whose successor a task is"
    if (program.group_die[program.group] != program.die).any() or (
        program.group_stage[program.group] != program.stage
    ).any():
        yield "group_die or group_stage disagrees with die or stage"
    order = np.lexsort((program.stage, program.chunk, program.wave))
    if (order != np.arange(program.tasks)).any():
        yield "tasks are not numbered by (wave, chunk, stage)"


def _spill(program: Program) -> Iterator[str]:
    group = np.repeat(np.arange(len(program.group_die)), np.diff(program.group_slot_ptr))
    host, home = program.slot_is_host, program.group_die[group]
    if (host & (program.slot_die != home)).any():
        yield "slot_die of a host is not the group's own die"
    if (~host & (program.slot_die == home)).any():
        yield "a creditor is on the group's own die"
    place = np.where(host, program.stages, program.slot_stage)
    same_group = group[1:] == group[:-1]
    if (same_group & (np.diff(place) <= 0)).any():
        yield "slots of a group are not in order of slot_stage (the first of the creditor's die), host last"
    if (~host & (program.slot_stage != program.first_stage_of_die()[program.slot_die])).any():
        yield "slot_stage of a creditor is not the first stage of its die"
    if (host & (program.network.host_write_link[program.slot_die] < 0)).any():
        yield "a slot is at a host, but its die has no host link"
    writer = np.repeat(np.arange(program.tasks), np.diff(program.write_ptr))
    if (group[program.write_slot] != program.group[writer]).any():
        yield "write_slot names a slot of another group"
    if program.closes_group[writer].any():
        yield "a task that closes its group writes"
