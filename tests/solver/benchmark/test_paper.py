"""The paper's evaluation: what is run, what is changed, what is averaged."""

from __future__ import annotations

import pytest

from solver.benchmark import paper
from solver.benchmark.record import Record
from solver.benchmark.task import RunLimits
from solver.cli.paper_tables import paper_data, paper_sheets
from tests.solver.benchmark.making import record

METRICS = {
    "p50_latency_s": 1.0,
    "p95_latency_s": 1.0,
    "p99_latency_s": 1.0,
    "makespan_s": 1.0,
    "tokens_per_s": 1.0,
    "computed_tokens_per_s": 1.0,
    "bubble": {"makespan": 0.0, "span": 0.0, "steady": None},
    "peak_memory_bytes": [1.0],
    "link_bytes": 0.0,
    "byte_hops": 0.0,
    "stall_s": [0.0],
}


def run(instance: str, method: str, latency: float | None, throughput: float = 1.0, suite: str = paper.SUITE) -> Record:
    measured = None if latency is None else {**METRICS, "mean_latency_s": latency, "throughput_rps": throughput}
    return record(suite=suite, instance=instance, method=method, metrics=measured)


RECORDS = [
    run("one", "gpipe", 10.0, 1.0),
    run("one", "mocap", 4.0, 3.0),
    run("two", "gpipe", 8.0, 2.0),
    run("two", "mocap", 2.0, 10.0),
    run("three", "gpipe", None),
    run("three", "mocap", 2.0, 10.0),
]


def test_the_four_models_and_the_methods_are_run() -> None:
    found = paper.main_tasks(RunLimits(20.0))
    assert {task.choice.label for task in found} == set(paper.METHODS)
    assert {task.name.rsplit("-", 1)[0] for task in found} == {
        "llama3-70b",
        "mistral-123b",
        "qwen3-235b",
        "llama3-405b",
    }


def test_one_assumption_is_changed_at_a_time() -> None:
    base, *others = {task.name: task.instance for task in paper.sensitivity_tasks(RunLimits(20.0))}.values()
    for other in others:
        assert len([part for part in base if part != "name" and base[part] != other[part]]) == 1
    fingerprints = {task.fingerprint for task in paper.sensitivity_tasks(RunLimits(20.0))}
    assert len(fingerprints) == 1 + len(others)


def test_longest_requests_are_held_against_those_without_lending() -> None:
    tasks = paper.length_tasks(RunLimits(20.0))
    assert {task.choice.knobs["way"] for task in tasks} == set(paper.WAYS)
    assert {(task.objective, task.chunks, task.limits.time_s) for task in tasks} == {("max_tokens", 16, 60.0)}
    assert len(tasks) == 4 * len(paper.WAYS)
    found = [
        record(suite=paper.LENGTH, instance="one", method="capacity", knobs={"way": way}, value=value, plan=None)
        for way, value in (("none", 1000.0), ("mocap", 1250.0), ("pool", None))
    ]
    row = paper.lengths(found)["one"]
    assert row == {"none": 1000, "mocap": 1250, "pool": None}
    assert (paper.length_gain(row, "mocap"), paper.length_gain(row, "pool")) == (1.25, None)
    text = "\n".join(sheet.markdown() for sheet in paper_sheets(found))
    assert "| one | 1000 | 1250 | – | 1.25x | – |" in text
    assert "1.31x" in text


def test_averages_are_over_the_instances_on_which_both_run() -> None:
    (average,) = paper.averages(RECORDS)
    # Latencies 4/10 - 1 and 2/8 - 1; throughputs 3/1 and 10/2; the third instance has no plan of GPipe's.
    assert average.latency == pytest.approx((-0.6 - 0.75) / 2)
    assert average.throughput == pytest.approx((3 + 5) / 2)
    assert (average.compared, average.instances) == (2, 3)
    assert paper.averages([]) == []


def test_tables_and_data() -> None:
    records = [
        *RECORDS,
        run("as assumed", "gpipe", 2.0, suite=paper.VARIED),
        run("as assumed", "mocap", 1.0, 3.0, suite=paper.VARIED),
    ]
    text = "\n".join(sheet.markdown() for sheet in paper_sheets(records))
    assert "| paper: MOCAP | -76.4 % | 3.24x | its own |" in text
    assert "| mocap | -67.5 % | 4.00x | 2 of 3 |" in text
    assert "| as assumed | – | -50.0 % | – | – |" in text
    assert "| as assumed | – | 3.00x | – | – |" in text
    assert "no plan" in text
    assert all(assumption in text for assumption in paper.ASSUMPTIONS)
    data = paper_data(records)
    assert data["sensitivity"][0]["mocap"] == {"latency": -0.5, "throughput": 3.0}
