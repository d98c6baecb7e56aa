"""The exact method over the plain and the V-shaped schedules: values, bounds and their scope."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from formulations.scope import EVERY_SCHEDULE, PLAIN
from formulations.virtual.split import virtual_reason
from instances.check import check
from instances.instance import Instance
from solver.api import solve
from solver.limits import Limits
from solver.result import Result
from tests.formulations.test_virtual_models import quadratic_line
from tests.solver.cli.running import waferplan
from tests.solver.simulation.v_plans import v_instance
from tests.solver.test_vpp import v_document
from tests.tiny import Recipe, line, recipes


def both(instance: Instance, chunks: int | None = None, time_s: float = 10.0) -> tuple[Result, Result]:
    """The plain schedule alone, and all."""
    limits = Limits(time_s=time_s, deterministic=True)
    plain, every = (
        solve(instance, chunks=chunks, limits=limits, knobs={"schedules": name}) for name in ("plain", "all")
    )
    return plain, every


def assert_sound(result: Result) -> None:
    """Value and bound belong to one scope, and the value is not below the bound."""
    objective = result.objective
    if result.plan is not None and objective.bound is not None:
        assert objective.bound_scope is not None
        assert objective.bound_scope.contains(result.plan)
        assert objective.value is not None
        assert objective.trivial_bound is not None
        assert objective.trivial_bound <= objective.bound <= objective.value
        assert all(finding.ok for finding in check(Instance.read(result.instance), result.plan))


def test_v_is_found_where_it_beats_the_plain_optimum() -> None:
    """Twelve equal chunks take 14.85 s in a V, the plain optimum is 15.26 s; cuts that rise and fall take 13.64 s."""
    plain, every = both(quadratic_line())
    assert plain.objective.value == pytest.approx(15.26, abs=0.005)
    assert plain.status == "optimal"
    assert plain.plan is not None
    assert plain.plan.schedule == "chunked"
    assert every.plan is not None
    assert every.plan.schedule != "chunked"
    assert every.objective.value is not None
    assert every.objective.value <= 13.64
    assert every.objective.gap is not None
    assert every.objective.gap <= 0.03
    assert_sound(every)
    assert {row.method for row in every.compared} >= {"cpp", "vpp", "vpp-async", "vpp-packed"}
    assert "vpp" not in {row.method for row in plain.compared}
    for row in every.compared:
        assert row.value is not None
        assert every.objective.value <= row.value


def test_scope_lists_the_schedules_and_the_bound_is_the_least() -> None:
    plain, every = both(quadratic_line())
    assert plain.objective.bound_scope is not None
    assert every.objective.bound_scope is not None
    assert plain.objective.bound_scope.schedules == PLAIN
    assert every.objective.bound_scope.schedules == EVERY_SCHEDULE
    folded = solve(quadratic_line(), "vpp", limits=Limits(time_s=10))
    assert plain.objective.bound is not None
    assert every.objective.bound is not None
    assert folded.objective.bound is not None
    assert every.objective.bound == pytest.approx(min(plain.objective.bound, folded.objective.bound), rel=1e-6)
    assert "chunked/vpp/vpp-async/vpp-packed schedule" in every.objective.bound_scope.describe()


def test_plain_where_the_instance_admits_no_v() -> None:
    plain, every = both(line([2, 2], fitted={"token_s": 1.0}))
    assert every.plan == plain.plan
    assert every.objective.bound == plain.objective.bound
    assert (every.status, plain.status) == ("optimal", "optimal")


def test_v_where_the_plain_split_is_forbidden() -> None:
    """6 layers: two stages cut at layer 3, four parts at 1, 2 and 4."""
    plain, every = both(line([3, 3], pipeline={"layers": "balanced", "forbidden_cuts": [3]}))
    assert plain.status == "infeasible"
    assert every.plan is not None
    assert every.plan.layers == (1, 1, 2, 2)
    assert_sound(every)
    assert {row.method for row in every.compared} == {"vpp", "vpp-async", "vpp-packed"}


def test_infeasible_only_if_neither_has_a_plan() -> None:
    _, every = both(line([3, 3], pipeline={"layers": "balanced", "forbidden_cuts": [3, 4]}))
    assert every.status == "infeasible"
    assert (every.reason or "").count("forbidden_cuts: ") == 2


def test_fixed_number_of_chunks() -> None:
    _, every = both(quadratic_line(), chunks=6)
    assert every.plan is not None
    assert len(every.plan.chunks["24"]) == 6
    assert_sound(every)


@settings(max_examples=15)
@given(recipes())
def test_never_worse_than_plain_and_never_below_the_bound(recipe: Recipe) -> None:
    instance = v_instance(recipe)
    plain, every = both(instance, time_s=5.0)
    assert_sound(every)
    assert_sound(plain)
    if plain.objective.bound is not None and every.objective.bound is not None:
        assert every.objective.bound <= plain.objective.bound
    if plain.objective.value is not None:
        assert every.objective.value is not None
        assert every.objective.value <= plain.objective.value
    if virtual_reason(instance) is None and every.plan is None:
        assert every.status == "infeasible" or plain.plan is None


def test_command_line(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    path.write_text(json.dumps(v_document()), encoding="utf-8")
    outcome = waferplan("solve", path, "--set", "schedules=all", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["objective"]["bound_scope"]["schedules"] == list(EVERY_SCHEDULE)
    refused = waferplan("solve", path, "--set", "schedules=v")
    assert refused.code == 2
    assert "plain, all" in refused.err
