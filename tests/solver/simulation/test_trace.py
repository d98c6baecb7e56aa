"""Traces: valid trace events, tracks that nest, arrows with both ends, counters that match the run."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.simulation.engine import run
from solver.simulation.program_file import read_program
from solver.simulation.trace import trace_events, write_trace
from tests.solver.simulation.documents import line, run_document, spill
from tests.solver.simulation.shared_dies import shared_die_programs
from tests.strategies import programs

# Stage 0 spills to stage 1 and to its host.
SPILLED = line(
    [[2, 5], [9, 1]],
    activation_bytes=[1, 1],
    kv_bytes=[[3, 1], [1, 1]],
    static_bytes=[0.5, 0],
    spill=[spill(0, 0, 1, 2), spill(0, 0, "host", 1)],
    host={"host_bytes": 4, "host_bytes_per_s": 1},
)


def _events(document: dict[str, Any]) -> list[dict[str, Any]]:
    program, outcome = run_document(document, traced=True)
    events: list[dict[str, Any]] = trace_events(program, outcome)["traceEvents"]
    return events


@settings(max_examples=80)
@given(st.one_of(programs(), shared_die_programs()))
def test_tracks_nest_arrows_end_and_time_rises(document: dict[str, Any]) -> None:
    events = _events(document)
    json.dumps(events, allow_nan=False)
    tracks, arrows = defaultdict(list), defaultdict(list)
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times)
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] in "sf":
            arrows[event["id"]].append(event)
    for slices in tracks.values():
        slices.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(slices))
    for start, end in arrows.values():
        assert (start["ph"], end["ph"], end["bp"]) == ("s", "f", "e")
        for arrow in (start, end):
            track = tracks[arrow["pid"], arrow["tid"]]
            assert any(begin <= arrow["ts"] <= stop for begin, stop in track)


def test_slices_show_the_run() -> None:
    events = _events(SPILLED)
    named = {(event["cat"], event["name"]): event for event in events if event["ph"] == "X"}
    # Stage 1's chunk 0 arrives at 3; its die stands still from 5 to 7, while 2 bytes go back: 3 + 9 + 2.
    # (The write of 2 bytes follows the activation on the link: 3 to 5.)
    compute = named["compute", "wave 0 stage 1 chunk 0"]
    assert (compute["pid"], compute["tid"], compute["ts"], compute["dur"]) == (1, 0, 3e6, 11e6)
    assert compute["args"] == {"wave": 0, "stage": 1, "chunk": 0, "compute_us": 9e6}
    write = named["spill write", "wave 0 stage 0 chunk 0 to (0,1)"]
    assert (write["pid"], write["ts"], write["dur"], write["args"]["bytes"]) == (0, 3e6, 2e6, 2)
    host_fetch = named["remote fetch", "wave 0 stage 0 chunk 1 from host"]
    assert (host_fetch["pid"], host_fetch["ts"], host_fetch["dur"]) == (0, 3e6, 1e6)
    stall = named["service stall", "serves a fetch"]
    assert (stall["pid"], stall["ts"], stall["dur"]) == (1, 5e6, 2e6)


def test_every_track_has_a_name() -> None:
    events = _events(SPILLED)
    used = {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"}
    titles = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert used <= titles.keys()
    assert {title for (pid, _), title in titles.items() if pid == 2} == {
        "(0,0)->(0,1)",
        "(0,1)->(0,0)",
        "(0,0)->host",
        "host->(0,0)",
    }
    processes = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert processes == ["die (0,0) stage 0", "die (0,1) stage 1", "links"]


def test_counters_show_memory() -> None:
    events = [event for event in _events(SPILLED) if event["ph"] == "C" and event["pid"] == 0]
    memory = [(event["ts"] / 1e6, event["args"]) for event in events if event["name"] == "memory bytes"]
    # 3 bytes at 0, 1 more at 2; the host has its byte at 3, stage 1 its two at 5; all is free at the end, at 7.
    assert [(time, args["own KV"]) for time, args in memory] == [(0, 3), (2, 4), (3, 3), (5, 1), (7, 0)]
    assert {args["static"] for _, args in memory} == {0.5}
    host = [(event["ts"] / 1e6, event["args"]["host"]) for event in events if event["name"] == "host bytes"]
    assert host == [(2, 1), (7, 0)]


def test_a_trace_is_written(tmp_path: Path) -> None:
    program, outcome = run_document(SPILLED, traced=True)
    write_trace(tmp_path / "trace.json", program, outcome)
    assert json.loads((tmp_path / "trace.json").read_text(encoding="utf-8")) == trace_events(program, outcome)


def test_a_run_must_be_traced() -> None:
    program = read_program(SPILLED)
    with pytest.raises(ValueError, match="traced=True"):
        trace_events(program, run(program))


def test_a_deadlock_can_be_traced() -> None:
    events = _events(line([[1, 1], [1, 1]], kv_bytes=[[1, 1], [1, 1]], capacity_bytes=[9, 1]))
    assert {event["name"] for event in events if event["ph"] == "X" and event["cat"] == "compute"} == {
        "wave 0 stage 0 chunk 0",
        "wave 0 stage 0 chunk 1",
        "wave 0 stage 1 chunk 0",
    }
    assert sum(event["ph"] == "s" for event in events) == 1


def test_arrows_lead_over_the_fold_too() -> None:
    # One chunk through four virtual stages on two dies: three arrows, the middle one inside the second die.
    document = line([[1], [1], [1], [1]], die_of=[[0, 0], [0, 1], [0, 1], [0, 0]], schedule="vpp")
    arrows = [(event["ph"], event["pid"]) for event in _events(document) if event["ph"] in "sf"]
    assert sorted(arrows) == [("f", 0), ("f", 1), ("f", 1), ("s", 0), ("s", 1), ("s", 1)]
    assert len({event["id"] for event in _events(document) if event["ph"] == "s"}) == 3
