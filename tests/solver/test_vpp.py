"""VPP's three schedules as methods, where times are whole seconds: 4 dies, 8 parts of a layer, 1 s a quantum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from formulations.scope import V_SHAPED, plain_scope
from instances.errors import InputError
from instances.instance import Instance
from solver.api import solve
from solver.limits import Limits
from solver.policies.vpp import folded_splits
from solver.result import Result
from tests.builders import changed, small_document
from tests.searches import make_search
from tests.solver.cli.running import waferplan
from tests.solver.test_policies import SECONDS

QUICK = Limits(time_s=20)


def v_document(**changes: Any) -> dict[str, Any]:
    """8 layers on 4 dies, one request of 4 quanta; a quantum takes 1 s on each part."""
    changes = {
        "model__layers": [{"pattern": ["layer"], "repeat": 8}],
        "workload": {"requests": 1, "tokens": 4 * 256},
        **SECONDS,
        "costs": {**SECONDS["costs"], "token_s": 8 / 256},
        **changes,
    }
    return changed(small_document(), changes)


def run(method: str, chunks: int | None = None, **changes: Any) -> Result:
    return solve(Instance.read(v_document(**changes)), method, chunks=chunks, limits=QUICK)


@pytest.mark.parametrize("method", V_SHAPED)
@pytest.mark.parametrize(
    ("chunks", "value"),
    [
        # The fold die works 2 s on each of 4 chunks; the first one comes in 3 s, the last one leaves in 3 s.
        (4, 14.0),
        # Two chunks of two quanta: 2*4 + 2*6.
        (2, 20.0),
        # One chunk passes all 8 parts in 4 s each.
        (1, 32.0),
    ],
)
def test_equal_chunks_of_one_request(method: str, chunks: int, value: float) -> None:
    assert run(method, chunks).objective.value == pytest.approx(value)


@pytest.mark.parametrize("method", V_SHAPED)
def test_best_number_of_chunks_is_proved_optimal(method: str) -> None:
    result = run(method)
    assert result.objective.value == pytest.approx(14.0)
    assert (result.status, result.stop_reason) == ("optimal", "proved")


@pytest.mark.parametrize(
    ("method", "value"),
    [
        # Each die completes a wave before its next: the second one takes as long as the first.
        ("vpp", 28.0),
        ("vpp-async", 28.0),
        # The fold die goes on: 2*8 + 3 + 3.
        ("vpp-packed", 22.0),
    ],
)
def test_packing_joins_the_waves(method: str, value: float) -> None:
    workload = {"requests": 2, "tokens": 4 * 256}
    result = run(method, 4, workload=workload, objective="makespan", pipeline__max_batch=1)
    assert result.objective.value == pytest.approx(value)


def test_plan_is_a_v_in_the_scope_of_its_bound() -> None:
    result = run("vpp-packed")
    plan, scope = result.plan, result.objective.bound_scope
    assert plan is not None
    assert scope is not None
    assert (plan.schedule, plan.layers, plan.spill) == ("vpp-packed", (1,) * 8, ())
    assert plan.placement == plan.placement[::-1]
    assert len(set(plan.placement)) == 4
    assert scope.schedules == V_SHAPED
    assert scope.contains(plan)
    assert not plain_scope(Instance.read(result.instance)).contains(plan)


def test_batch_knob() -> None:
    workload = {"requests": 4, "tokens": 4 * 256}
    instance = Instance.read(v_document(workload=workload))
    best = solve(instance, "vpp-packed", limits=QUICK, knobs={"batch": "best"})
    largest = solve(instance, "vpp-packed", limits=QUICK, knobs={"batch": "largest"})
    assert best.plan is not None
    assert largest.plan is not None
    # Nothing is gained by waves of two, but two chunks less of work at once.
    assert (best.plan.batch, largest.plan.batch) == (1, 2)
    with pytest.raises(InputError, match="best, largest"):
        solve(instance, "vpp", knobs={"batch": 3})


def test_uneven_remainder_goes_to_the_last_parts() -> None:
    """10 layers in 8 parts: the balanced split of the specification, 1 1 1 1 1 1 2 2."""
    result = run("vpp", model__layers=[{"pattern": ["layer"], "repeat": 10}])
    assert result.plan is not None
    assert result.plan.layers == (1, 1, 1, 1, 1, 1, 2, 2)


def test_free_layers_stay_off_forbidden_cuts() -> None:
    changes = {
        "model__layers": [{"pattern": ["layer"], "repeat": 10}],
        "pipeline__layers": "free",
        "pipeline__forbidden_cuts": [2],
    }
    instance = Instance.read(v_document(**changes))
    splits = folded_splits(make_search(instance, "vpp"))
    assert splits
    for split in splits:
        assert (sum(split), len(split)) == (10, 8)
        assert 2 not in {sum(split[:part]) for part in range(8)}
    result = solve(instance, "vpp", limits=QUICK)
    assert result.plan is not None
    assert result.plan.layers in splits


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pipeline__layers": [2, 2, 2, 2]}, "layers_given: the instance gives 4 stages their layers"),
        ({"model__layers": [{"pattern": ["layer"], "repeat": 7}]}, "stage_nonempty: a V has 8 parts, the model 7"),
        ({"pipeline__forbidden_cuts": [3]}, "forbidden_cuts: the balanced split over 8 parts cuts at layer 3"),
        ({"hardware__die__hbm_bytes": "400 kB"}, "capacity_at_rest: die 0 of the V, with layers 0..0 and layers 7..7"),
    ],
)
def test_says_why_there_is_no_v(changes: dict[str, Any], reason: str) -> None:
    result = run("vpp", **changes)
    assert (result.status, result.plan, result.objective.bound) == ("infeasible", None, None)
    assert (result.reason or "").startswith(reason)


def test_says_why_no_plan_runs() -> None:
    """Memory for three and a half chunks of the four that die 0 takes before its first one comes back."""
    roomy = Instance.read(v_document())
    cost = roomy.stage_cost
    static = cost.die_weight_bytes([(0, 1), (7, 8)], embedding=True, head=True) + cost.workspace_bytes(0, 1, 1, 256)
    result = run("vpp", 4, hardware__die__hbm_bytes=static + 3.5 * 32768)
    assert (result.status, result.plan) == ("unknown", None)
    assert (result.reason or "").startswith("deadlock: ")
    window = run("vpp", 4, pipeline__max_in_flight=2)
    assert window.plan is None
    assert (window.reason or "").startswith("v_window: ")


def test_command_line(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    path.write_text(json.dumps(v_document(workload={"requests": 1, "tokens": 8 * 256})), encoding="utf-8")
    outcome = waferplan("solve", path, "--method", "vpp", "--chunks", "8", "--json", "--out", tmp_path / "r.json")
    assert (outcome.code, outcome.err) == (0, "")
    # 2*8 + 3 + 3.
    assert outcome.json["objective"]["value"] == pytest.approx(22.0)
    assert outcome.json["plan"]["schedule"] == "vpp"
    assert outcome.json["objective"]["bound_scope"]["schedules"] == list(V_SHAPED)
    assert waferplan("check", path, tmp_path / "r.json").code == 0
    replayed = waferplan("simulate", path, tmp_path / "r.json", "--json")
    assert replayed.json["mean_latency_s"] == outcome.json["objective"]["value"]
    listed = waferplan("methods").out
    for name in V_SHAPED:
        assert f"\n{name} " in listed
    assert "VPP (Shi et al.; vllm-ascend #11976)" in listed.replace("\n", " ")
