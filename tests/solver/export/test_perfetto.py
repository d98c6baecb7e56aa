"""Timelines: sound for every viewer, also where much is moved about, and of a size that a browser takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from solver.export import export_result
from solver.result import Result
from solver.simulation.trace import trace_events
from tests.solver.export.results import small_result, spilling_result, wafer_result
from tests.solver.export.trace_checks import assert_sound
from tests.solver.simulation.documents import run_document
from tests.strategies import programs


def _exported(result: Result, path: Path) -> dict[str, Any]:
    export_result(result, "perfetto", path)
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("overlap", [True, False])
def test_a_plan_that_moves_everything_about_gives_a_sound_trace(tmp_path: Path, overlap: bool) -> None:
    document = _exported(spilling_result(pipeline__overlap=overlap), tmp_path / "trace.json")
    phases = assert_sound(document)
    # 4 waves of 8 chunks on 4 stages are 128 tasks with 96 activations between stages. 7 chunks of each wave and stage
    # make 3 writes, and so do 7 chunks fetch from 3 places: 2 * 4*4*7*3 = 672 more slices. Two thirds of the 336
    # fetches stall a die: 224. On links, an activation holds 1, and three writes or fetches hold 2 (diagonal), 1 and 1.
    assert phases["s"] == phases["f"] == 96
    assert phases["X"] == 128 + 672 + 224 + 96 + 2 * 4 * 4 * 7 * 4
    assert phases["C"] > 0


def test_a_trace_says_where_it_comes_from(tmp_path: Path) -> None:
    result = small_result()
    origin = _exported(result, tmp_path / "trace.json")["otherData"]
    assert origin["fingerprint"] == result.fingerprint
    assert origin["instance"] == "small"
    assert origin["method"] == "cpp"
    assert origin["waferplan_version"]


def test_sixteen_stages_and_64_chunks_fit_a_browser(tmp_path: Path) -> None:
    document = _exported(wafer_result(), tmp_path / "trace.json")
    phases = assert_sound(document)
    # 16 waves * 64 chunks * 16 stages; activations between 15 pairs of neighbours, each over one link.
    tasks, activations = 16 * 64 * 16, 16 * 64 * 15
    assert phases["X"] == tasks + activations
    assert phases["s"] == activations
    # Perfetto opens some hundred megabytes; this is about 10.6.
    assert (tmp_path / "trace.json").stat().st_size < 15e6


@settings(max_examples=50)
@given(programs())
def test_any_program_gives_a_sound_trace(document: dict[str, Any]) -> None:
    assert_sound(trace_events(*run_document(document, traced=True)))


@pytest.mark.parametrize(
    "change",
    [
        {"ph": "X", "dur": -1.0},
        {"ph": "X", "dur": 7.0},
        {"ph": "X", "dur": 1.0, "tid": 1},
        {"ph": "s", "id": 99, "cat": "activation", "name": "activation"},
        {"ph": "C", "name": "memory bytes", "args": {"own KV": 1}},
        {"ph": "B"},
    ],
    ids=["negative", "overlapping", "nameless track", "arrow without end", "two values at once", "unknown kind"],
)
def test_the_check_finds_what_is_wrong(change: dict[str, Any]) -> None:
    names = [
        {"name": "process_name", "ph": "M", "pid": 0, "args": {}},
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": 0, "args": {}},
    ]
    slices = [{"name": str(ts), "ph": "X", "pid": 0, "tid": 0, "ts": ts, "dur": 5.0} for ts in (0.0, 5.0)]
    counters = [{"name": "memory bytes", "ph": "C", "pid": 0, "ts": 3.0, "args": {"own KV": 1}}]
    assert_sound({"traceEvents": [*names, *slices, *counters]})
    damage = {"name": "damage", "pid": 0, "tid": 0, "ts": 3.0, **change}
    with pytest.raises(AssertionError):
        assert_sound({"traceEvents": [*names, *slices, *counters, damage]})
