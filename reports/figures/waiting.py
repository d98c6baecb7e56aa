"""What keeps stages from computing: waits, stalls, and KV on its way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from instances.numbers import Unit, byte_text
from reports.figure import Row, rows_of
from reports.palette import BLUE, ORANGE, PURPLE, VERMILION
from reports.source import Replayed

KINDS = {"wait for KV": BLUE, "stall (serving a fetch)": VERMILION, "spill write": PURPLE, "remote fetch": ORANGE}


def waits_and_transfers(view: Replayed, unit: Unit, most: int) -> tuple[list[Row], int]:
    """Waits, stalls and spill on its way, the longest ones, and how many are left out."""
    found = [*_waits(view), *_stalls(view), *_transfers(view)]
    longest = sorted(found, key=lambda row: row[2] - row[3])[:most]
    rows = []
    for kind, stage, begins, ends, size in longest:
        upper = kind in ("spill write", "remote fetch")
        top, low = (stage - 0.46, stage - 0.2) if upper else (stage + 0.24, stage + 0.46)
        rows.append(
            {
                "kind": kind,
                "stage": str(stage),
                "start": begins / unit.size,
                "end": ends / unit.size,
                "top": top,
                "low": low,
                "size": byte_text(size),
            }
        )
    columns = {key: [row[key] for row in rows] for key in rows[0]} if rows else {}
    return (rows_of(columns) if columns else []), len(found) - len(longest)


_Extra = tuple[str, int, float, float, float | None]


def _waits(view: Replayed) -> list[_Extra]:
    """Times within a task in which it neither computes nor serves: its fetches are still on their way."""
    tasks, program = view.tables["tasks"], view.program
    start, compute_start, end = tasks["start_s"], tasks["compute_start_s"], tasks["end_s"]
    tail = end - compute_start - tasks["compute_s"] - _stalled(view)
    least = view.makespan_s * 1e-6
    rows: list[_Extra] = []
    for task in np.flatnonzero(compute_start - start > least).tolist():
        rows.append(("wait for KV", int(program.stage[task]), float(start[task]), float(compute_start[task]), None))
    for task in np.flatnonzero(tail > least).tolist():
        rows.append(("wait for KV", int(program.stage[task]), float(end[task] - tail[task]), float(end[task]), None))
    return rows


def _stalled(view: Replayed) -> NDArray[np.float64]:
    """Service time within each task: stalls of its die that lie inside."""
    tasks, program, stalls = view.tables["tasks"], view.program, view.events.stalls
    found = np.zeros(program.tasks)
    for die in np.unique(stalls[:, 0]).tolist():
        own = stalls[stalls[:, 0] == die]
        begins = np.sort(own[:, 1]) / 1e12
        total = np.concatenate([[0.0], np.cumsum(own[np.argsort(own[:, 1], kind="stable"), 2]) / 1e12])
        mine = np.flatnonzero(program.die == die)
        low = np.searchsorted(begins, tasks["compute_start_s"][mine] - 1e-13)
        high = np.searchsorted(begins, tasks["end_s"][mine] - 1e-13)
        found[mine] = total[high] - total[low]
    return found


def _stalls(view: Replayed) -> list[_Extra]:
    first = view.program.first_stage_of_die()
    return [
        ("stall (serving a fetch)", int(first[die]), start / 1e12, (start + length) / 1e12, None)
        for die, start, length in view.events.stalls.tolist()
        if length
    ]


def _transfers(view: Replayed) -> list[_Extra]:
    table, program = view.tables["transfers"], view.program
    chosen = np.flatnonzero((table["kind"] != "activation") & (table["arrival_s"] > table["start_s"]))
    rows: list[_Extra] = []
    for row in chosen.tolist():
        kind, stage = str(table["kind"][row]), int(table["stage"][row])
        begins, ends = float(table["start_s"][row]), float(table["arrival_s"][row])
        rows.append((kind, min(stage, program.stages - 1), begins, ends, float(table["size_bytes"][row])))
    return rows
