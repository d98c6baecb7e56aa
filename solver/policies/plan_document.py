"""A plan's program written down, with the keys of a program file (spec section 3, "Program").

For what no plan can say: another order on a die, other durations, tasks that are held back.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from instances.instance import Instance
from instances.plan import Plan
from solver.serving.machine import bytes_number, machine_fields
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import Int64s, Program
from solver.simulation.program_document import HOST


def document_of(
    instance: Instance, plan: Plan, program: Program, not_before_ps: Int64s | None = None
) -> dict[str, Any]:
    """The document of a program, for ``solver.simulation.program_file.read_program``.

    Parameters
    ----------
    plan
        What the program was lowered from; durations and the order of each die may have changed since, but no task of
        it is held back: its earliest starts are arrivals.
    not_before_ps
        Moment until which each task is held back, shape (T,).

    Returns
    -------
    dict
        Durations are whole picoseconds, and bytes the program's units, as numbers that read back the same; so are
        moments up to two hours, beyond which a double misses some picoseconds. The network is the instance's.
    """
    stages = program.stages
    first = (program.stage == 0) & (program.chunk == 0)
    # Tasks are numbered by (wave, chunk, stage).
    starts = [*first.nonzero()[0].tolist(), program.tasks]
    waves = [slice(start, stop) for start, stop in pairwise(starts)]
    die = program.die_of_stage()
    document: dict[str, Any] = {
        "die_of": [list(position) for position in plan.placement],
        "compute_s": [_by_stage(program.duration_ps[wave], stages, PICOSECONDS_PER_S) for wave in waves],
        "activation_bytes": [_by_stage(program.send_units[wave], stages, program.units_per_byte)[0] for wave in waves],
        "kv_bytes": [_by_stage(program.take_units[wave], stages, program.units_per_byte) for wave in waves],
        "arrivals_s": (program.earliest_ps[first] / PICOSECONDS_PER_S).tolist(),
        "order": [
            [[int(label[task]) for label in (program.wave, program.stage, program.chunk)] for task in tasks.tolist()]
            for tasks in (
                program.die_tasks[program.die_ptr[number] : program.die_ptr[number + 1]]
                for number in range(program.dies)
            )
        ],
        "capacity_bytes": [program.bytes_of(program.capacity_units[index]) for index in die],
        "static_bytes": [program.bytes_of(program.static_units[index]) for index in die],
        "serve_fraction": program.serve_fraction,
        "overlap": program.overlap,
        "max_in_flight": instance.pipeline.max_in_flight,
    }
    if len(program.write_units):
        document["spill"] = _spill(program)
    if not_before_ps is not None:
        document["not_before_s"] = [_by_stage(not_before_ps[wave], stages, PICOSECONDS_PER_S) for wave in waves]
    return document | machine_fields(instance)


def _spill(program: Program) -> list[dict[str, Any]]:
    """One row for each write, which belongs to one wave."""
    tasks = np.repeat(np.arange(program.tasks), np.diff(program.write_ptr))
    creditors = np.where(program.slot_is_host, -1, program.slot_stage)[program.write_slot]
    return [
        {
            "wave": int(program.wave[task]),
            "stage": int(program.stage[task]),
            "chunk": int(program.chunk[task]),
            "creditor": HOST if creditor < 0 else creditor,
            "bytes": bytes_number(units, program.units_per_byte),
        }
        for task, creditor, units in zip(tasks.tolist(), creditors.tolist(), program.write_units.tolist(), strict=True)
    ]


def _by_stage(amounts: Int64s, stages: int, unit: int) -> list[list[float]]:
    """Amounts of a wave's tasks by stage and chunk, divided by a unit."""
    rows: list[list[float]] = (amounts.reshape(-1, stages).T / unit).tolist()
    return rows
