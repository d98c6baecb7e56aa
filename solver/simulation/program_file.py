"""Program files: a replay's input as JSON, with the keys of the worked examples, and its outcome (spec section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from instances.errors import InputError
from solver.simulation.document_fields import LONGEST, as_number
from solver.simulation.engine import Run, run
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import Int64s, Program
from solver.simulation.program_document import read_document
from solver.simulation.program_from_document import program_of, ps_of
from solver.simulation.range_check import Cause, too_large
from solver.simulation.waiting import describe

_FIELDS: dict[Cause, str] = {
    "bytes": "kv_bytes, activation_bytes, spill, static_bytes",
    "compute": "compute_s",
    "arrivals": "arrivals_s, not_before_s",
    "links": "link_bytes_per_s",
    "host links": "host.host_bytes_per_s",
    "stalls": "serve_fraction",
    "latency": "hop_latency_s",
}
"""Fields behind the parts of a program that can be too large."""


def read_program(document: Mapping[str, Any], *, file: str | None = None) -> Program:
    """Lower the input part of a worked example, or a document with the same keys.

    Raises
    ------
    InputError
        If a key is missing or unknown, lists are ragged, or a number is out of range; names ``file`` if it is given.
    """
    try:
        program = program_of(read_document(document))
        if excess := too_large(program):
            raise InputError(_FIELDS[excess.cause], excess.says, "times and bytes that fit 62 bits together")
        return program
    except InputError as error:
        raise (error.in_file(file) if file else error) from None


def replay_document(document: Mapping[str, Any], *, file: str | None = None) -> dict[str, Any]:
    """Read a program document, run it, and give the keys of the expected part of a worked example.

    Raises
    ------
    InputError
        As ``read_program``.
    """
    program = read_program(document, file=file)
    return outcome(program, run(program), arrivals_ps(document))


def arrivals_ps(document: Mapping[str, Any]) -> Int64s:
    """Arrival of each wave of a document that was read."""
    return np.array(
        [ps_of(as_number(value, "arrivals_s", high=LONGEST)) for value in document["arrivals_s"]], dtype=np.int64
    )


def outcome(program: Program, result: Run, arrived_ps: Int64s | None = None) -> dict[str, Any]:
    """The keys of the expected part of a worked example; seconds and bytes. Arrivals of waves are those of their tasks
    unless they are given: in a document tasks can be held back.

    A deadlock has ``deadlock``, ``says``, ``reason`` in words, ``stage`` and ``bytes`` of the first that waits for
    memory (null if none does), and ``waiting``, one entry for each stage that waits.
    """
    if result.deadlock:
        rows = [
            {
                "stage": int(program.stage[one.task]),
                "wave": int(program.wave[one.task]),
                "chunk": int(program.chunk[one.task]),
                "reason": one.reason,
                "bytes": program.bytes_of(one.units) if one.reason == "memory" else None,
                "missing_bytes": program.bytes_of(one.missing_units) if one.reason == "memory" else None,
            }
            for one in result.waiting
        ]
        never_ran = int((result.end_ps < 0).sum())
        return {
            "deadlock": True,
            "says": f"{never_ran} tasks never ran",
            "reason": describe(program, result.waiting, never_ran),
            "stage": rows[0]["stage"],
            "bytes": rows[0]["bytes"],
            "waiting": rows,
        }
    names = [
        f"{wave},{stage},{chunk}" for wave, stage, chunk in zip(program.wave, program.stage, program.chunk, strict=True)
    ]
    order = sorted(range(program.tasks), key=lambda task: (program.wave[task], program.stage[task], task))
    starts, ends = ((times / PICOSECONDS_PER_S).tolist() for times in (result.start_ps, result.end_ps))
    done_ps = np.zeros(program.waves, dtype=np.int64)
    np.maximum.at(done_ps, program.wave, result.end_ps)
    if arrived_ps is None:
        arrived_ps = np.zeros(program.waves, dtype=np.int64)
        np.maximum.at(arrived_ps, program.wave, program.earliest_ps)
    die_of_stage = program.die_of_stage()
    return {
        "deadlock": False,
        "makespan_s": max(ends),
        "latency_s": ((done_ps - arrived_ps) / PICOSECONDS_PER_S).tolist(),
        "peak_memory_bytes": [program.bytes_of(result.peak_units[die]) for die in die_of_stage],
        "stall_s": [int(result.stall_ps[die]) / PICOSECONDS_PER_S for die in die_of_stage],
        "start_s": {names[task]: starts[task] for task in order},
        "end_s": {names[task]: ends[task] for task in order},
    }
