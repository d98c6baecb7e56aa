"""``waferplan simulate``: plans, programs, traces, deadlocks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from instances.plan import Plan
from solver.replaying import simulate
from solver.simulation.program_file import replay_document
from tests.builders import small_document, small_instance, small_plan, small_plan_document
from tests.solver.cli.running import waferplan

# Two stages, one chunk, one wave: 2 s, then 1 byte over 1 byte/s, then 3 s.
PROGRAM = {
    "die_of": [[0, 0], [0, 1]],
    "compute_s": [[2], [3]],
    "activation_bytes": [1],
    "kv_bytes": [[1], [1]],
    "arrivals_s": [0],
    "link_bytes_per_s": 1,
    "hop_latency_s": 0,
}
STUCK = {**PROGRAM, "capacity_bytes": [5, 0.25]}


@pytest.fixture
def program_file(tmp_path: Path) -> Path:
    path = tmp_path / "program.json"
    path.write_text(json.dumps(PROGRAM), encoding="utf-8")
    return path


@pytest.fixture
def stuck_file(tmp_path: Path) -> Path:
    path = tmp_path / "stuck.json"
    path.write_text(json.dumps(STUCK), encoding="utf-8")
    return path


def test_metrics_are_those_of_the_library(instance_file: Path, plan_file: Path) -> None:
    outcome = waferplan("simulate", instance_file, plan_file, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    instance = small_instance()
    replayed = simulate(instance, small_plan(instance))
    assert outcome.json["deadlock"] is False
    assert outcome.json["mean_latency_s"] == replayed.mean_latency_s
    assert outcome.json["peak_memory_bytes"] == replayed.peak_memory_bytes
    people = waferplan("simulate", instance_file, plan_file)
    assert people.code == 0
    assert people.out.startswith("mean latency")


def test_a_deadlock_names_stage_and_bytes(tmp_path: Path) -> None:
    # As in test_check: 131072 bytes of KV (1024 tokens of 128 bytes) that stage 0 cannot take.
    tight = {"hardware__die__hbm_bytes": "800 kB"}
    instance, plan = tmp_path / "i.json", tmp_path / "p.json"
    instance.write_text(json.dumps(small_document(**tight)), encoding="utf-8")
    plan.write_text(small_plan(small_instance(**tight)).to_json(), encoding="utf-8")
    outcome = waferplan("simulate", instance, plan, "--json")
    assert (outcome.code, outcome.err) == (1, "")
    assert (outcome.json["deadlock"], outcome.json["stage"], outcome.json["bytes"]) == (True, 0, 131072)
    assert outcome.json["waiting"][0]["stage"] == 0
    assert outcome.json["waiting"][0]["bytes"] == 131072
    people = waferplan("simulate", instance, plan)
    assert people.code == 1
    assert "deadlock" in people.out.splitlines()[-1]


def test_a_plan_that_breaks_rules_is_not_replayed(tmp_path: Path, instance_file: Path) -> None:
    plan = tmp_path / "p.json"
    plan.write_text(json.dumps(small_plan_document(small_instance(), batch=3)), encoding="utf-8")
    outcome = waferplan("simulate", instance_file, plan, "--json")
    assert outcome.code == 1
    assert [row["rule"] for row in outcome.json["violations"]] == ["batch_range"]
    people = waferplan("simulate", instance_file, plan)
    assert people.code == 1
    assert "batch_range" in people.out


def test_program_as_the_examples_expect(program_file: Path) -> None:
    outcome = waferplan("simulate", "--program", program_file, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json == replay_document(PROGRAM)
    assert outcome.json["makespan_s"] == 6
    assert outcome.json["start_s"] == {"0,0,0": 0, "0,1,0": 3}
    assert waferplan("simulate", "--program", program_file).out.startswith("makespan  6.0000 s")


def test_a_whole_example_is_taken_by_its_input(tmp_path: Path) -> None:
    path = tmp_path / "example.json"
    path.write_text(json.dumps({"says": "one hop", "input": PROGRAM, "expected": {}}), encoding="utf-8")
    assert waferplan("simulate", "--program", path, "--json").json["makespan_s"] == 6


def test_a_program_may_deadlock(stuck_file: Path) -> None:
    outcome = waferplan("simulate", "--program", stuck_file, "--json")
    assert outcome.code == 1
    assert (outcome.json["deadlock"], outcome.json["stage"], outcome.json["bytes"]) == (True, 1, 1)
    people = waferplan("simulate", "--program", stuck_file)
    assert people.code == 1
    assert "1 B" in people.out


def test_traces(tmp_path: Path, instance_file: Path, plan_file: Path, program_file: Path, stuck_file: Path) -> None:
    for code, arguments in (
        (0, (instance_file, plan_file)),
        (0, ("--program", program_file)),
        (1, ("--program", stuck_file)),
    ):
        trace = tmp_path / "trace.json"
        assert waferplan("simulate", *arguments, "--trace", trace, "--json").code == code
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
        assert {"M", "X"} <= {event["ph"] for event in events}
        trace.unlink()


def test_bad_program(tmp_path: Path) -> None:
    path = tmp_path / "program.json"
    for change, part in (
        ({"compute_s": [[2], [True]]}, "compute_s[1][0]"),
        ({"hop_latency_s": -1}, "hop_latency_s"),
        ({"foo": 1}, "foo"),
    ):
        path.write_text(json.dumps({**PROGRAM, **change}), encoding="utf-8")
        outcome = waferplan("simulate", "--program", path)
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
        assert "program.json" in outcome.err
        assert part in outcome.err


def test_plan_of_a_solve_result_is_the_plan(tmp_path: Path, instance_file: Path) -> None:
    target = tmp_path / "r.json"
    assert waferplan("solve", instance_file, "--method", "cpp", "--out", target).code == 0
    plan = tmp_path / "p.json"
    plan.write_text(Plan.load(target).to_json(), encoding="utf-8")
    answers = [waferplan("simulate", instance_file, path, "--json").json for path in (target, plan)]
    assert answers[0] == answers[1] == {"deadlock": False, **json.loads(target.read_text(encoding="utf-8"))["metrics"]}
