"""Many plans in one call: the same outcomes as one by one, whatever ran before on the same tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluator
from solver.simulation import columns as c
from solver.simulation.batch import run_plans
from solver.simulation.engine import run
from solver.simulation.kernel import simulate
from solver.simulation.lowering import Lowering
from solver.simulation.program import Int64s, Program
from solver.simulation.program_file import read_program
from solver.simulation.tables import pack
from tests.solver.simulation.shared_dies import shared_die_programs
from tests.solver.simulation.v_plans import v_instance, v_plan, with_memory
from tests.strategies import programs
from tests.tiny import Recipe, recipes


def _singly(instance: Instance, plan: Plan) -> tuple[list[int], float] | None:
    """Completions and traffic of a run of its own, on fresh tables."""
    program = Lowering(instance).program(plan)
    if (program.static_units > program.capacity_units).any():
        return None
    outcome = run(program)
    if outcome.deadlock:
        return None
    last = program.closes_group & program.leaves_window
    return outcome.end_ps[last].tolist(), program.bytes_of(outcome.byte_hops_units)


def _assert_same(instance: Instance, plans: list[Plan]) -> list[bool]:
    found = [
        None if summary is None else (summary.completion_ps.tolist(), summary.byte_hops)
        for summary in run_plans(Lowering(instance), plans)
    ]
    assert found == [_singly(instance, plan) for plan in plans]
    values = Evaluator(instance).values(plans)
    assert values == [Evaluator(instance).value(plan) for plan in plans]
    assert [value is None for value in values] == [one is None for one in found]
    return [one is None for one in found]


def _other_amounts(recipe: Recipe, instance: Instance, plan: Plan) -> Plan:
    """Chunk sizes drawn anew, as many, and other amounts in the same spill rows: mostly plans of the same form."""
    sizes = {key: recipe.chunks(instance, int(key)) for key in plan.chunks}
    kept = {key: new if len(new) == len(plan.chunks[key]) else plan.chunks[key] for key, new in sizes.items()}
    smallest = min(size for chunks in kept.values() for size in chunks)
    rows = [
        row.model_copy(update={"tokens": min(row.tokens, max(1, smallest // 3 - recipe.integer(0, 1)))})
        for row in plan.spill
    ]
    return plan.model_copy(update={"chunks": kept, "spill": tuple(rows)})


@settings(max_examples=60)
@given(recipes())
def test_a_batch_equals_single_runs(recipe: Recipe) -> None:
    tight = recipe.chance(60)
    instance = recipe.instance(tight=tight, options=recipe.chance(30))
    plans = [recipe.plan(instance) for _ in range(recipe.integer(1, 3))]
    plans += [_other_amounts(recipe, instance, plan) for plan in plans for _ in range(recipe.integer(0, 3))]
    _assert_same(instance, plans)


@pytest.mark.parametrize("seed", range(8))
def test_a_batch_of_v_plans_equals_single_runs(seed: int) -> None:
    recipe = Recipe.seeded(seed, 11)
    instance = v_instance(recipe)
    plan = v_plan(recipe, instance)
    if seed % 2:
        instance, plan = with_memory(recipe, instance, plan)
    plans = [plan, *(_other_amounts(recipe, instance, plan) for _ in range(6)), plan]
    _assert_same(instance, plans)


def test_runs_after_a_deadlock_start_afresh() -> None:
    # Of the plans of one form some lock up and some do not; what they leave behind must not reach the next.
    mixed = 0
    for seed in range(60):
        recipe = Recipe.seeded(seed, 13)
        instance = recipe.instance(tight=True)
        plan = recipe.plan(instance, spill_percent=80)
        plans = [plan, *(_other_amounts(recipe, instance, plan) for _ in range(6)), plan]
        stuck = _assert_same(instance, plans)
        mixed += len(set(stuck)) == 2
    assert mixed >= 3


@settings(max_examples=200)
@given(st.one_of(programs(), shared_die_programs()))
def test_nothing_is_left_over_from_the_run_before(document: dict[str, Any]) -> None:
    # The same program with more and with less memory, so that runs also end with writes queued and fetches under way.
    program = read_program(document)
    room = program.capacity_units - program.static_units
    variants = [
        replace(program, capacity_units=program.static_units + room // 2, duration_ps=program.duration_ps[::-1].copy()),
        program,
        replace(program, capacity_units=program.static_units + room * 3 // 4),
        replace(program, duration_ps=2 * program.duration_ps),
        program,
    ]
    table = np.array([np.concatenate(_numbers(variant)) for variant in variants])
    outcomes = np.zeros((len(variants), c.FIRST_COMPLETION + program.waves), dtype=np.int64)
    untraced = np.empty((0, c.TRACE_COLUMNS), dtype=np.int64)
    simulate(*pack(program), float(program.serve_fraction), untraced, table, outcomes)
    last = program.closes_group & program.leaves_window
    for variant, outcome in zip(variants, outcomes, strict=True):
        alone = run(variant)
        expected = [int((alone.end_ps >= 0).sum()), alone.byte_hops_units, *alone.end_ps[last].tolist()]
        assert outcome.tolist() == expected


def _numbers(program: Program) -> list[Int64s]:
    return [
        program.duration_ps,
        program.take_units,
        program.send_units,
        program.write_units,
        program.static_units,
        program.capacity_units,
    ]


def test_plans_of_one_form_share_it() -> None:
    recipe = Recipe.seeded(3, 17)
    instance = recipe.instance()
    plan = recipe.plan(instance)
    lowering = Lowering(instance)
    assert lowering.form(plan) is lowering.form(_other_amounts(recipe, instance, plan))
    assert lowering.form(plan) is not lowering.form(plan.model_copy(update={"batch": plan.batch + 1}))


def test_no_plans() -> None:
    assert run_plans(Lowering(Recipe.seeded(1).instance()), []) == []


def test_a_large_batch_is_cut_into_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe.seeded(5, 19)
    instance = recipe.instance()
    plan = recipe.plan(instance)
    plans = [plan] * 5
    whole = Evaluator(instance).values(plans)
    monkeypatch.setattr("solver.simulation.lowering.MOST_NUMBERS", 1)
    tables = list(Lowering(instance).amounts(plans))
    assert [numbers for numbers, _ in tables] == [[0], [1], [2], [3], [4]]
    assert all(np.array_equal(amounts.table, tables[0][1].table) for _, amounts in tables)
    assert Evaluator(instance).values(plans) == whole
