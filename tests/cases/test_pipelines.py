"""Reports about windows, feedback, layer splits and cuts of pipelines."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from instances.check import check
from instances.instance import Instance
from solver.api import solve
from solver.cli.summary import summary
from solver.limits import Limits
from tests.builders import small_document, small_instance, small_plan
from tests.solver.cli.running import waferplan
from tests.solver.test_policies import seconds_instance

QUICK = Limits(time_s=10)
GROWING = {"costs": {"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 1 / 256, "pair_s": 1 / 256**2}}


def eight_layers(**changes: Any) -> Instance:
    """Layers that do not divide by three stages."""
    layers = [{"pattern": ["layer"], "repeat": 8}]
    return small_instance(**{"model__layers": layers, "pipeline__stages": 3, **changes})


def test_too_few_chunks_in_flight_are_warned_of() -> None:
    """vllm #41682: chunking lowers throughput where only one chunk a stage may be in flight."""
    starved = seconds_instance(**GROWING, pipeline__max_batch=1, pipeline__max_in_flight=4)
    free = seconds_instance(**GROWING, pipeline__max_batch=1)
    result = solve(starved, "cpp", chunks=8, limits=QUICK)
    assert result.objective.value is not None
    unlimited = solve(free, "cpp", chunks=8, limits=QUICK).objective.value
    assert unlimited is not None
    assert result.details["without_window_s"] == pytest.approx(unlimited)
    assert unlimited < 0.95 * result.objective.value
    shown = Console(file=StringIO(), width=200)
    for part in summary(starved, result, instance_file="i.json", result_file=None, verbose=False):
        shown.print(part)
    assert isinstance(shown.file, StringIO)
    assert "at most 4 chunks in flight starve the pipeline" in shown.file.getvalue()


def test_a_wide_window_is_not_warned_of() -> None:
    result = solve(seconds_instance(pipeline__max_in_flight=100), "cpp", limits=QUICK)
    assert "without_window_s" not in result.details


def test_a_feedback_edge_serialises_chunks() -> None:
    """vllm #38726: each chunk waited for the last stage's broadcast; off, chunks follow one another through the stages.

    Eight chunks of 1 s a stage on four stages, one request: 8*4 with the edge, which is a window of one, and 8 + 3.
    """
    request = {"workload": {"requests": 1, "tokens": 2048}}
    on = solve(seconds_instance(pipeline__max_in_flight=1, **request), "cpp", chunks=8, limits=QUICK)
    off = solve(seconds_instance(**request), "cpp", chunks=8, limits=QUICK)
    assert on.objective.value == pytest.approx(32.0)
    assert off.objective.value == pytest.approx(11.0)
    assert on.details["without_window_s"] == pytest.approx(11.0)


def test_the_head_is_on_the_last_stage() -> None:
    """vllm #14120: the last GPU always ran out of memory at load: it holds the head and the last norm.

    20000 tokens of 64 elements of 2 bytes, and a norm of 64: 2,560,128 bytes more than on a stage between.
    """
    cost = small_instance(model__vocab=20000).stage_cost
    between = cost.weight_bytes(1, 2, embedding=False, head=False)
    assert cost.weight_bytes(3, 4, embedding=False, head=True) - between == 2_560_128
    static = cost.weight_bytes(3, 4, embedding=False, head=True) + cost.workspace_bytes(3, 4, 1, 256)
    # One byte is missing on the last die, and the embedding on the first is smaller by that norm.
    short = small_instance(model__vocab=20000, hardware__die__hbm_bytes=static - 1)
    broken = [finding for finding in check(short, small_plan(short, chunks={"2048": [256] * 8})) if not finding.ok]
    assert [(finding.rule, finding.amount) for finding in broken] == [("capacity_at_rest", 1.0)]
    assert "[1, 0]" in broken[0].where  # where the last stage is


@pytest.mark.parametrize("objective", ["mean_latency", "makespan"])
def test_the_place_of_remainder_layers_is_decided(objective: str) -> None:
    """vllm #6920, #13839, #46217: a third of time or half of KV memory hang on where remainder layers go.

    The head makes the last stage slow; a free split is at least as fast as each of the three ways of engines.
    """
    heavy = {"model__vocab": 50000, "hardware__die__hbm_bytes": "256 MB", "objective": objective}
    values = {}
    for split in ([3, 3, 2], [2, 3, 3], [3, 2, 3]):
        instance = eight_layers(pipeline__layers=split, **heavy)
        values[tuple(split)] = solve(instance, limits=QUICK).objective.value
    assert len(set(values.values())) == 3
    free = solve(eight_layers(pipeline__layers="free", **heavy), limits=Limits(time_s=20))
    assert free.objective.value is not None
    assert all(value is not None and free.objective.value <= value * (1 + 1e-9) for value in values.values())
    # Memory beside speed: the peak of each stage is part of the result.
    assert free.metrics is not None
    assert len(free.metrics.peak_memory_bytes) == 3


def test_a_stage_does_not_start_at_a_forbidden_layer() -> None:
    """sglang #28525: an even cut lands on a layer that must not start a stage, one beside it works."""
    even = {"pipeline__stages": 2, "pipeline__layers": "free"}
    plan = solve(eight_layers(**even), limits=QUICK).plan
    assert plan is not None
    forbidden = eight_layers(**even, pipeline__forbidden_cuts=[plan.layers[0]])
    result = solve(forbidden, limits=QUICK)
    assert result.plan is not None
    assert result.plan.layers[0] != plan.layers[0]
    back = result.plan.model_copy(update={"layers": plan.layers})
    assert [finding.rule for finding in check(forbidden, back) if not finding.ok] == ["forbidden_cuts"]


def test_a_balanced_split_that_is_forbidden_is_refused(tmp_path: Path) -> None:
    document = small_document(pipeline__forbidden_cuts=[2])
    (tmp_path / "i.json").write_text(json.dumps(document), encoding="utf-8")
    ran = waferplan("solve", tmp_path / "i.json", "--time-limit", "5")
    assert ran.code == 1
    assert "forbidden_cuts" in ran.out
