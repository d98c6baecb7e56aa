"""The joint model where memory binds: no plan under the replay is better than what it proves, spill and all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.interface import Engine, EngineLimits
from formulations.joint import milp, milp_model
from formulations.joint.problem import HOST
from formulations.joint.solve import FORMS, JointResult, solve_joint
from formulations.joint.variables import stated
from instances.instance import Instance
from solver.backends.cpsat import solve_cpsat
from solver.backends.highs import solve_highs
from solver.evaluate import Evaluator
from tests.formulations.joint_cases import best_values, small_instance
from tests.tiny import Recipe, line

LIMITS = EngineLimits(time_s=20.0, deterministic=True)
ENGINES: dict[str, Engine] = {"cpsat": solve_cpsat, "milp": solve_highs}


def _solved(instance: Instance) -> dict[str, JointResult]:
    return {form: solve_joint(instance, form, ENGINES[form], LIMITS) for form in FORMS}


@settings(max_examples=90)
@given(seed=st.integers(0, 10**6))
def test_no_plan_is_better_than_the_bound_of_both_models(seed: int) -> None:
    instance = small_instance(seed, tight=True)
    best = best_values(instance, spill=True)
    whole, linear = _solved(instance).values()
    assert whole.status == linear.status
    assert whole.status in ("optimal", "infeasible")
    if whole.status == "infeasible":
        assert best == {}
        return
    assert whole.value_s is not None
    assert whole.bound_s is not None
    assert linear.value_s == pytest.approx(whole.value_s, rel=1e-6)
    assert linear.bound_s == pytest.approx(whole.bound_s, rel=1e-6)
    for batch, value in best.items():
        assert batch in whole.plans
        assert whole.bound_s <= value


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_no_random_spill_is_better_than_the_bound(seed: int) -> None:
    """Parts of chunks at several creditors, of which there are too many to try all."""
    instance = small_instance(seed, tight=True)
    found = solve_joint(instance, "milp", solve_highs, LIMITS)
    recipe, evaluator = Recipe.seeded(32, seed), Evaluator(instance)
    for _ in range(12):
        plan = recipe.plan(instance)
        value = evaluator.value(plan)
        if value is not None and plan.batch <= instance.workload.count:
            assert found.bound_s is not None
            assert found.bound_s <= value


STATIC = 29
"""Bytes of the last stage beside KV: 14 of weights and norms of a layer, 10 more with the head, and 5 of workspace for
chunks of one token; the first stage has two bytes less, room for another token."""


def _memory(tokens: float, **parts: Any) -> Instance:
    """Two stages of one layer, 4 tokens of 2 bytes of KV each, a second a token; room for so many on the last stage."""
    hardware = {"die": {"hbm_bytes": STATIC + 2 * tokens}, **parts.pop("hardware", {})}
    return line([1, 1], fitted={"token_s": 2.0}, hardware=hardware, **parts)


@pytest.mark.parametrize(
    ("tokens", "value"),
    [
        # Four tokens fit: single tokens take 4 s on the first stage, and the last one 1 s more.
        (4, 5.0),
        # The last stage has to lend a token before its last chunk at 4 s: when the first stage has just been emptied.
        (3, 5.0),
        # 3 + 2 tokens fit in all. The first stage's last chunk makes 4, at 3 s, so the last stage has had one by then,
        # and goes on when the other is empty: at 4 s with three more.
        (2, 7.0),
        # The first stage cannot even put two tokens elsewhere: 2 + 1 tokens are less than the 4 of one stage.
        (1, None),
    ],
)
def test_less_and_less_memory(tokens: float, value: float | None) -> None:
    instance = _memory(tokens)
    best = best_values(instance, spill=True)
    assert best == ({} if value is None else {1: pytest.approx(value)})
    for result in _solved(instance).values():
        assert result.value_s == (None if value is None else pytest.approx(value))
        assert result.status == ("infeasible" if value is None else "optimal")
        assert result.plan is None or result.plan.spill or tokens == 4


def test_a_host_lends_at_the_speed_of_its_link() -> None:
    # One stage with room for two of three tokens, a second each: the last chunk, at 2 s or later, needs one elsewhere.
    # At 2 bytes a second the first is there a second after its end, 2 s, and takes a second to come back: beside the
    # last chunk's compute, or before it. In the replay chunk 1 brings it back too, granted as it is; or chunk 1 goes,
    # which is there at 3 s. Either way that is a second more.
    for overlap, value in ((True, 3.0), (False, 4.0)):
        instance = line(
            [1],
            fitted={"token_s": 1.0},
            hardware={
                "die": {"hbm_bytes": line([1]).stage_cost.weight_bytes(0, 1, True, True) + 5 + 4},
                "host": {"host_bytes": 1000, "host_bytes_per_s": 2},
            },
            workload={"requests": 1, "tokens": 3},
            pipeline={"overlap": overlap},
        )
        assert {key[3] for key in stated(instance, 1).lent} == {HOST}
        assert best_values(instance, spill=True) == {1: pytest.approx(value + 1.0)}
        for result in _solved(instance).values():
            assert result.value_s == pytest.approx(value)


def test_capacity_at_rest() -> None:
    # Not one token fits.
    for result in _solved(_memory(0.5)).values():
        assert result.status == "infeasible"
        assert result.bound_s is None


def test_memory_to_spare_needs_no_spill() -> None:
    assert stated(_memory(5.0, pipeline={"max_chunks": 1}), 1).memory_binds
    assert not stated(_memory(50.0), 1).memory_binds
    assert stated(_memory(50.0), 1).lent == {}


@pytest.mark.parametrize("rule", ["memory_admission", "stage_workspace", "spill_write", "remote_fetch"])
def test_a_rule_left_out_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rule of memory matters to the value of some instance."""
    instances = [small_instance(seed, tight=True) for seed in range(8)] + [_memory(tokens) for tokens in (1, 2, 3)]
    host = {"host_bytes": 1000, "host_bytes_per_s": 2}
    instances.append(_memory(2.0, hardware={"host": host}, pipeline={"overlap": False}))
    before = [solve_joint(instance, "milp", solve_highs, LIMITS).value_s for instance in instances]
    without = dict.fromkeys((rule,), lambda joint: None)
    if rule == "stage_workspace":
        without = {
            rule: lambda joint: joint.workspace.extend(milp_model.total([]) for _ in range(joint.problem.stages))
        }
    monkeypatch.setattr(milp, rule, without[rule])
    after = [solve_joint(instance, "milp", solve_highs, LIMITS).value_s for instance in instances]
    assert before != after
