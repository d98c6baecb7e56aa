"""V-shaped plans of random instances: lowering, replay and checker against the witness and against each other."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings

from instances.check import check
from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluator
from solver.simulation.engine import run
from solver.simulation.program_check import check_program
from tests.reference.plan_to_program import lower
from tests.reference.waves import replay_waves
from tests.solver.simulation.v_plans import v_instance, v_plan, with_memory
from tests.tiny import Recipe, recipes

BATCHES, PLANS_PER_BATCH = 5, 40


def _compare(instance: Instance, plan: Plan) -> str:
    """Whether the plan ran, as the witness says too; durations may differ by the rounding of half a picosecond."""
    broken = {finding.rule for finding in check(instance, plan) if not finding.ok}
    assert broken <= {"capacity_at_rest", "v_window"}
    program = Evaluator(instance).lowering.program(plan)
    check_program(program)
    document = lower(instance.canonical(), plan.model_dump(mode="json"))
    labels = list(zip(program.wave.tolist(), program.stage.tolist(), program.chunk.tolist(), strict=True))
    durations = [[[0] * len(wave["activation_bytes"]) for _ in plan.layers] for wave in document["waves"]]
    for (w, s, i), duration_ps in zip(labels, program.duration_ps.tolist(), strict=True):
        durations[w][s][i] = duration_ps
        assert abs(duration_ps - round(document["waves"][w]["compute_s"][s][i] * 10**12)) <= 1
    unit, die_of_stage = program.units_per_byte, program.die_of_stage().tolist()
    for s, die in enumerate(die_of_stage):
        assert program.static_units[die] == math.ceil(document["static_bytes"][s] * unit)
    at_rest = bool((program.static_units <= program.capacity_units).all())
    assert at_rest == ("capacity_at_rest" not in broken)
    if not at_rest:
        assert Evaluator(instance).value(plan) is None
        return "too large"
    outcome, expected = run(program), replay_waves(document, durations)
    ends = {label: end for label, end in zip(labels, outcome.end_ps.tolist(), strict=True) if end >= 0}
    assert (outcome.deadlock, ends) == (expected.deadlock, expected.end_ps)
    assert outcome.deadlock or "v_window" not in broken
    for s, die in enumerate(die_of_stage):
        assert outcome.stall_ps[die] == expected.stall_ps[s]
        held = outcome.peak_units[die] - program.static_units[die]
        assert held == (expected.peak_bytes[s] - document["static_bytes"][s]) * unit
        assert outcome.host_peak_units[die] == expected.host_peak_bytes[s] * unit
    value = Evaluator(instance).value(plan)
    assert (value is None) == expected.deadlock
    return "stuck" if expected.deadlock else "ran"


@settings(max_examples=100)
@given(recipes())
def test_replay_of_a_v_plan_equals_the_witness(recipe: Recipe) -> None:
    instance = v_instance(recipe)
    plan = v_plan(recipe, instance)
    if recipe.chance(60):
        instance, plan = with_memory(recipe, instance, plan)
    _compare(instance, plan)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_replay_of_a_v_plan_equals_the_witness_in_bulk(batch: int) -> None:
    seen: Counter[str] = Counter()
    for number in range(PLANS_PER_BATCH):
        recipe = Recipe.seeded(batch, number, 7)
        instance = v_instance(recipe)
        plan = v_plan(recipe, instance)
        if recipe.chance(60):
            instance, plan = with_memory(recipe, instance, plan)
        came_to = _compare(instance, plan)
        seen[came_to] += 1
        seen["spilled"] += came_to == "ran" and bool(plan.spill)
    # The cases are no use if they are all of one sort.
    assert min(seen["ran"], seen["stuck"]) >= PLANS_PER_BATCH // 10
    assert seen["spilled"] >= 2
