"""Writes a traced run as trace events for Perfetto or chrome://tracing.

One process a die, with a track for compute and tracks for its spill writes, remote fetches and service stalls, which
may overlap and then take further tracks; one process for the links, with a track for each directed link; a memory
counter for each die; an arrow from each chunk to the same chunk at the next stage. Times are microseconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from solver.simulation.columns import ACTIVATION, FETCH, WRITE
from solver.simulation.engine import Events, Run
from solver.simulation.program import Program

_PS_PER_US = 10**6
_COMPUTE_TRACK = 0
# First track of each kind; the tracks after it serve where slices overlap.
_FIRST_TRACK = {"spill write": 1000, "remote fetch": 2000, "service stall": 3000}

Event = dict[str, Any]


def trace_events(program: Program, run: Run) -> dict[str, Any]:
    """The trace as an object ready for JSON, events in order of time.

    Raises
    ------
    ValueError
        If the run was not traced.
    """
    if run.events is None:
        raise ValueError("this run was not traced; use run(program, traced=True)")
    timed = [
        *_compute(program, run),
        *_arrows(program, run, run.events),
        *_transfers(program, run.events),
        *_stalls(program, run.events),
        *_links(program, run.events),
        *_memory(program, run.events),
    ]
    timed.sort(key=lambda event: float(event["ts"]))
    tracks = sorted({(event["pid"], event["tid"]) for event in timed if "tid" in event})
    return {"traceEvents": [*_names(program, tracks), *timed], "displayTimeUnit": "ns"}


def write_trace(path: Path, program: Program, run: Run) -> None:
    """Write the trace as JSON.

    Raises
    ------
    ValueError
        If the run was not traced.
    """
    path.write_text(json.dumps(trace_events(program, run), separators=(",", ":")), encoding="utf-8")


def _compute(program: Program, run: Run) -> Iterator[Event]:
    for task, (start, end) in enumerate(zip(run.start_ps.tolist(), run.end_ps.tolist(), strict=True)):
        if end >= 0:
            labels = {name: int(getattr(program, name)[task]) for name in ("wave", "stage", "chunk")}
            duration_us = int(program.duration_ps[task]) / _PS_PER_US
            name, pid = _name(program, task), int(program.die[task])
            yield _slice(name, "compute", pid, _COMPUTE_TRACK, start, end, **labels, compute_us=duration_us)


def _arrows(program: Program, run: Run, events: Events) -> Iterator[Event]:
    number = len(events.transfers)
    for transfer, (kind, _, _, task, *_) in enumerate(events.transfers.tolist()):
        if kind == ACTIVATION:
            yield from _arrow(program, run, transfer, task)
    # Inside a die there is no transfer, only the hand-over.
    reader = program.successor
    for task in np.flatnonzero((reader >= 0) & (program.die[reader] == program.die)).tolist():
        yield from _arrow(program, run, number + task, task)


def _arrow(program: Program, run: Run, number: int, task: int) -> Iterator[Event]:
    reader = int(program.successor[task])
    if run.end_ps[reader] >= 0:
        # An arrow leaves the slice that encloses its start: just before the end.
        leaves = max(int(run.start_ps[task]), int(run.end_ps[task]) - 1)
        common = {"name": "activation", "cat": "activation", "id": number, "tid": _COMPUTE_TRACK}
        yield {**common, "ph": "s", "pid": int(program.die[task]), "ts": leaves / _PS_PER_US}
        arrives = int(run.start_ps[reader]) / _PS_PER_US
        yield {**common, "ph": "f", "bp": "e", "pid": int(program.die[reader]), "ts": arrives}


def _transfers(program: Program, events: Events) -> Iterator[Event]:
    rows = []
    for kind, source, target, task, units, requested, start, arrival in events.transfers.tolist():
        if kind in (WRITE, FETCH):
            other = target if kind == WRITE else source
            text = f"{_name(program, task)} {'to' if kind == WRITE else 'from'} {_die_name(program, other)}"
            arguments = {"bytes": program.bytes_of(units), "requested_us": requested / _PS_PER_US}
            category = "spill write" if kind == WRITE else "remote fetch"
            rows.append((text, category, source if kind == WRITE else target, start, arrival, arguments))
    yield from _on_free_tracks(rows)


def _stalls(program: Program, events: Events) -> Iterator[Event]:
    rows: list[_Row] = [
        ("serves a fetch", "service stall", die, start, start + length, {})
        for die, start, length in events.stalls.tolist()
    ]
    yield from _on_free_tracks(rows)


def _links(program: Program, events: Events) -> Iterator[Event]:
    names = {ACTIVATION: "activation", WRITE: "spill write", FETCH: "remote fetch"}
    for transfer, link, start, end in events.holds.tolist():
        kind, _, _, task, units, *_ = events.transfers[transfer].tolist()
        text = f"{names[kind]} {_name(program, task)}"
        yield _slice(text, names[kind], program.dies, link, start, end, bytes=program.bytes_of(units))


def _memory(program: Program, events: Events) -> Iterator[Event]:
    last: dict[tuple[int, int], Event] = {}
    for time, memory, used, hosted in events.memory.tolist():
        host, die = divmod(memory, program.dies)
        fixed = 0 if host else int(program.static_units[die])
        series = {"host": hosted} if host else {"static": fixed, "own KV": used - hosted - fixed, "hosted KV": hosted}
        # Of several changes in one instant, the last is what counts.
        last[memory, time] = {
            "name": "host bytes" if host else "memory bytes",
            "ph": "C",
            "pid": die,
            "ts": time / _PS_PER_US,
            "args": {name: program.bytes_of(units) for name, units in series.items()},
        }
    yield from last.values()


_Row = tuple[str, str, int, int, int, dict[str, float]]


def _on_free_tracks(rows: Iterable[_Row]) -> Iterator[Event]:
    """Slices of each die and kind, each on the first track that is free: slices of one track must not overlap."""
    free: dict[tuple[int, str], list[int]] = {}
    for text, category, die, start, end, arguments in sorted(rows, key=lambda row: (row[3], row[4])):
        tracks = free.setdefault((die, category), [])
        track = next((track for track, until in enumerate(tracks) if until <= start), len(tracks))
        tracks[track : track + 1] = [end]
        yield _slice(text, category, die, _FIRST_TRACK[category] + track, start, end, **arguments)


def _slice(name: str, category: str, pid: int, tid: int, start: int, end: int, **arguments: float) -> Event:
    ts, until = start / _PS_PER_US, end / _PS_PER_US
    duration = round(until - ts, 6)
    if ts + duration > until:
        # Doubles: the sum must not reach into the next slice. Unrounded, the difference is exact or a step or two off.
        duration = until - ts
        while ts + duration > until:
            duration = math.nextafter(duration, 0.0)
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "dur": duration,
        "args": arguments,
    }


def _names(program: Program, tracks: Iterable[tuple[int, int]]) -> Iterator[Event]:
    stages: list[list[str]] = [[] for _ in range(program.dies)]
    for stage, die in enumerate(program.die_of_stage()):
        stages[die].append(str(stage))
    for die, numbers in enumerate(stages):
        title = f"die {_die_name(program, die)} stage {', '.join(numbers)}"
        yield _metadata("process_name", die, {"name": title})
        yield _metadata("process_sort_index", die, {"sort_index": die})
    yield _metadata("process_name", program.dies, {"name": "links"})
    yield _metadata("process_sort_index", program.dies, {"sort_index": program.dies})
    for pid, tid in tracks:
        if pid == program.dies:
            title = program.network.link_name(tid)
        else:
            title = next((kind for kind, first in _FIRST_TRACK.items() if 0 <= tid - first < 1000), "compute")
        yield _metadata("thread_name", pid, {"name": title}, tid)
        yield _metadata("thread_sort_index", pid, {"sort_index": tid}, tid)


def _metadata(name: str, pid: int, arguments: dict[str, object], tid: int | None = None) -> Event:
    return {"name": name, "ph": "M", "pid": pid, "args": arguments} | ({} if tid is None else {"tid": tid})


def _name(program: Program, task: int) -> str:
    return f"wave {program.wave[task]} stage {program.stage[task]} chunk {program.chunk[task]}"


def _die_name(program: Program, die: int) -> str:
    if die < 0:
        return "host"
    row, column = program.network.dies[die].tolist()
    return f"({row},{column})"
