"""The lowered plan: what every policy becomes before it is replayed (spec section 3, "Program").

Nothing here knows about models or policies: tasks with durations, transfers between dies, memory to take and to give
back. Times are whole picoseconds, memory whole units, of which ``units_per_byte`` make a byte, so that both are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.simulation.network import Network

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]
Bools = NDArray[np.bool_]

NO_LIMIT_UNITS = 1 << 61
"""Capacity of a memory without limit; sums of units stay below it."""


@dataclass(frozen=True, eq=False)
class Program:
    """Tasks 0..T-1, numbered by (wave, chunk, stage), which is the order that breaks ties.

    Shapes: T tasks, D dies in use, G groups (a group is one stage of one wave), S slots (a slot is one creditor of one
    group), E spill writes.

    Parameters
    ----------
    die, die_ptr, die_tasks
        Die of each task; tasks of die d, in the order it runs them: ``die_tasks[die_ptr[d]:die_ptr[d + 1]]``.
    duration_ps, earliest_ps
        Compute time; moment before which the task may not start: the arrival of its wave at stage 0, a hold, or 0. [T]
    inputs, successor, send_units
        Activation transfers to wait for; the task that gets this task's activation (-1: none) and its size. [T]
    take_units
        KV taken at the start of the task; a negative amount is a release. [T]
    group, closes_group
        Group of the task; whether its end frees all memory of the group, at home and at creditors. [T]
    enters_window, leaves_window, max_in_flight
        Tasks whose start (end) counts a chunk in (out), and how many may be inside; 0 means no limit. [T]
    write_ptr, write_slot, write_units
        Spill writes that the end of task t requests, in this order: entries write_ptr[t] to write_ptr[t + 1]. [E]
    group_slot_ptr, slot_die, slot_is_host, slot_stage
        Slots of a group in creditor order, host last. A creditor is a memory: its die, and the first stage on that die;
        a host slot names the group's own die, and any stage. [S]
    group_die, group_stage
        Home and stage of a group. Releases at several dies are handled in the order of their first stages. [G]
    capacity_units, static_units, host_capacity_units
        Memory of each die, what is taken for good, and host memory (0 where there is none). [D]
    stages
        Number of stages, which ``stage`` counts from 0.
    wave, stage, chunk
        Labels of the tasks, for reports only. [T]
    """

    die: Int32s
    die_ptr: Int64s
    die_tasks: Int32s
    duration_ps: Int64s
    earliest_ps: Int64s
    inputs: Int32s
    successor: Int32s
    send_units: Int64s
    take_units: Int64s
    group: Int32s
    closes_group: Bools
    enters_window: Bools
    leaves_window: Bools
    max_in_flight: int
    write_ptr: Int64s
    write_slot: Int32s
    write_units: Int64s
    group_slot_ptr: Int64s
    slot_die: Int32s
    slot_is_host: Bools
    slot_stage: Int32s
    group_die: Int32s
    group_stage: Int32s
    capacity_units: Int64s
    static_units: Int64s
    host_capacity_units: Int64s
    units_per_byte: int
    serve_fraction: float
    overlap: bool
    network: Network
    stages: int
    wave: Int32s
    stage: Int32s
    chunk: Int32s

    @property
    def tasks(self) -> int:
        """Number of tasks T."""
        return len(self.die)

    @property
    def dies(self) -> int:
        """Number of dies in use D."""
        return len(self.die_ptr) - 1

    @property
    def waves(self) -> int:
        """Number of waves."""
        return int(self.wave[-1]) + 1 if self.tasks else 0

    def die_of_stage(self) -> Int32s:
        """Index of the die that runs each stage, shape [stages]."""
        dies = np.zeros(self.stages, dtype=np.int32)
        dies[self.group_stage] = self.group_die
        return dies

    def first_stage_of_die(self) -> Int32s:
        """Number of the first stage on each die, shape [D]: the order among creditors and among releases."""
        first = np.full(self.dies, self.stages, dtype=np.int32)
        np.minimum.at(first, self.group_die, self.group_stage)
        return first

    def bytes_of(self, units: int | np.int64) -> float:
        """Units as bytes."""
        return int(units) / self.units_per_byte
