"""Brute force over replayed V-shaped plans against CP-SAT and MILP, on tiny instances."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings

from formulations.bounds import TimeBounds
from formulations.interface import Engine, EngineLimits, EngineOutcome
from formulations.tables import StageTables
from formulations.virtual import cpsat, milp
from formulations.virtual.solve import VirtualResult, solve_virtual
from formulations.virtual.split import virtual_reason
from formulations.virtual.variables import Cell, cells, state
from instances.check import check
from instances.instance import Instance
from instances.plan import Plan, Schedule
from solver.backends.cpsat import solve_cpsat
from solver.backends.highs import solve_highs
from solver.simulation.orders import die_orders
from tests.formulations.virtual_cases import every_v_plan, keeps_rules, runs_of, splits
from tests.solver.simulation.v_plans import v_instance, v_plan, with_memory
from tests.tiny import Recipe, line, recipes

LIMITS = EngineLimits(time_s=60.0, deterministic=True)
TWINS: list[tuple[ModuleType, Engine]] = [(cpsat, solve_cpsat), (milp, solve_highs)]
LARGEST_SPACE = 60


def solve_cell(instance: Instance, cell: Cell, twin: ModuleType, engine: Engine) -> tuple[EngineOutcome, Any, float]:
    problem = state(instance, cell)
    model = twin.build(problem)
    return engine(model.model, LIMITS), model, problem.tick_s


def of_cell(instance: Instance, cell: Cell) -> list[Plan]:
    """All plans of a cell."""
    counts = {str(t - c): count for (t, c), count in zip(instance.workload.shapes, cell.counts, strict=True)}
    return [
        plan
        for plan in every_v_plan(instance, (cell.schedule,), [cell.batch])
        if all(len(sizes) == counts[key] for key, sizes in plan.chunks.items())
    ]


def most_on_a_path(instance: Instance, cell: Cell) -> int:
    """Tasks and transfers on a path, each of which may lose a tick to rounding."""
    waves = instance.workload.gathered(cell.batch).waves
    return 2 * (2 * instance.pipeline.stages + 2 * waves * sum(cell.counts)) + 2


@settings(max_examples=220)
@given(recipes())
def test_twins_agree_and_no_replay_is_below_them(recipe: Recipe) -> None:
    instance = v_instance(recipe)
    if recipe.chance(30):
        instance, _ = with_memory(recipe, instance, v_plan(recipe, instance))
    if virtual_reason(instance) is not None:
        return
    cell = recipe.choice([cell for cell in cells(instance) if sum(cell.counts) <= 4])
    plans = of_cell(instance, cell)
    if len(plans) > LARGEST_SPACE or len(list(state(instance, cell).tasks())) > 60:
        return
    runs = [value for plan, value in runs_of(instance, plans) if keeps_rules(instance, plan)]
    problem = state(instance, cell)
    if not all(problem.arcs.values()):
        assert not runs
        return
    first, second = (solve_cell(instance, cell, *twin) for twin in TWINS)
    assert first[0].status == second[0].status
    if first[0].status == "infeasible":
        assert not runs
        return
    assert first[0].status == "optimal"
    assert first[0].value is not None
    assert second[0].value == pytest.approx(first[0].value, abs=1.0)
    assert second[0].bound == pytest.approx(first[0].value, abs=1.0)
    if runs:
        assert problem.seconds(first[0].value) <= min(runs) * (1 + 1e-9) + 1e-6 * problem.tick_s
    for (outcome, model, _), (twin, _) in zip((first, second), TWINS, strict=True):
        cuts, layers = twin.extract(model, outcome)
        assert layers in splits(instance)
        for (tokens, cached), ends in zip(instance.workload.shapes, cuts, strict=True):
            sizes = [e - s for s, e in zip([0, *ends], ends, strict=False)]
            assert min(sizes) > 0
            assert sum(sizes) == -(-(tokens - cached) // instance.pipeline.chunk_quantum)


def roomy(recipe: Recipe) -> Instance:
    """A row of equal dies with memory for all, whose links take no time but a latency, which occupies nothing."""
    layers = recipe.integer(4, 6)
    stages = recipe.integer(1, min(3, layers // 2))
    window = recipe.integer(1, 2 * stages) if recipe.chance(25) else None
    return line(
        [1] * (stages - 1) + [layers - stages + 1],
        model=recipe.model()
        | {
            "layers": [
                {"pattern": ["one", "two"], "repeat": layers // 2},
                *[{"pattern": ["one"], "repeat": 1}] * (layers % 2),
            ]
        },
        hardware={
            "hop_latency_s": recipe.choice((0, 0.001, 0.02)),
            "die": recipe.hardware()["die"] | {"hbm_bytes": 1e12},
        },
        costs=recipe.costs(),
        workload=recipe.workload(),
        pipeline={
            "layers": recipe.choice(("balanced", "free")),
            "chunk_quantum": recipe.choice((3, 4)),
            "max_batch": recipe.integer(1, 2),
            "max_in_flight": window,
        },
        objective=recipe.choice(("mean_latency", "makespan", "p95_latency")),
    )


@settings(max_examples=60)
@given(recipes())
def test_models_equal_the_best_replay_without_spill_and_contention(recipe: Recipe) -> None:
    instance = roomy(recipe)
    cell = recipe.choice([cell for cell in cells(instance) if sum(cell.counts) <= 4])
    plans = of_cell(instance, cell)
    if len(plans) > LARGEST_SPACE or len(list(state(instance, cell).tasks())) > 60:
        return
    runs = [value for plan, value in runs_of(instance, plans) if keeps_rules(instance, plan)]
    for twin, engine in TWINS:
        outcome, _, tick_s = solve_cell(instance, cell, twin, engine)
        if not runs:
            assert outcome.status == "infeasible" or not outcome.has_values
            continue
        assert outcome.value is not None
        value_s = state(instance, cell).seconds(outcome.value)
        assert 0 <= min(runs) - value_s + 1e-6 * tick_s + 1e-9 <= most_on_a_path(instance, cell) * tick_s


def best_replayed(instance: Instance) -> float:
    return min(value for plan, value in runs_of(instance, list(every_v_plan(instance))) if keeps_rules(instance, plan))


@pytest.mark.parametrize(("twin", "engine"), TWINS)
def test_all_cells_of_an_instance(twin: ModuleType, engine: Engine) -> None:
    """Two dies, layers free, five tokens: chunks of 2 + 2c s in all, shared by six layers; ticks of 1/3 s are exact."""
    instance = line(
        [3, 3],
        fitted={"chunk_s": 2.0, "token_s": 2.0},
        workload={"requests": 2, "tokens": 4},
        pipeline={"layers": "free", "max_batch": 2, "max_chunks": 3},
    )
    found = solve_virtual(instance, twin, engine, LIMITS, tick_s=1 / 3)
    # To the tolerance of a MILP engine.
    assert found.value_s == pytest.approx(best_replayed(instance), rel=1e-6)
    assert found.bound_s == pytest.approx(found.value_s)
    assert found.cell is not None
    (shape, ends), *_ = found.cuts.items()
    sizes = {str(shape[0]): tuple(b - a for a, b in zip([0, *ends], ends, strict=False))}
    dies = instance.hardware.live_dies[:2]
    plan = Plan(
        instance=instance.fingerprint,
        batch=found.cell.batch,
        layers=found.layers,
        placement=(*dies, *dies[::-1]),
        chunks=sizes,
        schedule=found.cell.schedule,
    )
    assert all(finding.ok for finding in check(instance, plan))
    assert runs_of(instance, [plan])[0][1] == pytest.approx(found.value_s, rel=1e-6)


@pytest.mark.parametrize("twin_and_engine", TWINS)
def test_no_v_no_value(twin_and_engine: tuple[ModuleType, Engine]) -> None:
    assert solve_virtual(line([2, 2]), *twin_and_engine, LIMITS) == VirtualResult(None, None, None, {}, ())


def test_programs_are_those_of_the_simulator() -> None:
    """Written twice from the specification: here for the models, there for the replay."""
    for dies, requests in ((1, 2), (2, 3), (3, 2)):
        instance = line([2] * dies, workload={"requests": requests, "tokens": 4}, pipeline={"layers": "balanced"})
        for cell in cells(instance):
            problem = state(instance, cell)
            numbers = {
                task: number
                for number, task in enumerate((w, j, i) for w, i in problem.chunks() for j in range(2 * dies))
            }
            die_of_stage = [*range(dies), *reversed(range(dies))]
            pointers, tasks = die_orders(cell.schedule, die_of_stage, [cell.counts[0]] * len(problem.wave_kind))
            for die, program in enumerate(problem.programs()):
                assert [numbers[task] for task in program] == tasks[pointers[die] : pointers[die + 1]].tolist()


def quadratic_line() -> Instance:
    return line(
        [2] * 4,
        fitted={"chunk_s": 1.0, "token_s": 1.0, "pair_s": 0.02},
        workload={"requests": 1, "tokens": 24},
        pipeline={"layers": "balanced", "max_chunks": 24},
    )


def test_v_beats_every_plain_plan() -> None:
    """Four dies, 24 quanta, one request, t = 1 + c + 0.02(2pc + c^2): twelve equal chunks in a V against any cuts.

    V: sum of t is 12 + 24 + 0.02*24^2 = 47.52, a fourth on the fold die; the first and the last chunk, of 3.08 and
    4.84 s, take an eighth on each of 3 parts: 11.88 + 3*7.92/8 = 14.85. The plain optimum is 15.26.
    """
    instance = quadratic_line()
    bound = TimeBounds(instance, StageTables(instance)).batch(1)
    assert bound.bound_s == pytest.approx(15.26, abs=0.005)
    dies = tuple((0, column) for column in range(4))
    schedules: tuple[Schedule, ...] = ("vpp-async", "vpp-packed")
    for schedule in schedules:
        plan = Plan(
            instance=instance.fingerprint,
            batch=1,
            layers=(1,) * 8,
            placement=dies + dies[::-1],
            chunks={"24": (2,) * 12},
            schedule=schedule,
        )
        ((_, value),) = runs_of(instance, [plan])
        assert value == pytest.approx(14.85, abs=1e-6)
