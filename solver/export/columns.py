"""The events of a traced run as tables of columns, for analysis; units are in the names of the columns.

A host has no row and no column: they are -1 here, and null in the files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.export.source import events_of
from solver.simulation.engine import Run
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import Int64s, Program

Column = NDArray[Any]
Table = dict[str, Column]

TRANSFER_KINDS = ("activation", "spill write", "remote fetch")
"""Names of the engine's kinds of transfer, by number."""


def tables_of(program: Program, run: Run) -> dict[str, Table]:
    """Tables by name.

    Returns
    -------
    dict
        ``tasks``: one row a task, with its labels and die; without overlap compute starts later than the task. Times
        are NaN where a task never ran.
        ``transfers``: one row a transfer in the order of request, with the task that asked for it (the producer, writer
        or reader), its ends, bytes, times and number of links.
        ``memory``: one row a change of a memory, in order; used bytes include static ones, and hosted ones, which
        belong to others.
        ``stalls``: one row a service during which a die's compute stood still.
        ``links``: one row a directed link, with what it carried and how long it was held.

    Raises
    ------
    ValueError
        If the run was not traced.
    """
    return {
        "tasks": _tasks(program, run),
        "transfers": _transfers(program, run),
        "memory": _memory(program, run),
        "stalls": _stalls(program, run),
        "links": _links(program, run),
    }


def _tasks(program: Program, run: Run) -> Table:
    return {
        **_labels(program, np.arange(program.tasks)),
        **_place(program, program.die, "die"),
        "earliest_s": _seconds(program.earliest_ps),
        "start_s": _moments(run.start_ps),
        "compute_start_s": _moments(run.compute_start_ps),
        "compute_s": _seconds(program.duration_ps),
        "end_s": _moments(run.end_ps),
    }


def _transfers(program: Program, run: Run) -> Table:
    kind, source, target, task, units, requested, start, arrival = events_of(run).transfers.T
    on_mesh = (source >= 0) & (target >= 0)
    return {
        "kind": np.array(TRANSFER_KINDS)[kind],
        **_labels(program, task),
        **_place(program, source, "from"),
        **_place(program, target, "to"),
        "size_bytes": _bytes(program, units),
        "requested_s": _seconds(requested),
        "start_s": _seconds(start),
        "arrival_s": _seconds(arrival),
        "hops": np.where(on_mesh, program.network.hops[source, target], 0).astype(np.int32),
    }


def _memory(program: Program, run: Run) -> Table:
    time, memory, used, hosted = events_of(run).memory.T
    host, die = np.divmod(memory, program.dies)
    return {
        "time_s": _seconds(time),
        "memory": np.array(("die", "host"))[host],
        # A host serves one die and is named by it.
        **_place(program, die, "die"),
        "used_bytes": _bytes(program, used),
        "hosted_bytes": _bytes(program, hosted),
    }


def _stalls(program: Program, run: Run) -> Table:
    die, start, length = events_of(run).stalls.T
    return {**_place(program, die, "die"), "start_s": _seconds(start), "length_s": _seconds(length)}


def _links(program: Program, run: Run) -> Table:
    network = program.network
    ends = network.link_ends
    names = [network.link_name(link) for link in range(len(ends))]
    return {
        "link": np.array(names, dtype=np.str_),
        "from_row": ends[:, 0],
        "from_column": ends[:, 1],
        "to_row": ends[:, 2],
        "to_column": ends[:, 3],
        "bandwidth_bytes_per_s": network.link_bytes_per_s,
        "carried_bytes": _bytes(program, run.link_units),
        "busy_s": _seconds(run.link_busy_ps),
    }


def _labels(program: Program, task: Int64s) -> Table:
    return {"wave": program.wave[task], "stage": program.stage[task], "chunk": program.chunk[task]}


def _place(program: Program, die: Column, name: str) -> Table:
    row, column = np.where(die < 0, -1, program.network.dies[die].T)
    return {f"{name}_row": row.astype(np.int32), f"{name}_column": column.astype(np.int32)}


def _bytes(program: Program, units: Int64s) -> Column:
    return units / program.units_per_byte


def _seconds(ps: Int64s) -> Column:
    return ps / PICOSECONDS_PER_S


def _moments(ps: Int64s) -> Column:
    return np.where(ps < 0, np.nan, ps / PICOSECONDS_PER_S)
