"""Sarathi-Serve: the budget, the gate, memory, and what chunks do to the time between tokens."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.errors import InputError
from instances.instance import Instance
from solver.api import solve
from solver.limits import Limits
from solver.result import Result
from solver.serving.jobs import Log
from solver.serving.sarathi import run
from solver.serving.setting import setting_of
from solver.simulation.program_file import replay_document
from tests.searches import make_search
from tests.solver.cli.running import waferplan
from tests.solver.serving.building import FAST_LINKS, FITTED, row, traced

QUICK = Limits(time_s=30)
SECONDS: dict[str, Any] = {**FAST_LINKS, "costs": FITTED}


def logged(instance: Instance, budget: int, **knobs: object) -> Log:
    search = make_search(instance, "sarathi", budget=budget, **knobs)
    return run(search, setting_of(search, budget), budget)[0]


def solved(instance: Instance, **knobs: object) -> Result:
    return solve(instance, "sarathi", knobs=knobs, limits=QUICK)


def test_a_prompt_and_two_more_tokens() -> None:
    result = solved(traced(row(10, output_tokens=3), **SECONDS), budget=4)
    # 4 + 4 + 2 tokens of the prompt: 2 + 2 + 1.5 s; then two decodes of 1.25 s.
    assert result.metrics is not None
    assert (result.status, result.plan, result.objective.bound) == ("feasible", None, None)
    assert result.objective.value == pytest.approx(8.0)
    assert (result.metrics.ttft_s, result.metrics.tbt_s) == pytest.approx((5.5, 1.25))
    assert result.details["prediction_error_s"] == 0


def test_decodes_come_first_and_share_the_budget() -> None:
    log = logged(traced(row(2, output_tokens=9), row(9, 0.1, output_tokens=2), **SECONDS), 4)
    sizes = [[piece.tokens for piece in iteration.batch.pieces] for iteration in log.iterations]
    # The first prompt alone, then its decode beside 3 tokens of the second prompt at a time, then both decode.
    assert sizes == [[2], [1, 3], [1, 3], [1, 3], [1, 1], [1], [1], [1], [1]]


def test_a_long_prompt_no_longer_stalls_decodes() -> None:
    instance = traced(row(4, output_tokens=60), row(800, 2.5, output_tokens=1), **SECONDS)
    whole, chunked = solved(instance, budget=1024).metrics, solved(instance, budget=33).metrics
    assert whole is not None
    assert chunked is not None
    # One iteration of 801 tokens takes 1 + 801/4 s, one of 33 takes 1 + 33/4 s.
    assert whole.max_tbt_s == pytest.approx(201.25)
    assert chunked.max_tbt_s == pytest.approx(9.25)
    # The price: 25 chunks of 32 tokens pay 1 s each, where one chunk paid it once. 24 decodes ride along meanwhile.
    first = [metrics.p99_ttft_s or 0 for metrics in (whole, chunked)]
    assert first[1] - first[0] == pytest.approx(24 + 24 * 0.25)


def test_the_gate_admits_no_more_iterations_than_stages() -> None:
    log = logged(traced(*[row(6, output_tokens=5)] * 6, stages=2, **SECONDS), 8)
    launches = [iteration.launch_ps for iteration in log.iterations]
    ends = [iteration.ends_ps[-1] for iteration in log.iterations]
    assert all(launch >= end for launch, end in zip(launches[2:], ends, strict=False))
    # And both stages are used: some iteration starts while another one is inside.
    assert any(launch < end for launch, end in zip(launches[1:], ends, strict=False))


@pytest.mark.parametrize(("chunks", "value"), [("waiting", 8.0), ("overlapped", 6.0)])
def test_chunks_of_one_prompt_in_a_pipeline(chunks: str, value: float) -> None:
    # Two chunks of 12 tokens take 2 s on each of two stages: one after the other 4 + 4 s, overlapped 2 + 2 + 2 s.
    result = solved(traced(row(24, output_tokens=1), stages=2, **SECONDS), budget=12, chunks=chunks)
    assert result.objective.value == pytest.approx(value)


def kv_room(tokens: int) -> int:
    """Memory of one die for four layers, a workspace for 16 tokens, and KV of so many tokens (512 bytes each)."""
    instance = traced(row(8))
    cost = instance.stage_cost
    static = cost.weight_bytes(0, 4, True, True) + cost.workspace_bytes(0, 4, 1, 16)
    return int(static) + 512 * tokens


def test_kv_of_a_whole_prompt_is_taken_up_front() -> None:
    # Each prompt needs 40 tokens of room, 45 with its outputs: with room for 79 they run one after the other.
    rows = [row(40, output_tokens=6)] * 2
    tight = logged(traced(*rows, hardware__die__hbm_bytes=kv_room(79), **SECONDS), 16)
    free = logged(traced(*rows, hardware__die__hbm_bytes=kv_room(90), **SECONDS), 16)
    assert {len(each.batch.pieces) for each in tight.iterations} == {1}
    assert {len(each.batch.pieces) for each in free.iterations} == {1, 2}


def test_a_request_without_room_for_a_token_preempts_the_last_one() -> None:
    # Two prompts fit (80 of 84 tokens), their outputs do not: the second gives way.
    instance = traced(*[row(40, output_tokens=10)] * 2, hardware__die__hbm_bytes=kv_room(84), **SECONDS)
    result = solved(instance, budget=16)
    assert result.details["preemptions"] == 1
    assert result.metrics is not None
    assert max(result.metrics.peak_memory_bytes) <= kv_room(84)
    # 40 + 9 tokens of the first; 40 of the second, then 41 anew and 8 more, since it gives way before its first decode.
    assert result.metrics.computed_tokens_per_s * result.metrics.makespan_s == pytest.approx(49 + 40 + 41 + 8)


def test_a_request_too_large_is_named() -> None:
    instance = traced(
        row(4, output_tokens=2), row(90, output_tokens=2), hardware__die__hbm_bytes=kv_room(84), **SECONDS
    )
    result = solved(instance, budget=16)
    assert (result.status, result.program, result.objective.value) == ("unknown", None, None)
    # 91 tokens of 512 bytes where 84 have room.
    assert result.reason is not None
    assert "request 1 needs 46592 bytes" in result.reason


def test_the_sweep_keeps_the_largest_budget_within_the_target() -> None:
    instance = traced(row(4, output_tokens=60), row(1500, 2.5, output_tokens=1), **SECONDS)
    result = solved(instance, budget=0, target_tbt_ms=40_000)
    # 1 + 128/4 = 33 s is within 40 s, 1 + 256/4 is not; 59 gaps, so that the 99th percentile is the largest.
    assert result.details["budget_tokens"] == 128
    sweep = result.details["sweep"]
    assert [each["budget_tokens"] for each in sweep] == [64, 128, 256, 512, 1024, 2048]
    assert all(a["p99_tbt_s"] < b["p99_tbt_s"] for a, b in pairwise(sweep))


def test_outputs_are_a_default_where_none_are_given_and_checked_where_they_are() -> None:
    result = solved(traced(row(4), **SECONDS), output=5)
    assert result.metrics is not None
    assert (result.metrics.output_tokens_per_s or 0) * result.metrics.makespan_s == pytest.approx(5)
    with pytest.raises(InputError, match=r"workload\.trace\.1\.output_tokens"):
        traced(row(4), row(4, output_tokens=-1))


requests = st.lists(
    st.tuples(st.integers(1, 60), st.integers(1, 8), st.integers(0, 40)).map(
        lambda each: row(each[0], each[2] / 4, output_tokens=each[1])
    ),
    min_size=1,
    max_size=6,
)


@given(
    rows=requests, budget=st.integers(1, 20), stages=st.integers(1, 3), room=st.integers(68, 140), chunks=st.booleans()
)
def test_every_token_is_served_within_the_budget(
    rows: list[dict[str, Any]], budget: int, stages: int, room: int, chunks: bool
) -> None:
    instance = traced(*rows, stages=stages, hardware__die__hbm_bytes=kv_room(room), costs=FITTED)
    search = make_search(instance, "sarathi", budget=budget, chunks="overlapped" if chunks else "waiting")
    setting = setting_of(search, budget)
    log, _ = run(search, setting, budget)
    assert log.stuck is None
    assert all(0 < iteration.batch.tokens <= budget for iteration in log.iterations)
    assert [job.produced for job in log.jobs] == [each["output_tokens"] for each in rows]
    served = setting.judged(log)
    assert not isinstance(served, str), served
    # Links of their own between neighbouring stages: the scheduler's times are the replay's.
    assert served.error_s == 0
    capacity = instance.hardware.die.hbm_bytes
    assert all(peak <= capacity for peak in served.metrics.peak_memory_bytes)


def test_the_program_replays_to_the_same_numbers(tmp_path: Path) -> None:
    instance = traced(*[row(100 + 30 * i, 0.001 * i, output_tokens=4) for i in range(4)], stages=4)
    result = solved(instance, budget=64)
    assert result.program is not None
    assert result.metrics is not None
    again = replay_document(result.program)
    assert again["makespan_s"] == result.metrics.makespan_s
    assert sum(again["latency_s"][:4]) / 4 == pytest.approx(result.metrics.mean_latency_s, rel=1e-12)
    assert again["peak_memory_bytes"] == list(result.metrics.peak_memory_bytes)
    result.save(tmp_path / "r.json")
    assert Result.load(tmp_path / "r.json") == result
    shown = waferplan("simulate", "--program", tmp_path / "r.json", "--json")
    assert shown.code == 0
    assert shown.json["makespan_s"] == result.metrics.makespan_s


def test_the_command_writes_the_program(tmp_path: Path) -> None:
    instance = traced(row(100, output_tokens=3), stages=2)
    (tmp_path / "i.json").write_text(json.dumps(instance.canonical()), encoding="utf-8")
    run_ = waferplan(
        "solve", tmp_path / "i.json", "--method", "sarathi", "--set", "budget=32", "--out", tmp_path / "r.json"
    )
    assert run_.code == 0, run_.err
    assert "first token" in run_.out
    assert "simulate --program" in run_.out
    assert Result.load(tmp_path / "r.json").program is not None
