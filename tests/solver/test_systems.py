"""Suite ``systems``: every method runs, replays, and is not below any run's bound that covers its plan.

Three instances that take some seconds each; ``python -m tests.performance.systems all`` does the same with all.
"""

from __future__ import annotations

import re

import pytest

from formulations.scope import V_SHAPED
from instances.suites import find_suite
from solver.methods import METHODS
from tests.performance.systems import FURTHER, bound_of, every_method, faults, run_all, table
from tests.solver.cli.running import waferplan

INSTANCES = {instance.name: instance for instance in find_suite("systems").load()}
QUICK = ("llama3-70b-one-request", "llama3-8b-shared-prefixes", "qwen3-30b-a3b-stream")


def test_the_suite_has_the_kinds_of_models_and_workloads() -> None:
    assert len(INSTANCES) >= 6
    kinds = [
        (kind.attention.kind, kind.feed_forward.kind)
        for instance in INSTANCES.values()
        for kind in instance.model.kinds.values()
    ]
    assert {"full", "sliding", "mla"} <= {attention for attention, _ in kinds}
    assert {"dense", "moe"} <= {feed_forward for _, feed_forward in kinds}
    workloads = [instance.workload for instance in INSTANCES.values()]
    equal = [workload.count for workload in workloads if workload.trace is None]
    assert 1 in equal
    assert max(equal) > 1
    assert len(equal) < len(workloads)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_every_method_on(name: str) -> None:
    results = run_all(INSTANCES[name], every_method(), time_s=10)
    assert set(results) == {*METHODS, *FURTHER}
    assert faults(INSTANCES[name], results) == []
    # Plans have a bound of their schedules, programs none.
    for method, result in results.items():
        bound = bound_of(result, results.values())
        assert (bound is not None) == (result.plan is not None), method
        if result.plan is not None and result.plan.schedule in V_SHAPED:
            assert bound == max(results[schedule].objective.bound or 0 for schedule in V_SHAPED), method
    rows = table(name, results).splitlines()
    assert len(rows) == len(results) + 3
    assert all("–" not in row.split("|")[2] for row in rows[2:-1])


def test_faults_are_noticed() -> None:
    """A value below its bound, a plan that replays to something else, a program that does, no answer."""
    instance = INSTANCES["llama3-8b-shared-prefixes"]
    results = run_all(instance, ["cpp", "gllm", "gpipe", "terapipe"], time_s=10)
    assert faults(instance, results) == []
    slower = {"value": (results["cpp"].objective.value or 0) * 1.5}
    results["cpp"] = results["cpp"].model_copy(update={"objective": results["cpp"].objective.model_copy(update=slower)})
    metrics = results["gllm"].metrics
    assert metrics is not None
    results["gllm"] = results["gllm"].model_copy(update={"metrics": metrics.model_copy(update={"makespan_s": 1.0})})
    high = {"bound": (results["gpipe"].objective.value or 0) * 1.5}
    results["gpipe"] = results["gpipe"].model_copy(
        update={"objective": results["gpipe"].objective.model_copy(update=high)}
    )
    nothing = results["terapipe"].objective.model_copy(update={"value": None})
    results["terapipe"] = results["terapipe"].model_copy(update={"objective": nothing, "reason": "no reason"})
    found = faults(instance, results)
    assert [fault.split(":")[0] for fault in found] == ["cpp", "cpp", "gllm", "gpipe", "terapipe has no answer"]


def test_methods_are_listed_with_their_sources_and_knobs() -> None:
    """Every published system names its paper or the file of its public program; parts of MOCAP name MOCAP."""
    listed = {row["method"]: row for row in waferplan("methods", "--json").json}
    own = {"exact", "pool", "host", "pool+host"}
    source = re.compile(r"arXiv \d{4}\.\d{5}|\.py\b|#\d{5}|MOCAP|VPP-Async|vLLM")
    assert [name for name in METHODS if name not in own and not source.search(listed[name]["says"])] == []
    papers_knobs = {
        "mocap": {"iterations", "temperature", "cooling"},
        "terapipe": {"slicing", "caps"},
        "dcpp-sglang": {"base", "smoothing", "page", "most", "cost"},
        "dcpp-ascend": {"base", "smoothing", "page", "least", "cost"},
        "vpp": {"chunk", "order", "heads", "handoff"},
        "vpp-async": {"chunk", "order", "heads", "handoff"},
        "vpp-packed": {"chunk", "order", "heads", "handoff"},
        "sarathi": {"budget", "target_tbt_ms"},
        "layered": {"largest", "groups", "chunk"},
        "gllm": {"maxp", "minp", "iterp", "maxd", "kvthresh"},
        "kv-tier": {"mode", "decide", "block", "chunk"},
        "wavepp": {"admission", "protection", "waves", "target", "deadline_ms", "held", "headroom", "hint_age_ms"},
    }
    for name, knobs in papers_knobs.items():
        assert knobs <= {knob["name"] for knob in listed[name]["knobs"]}, name
