"""The time bounds against every plan of small spaces, against local search, and against bounds that are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given, settings

from formulations import bounds, stage_path
from formulations.admissible import admissible_chunk_tokens
from formulations.bounds import BatchBound, TimeBounds
from formulations.stage_path import StagePath
from formulations.tables import StageTables
from instances.instance import Instance
from instances.plan import Plan
from instances.workload import form_waves
from solver.evaluate import Evaluator
from tests.brute_force import batches, descend, every_plan
from tests.formulations.hunted import Hunted, caught
from tests.tiny import Recipe, recipes

PARTS, INSTANCES_PER_PART, LARGEST_SPACE = 8, 38, 200


def _exhausted(*seed: int) -> tuple[Instance, list[Plan]] | None:
    """A random instance with all its plans, those with spill too where memory binds; None if they are too many."""
    recipe = Recipe.seeded(*seed)
    memory_binds = recipe.chance(50)
    instance = recipe.instance(tight=memory_binds)
    plans = list(islice(every_plan(instance, spill=memory_binds), LARGEST_SPACE + 1))
    return None if len(plans) > LARGEST_SPACE else (instance, plans)


def _bounds(instance: Instance, chunks: int | None = None) -> dict[int, BatchBound]:
    proved = TimeBounds(instance, StageTables(instance), chunks)
    return {batch: proved.batch(batch) for batch in batches(instance)}


def _assert_bounded(instance: Instance, runs: Iterable[tuple[Plan, float]], found: dict[int, BatchBound]) -> None:
    """No value is below the bound of its batch, and where no plan can exist none runs."""
    for plan, value in runs:
        bound, trivial = found[plan.batch].bound_s, found[plan.batch].trivial_s
        assert bound is not None, (found[plan.batch].reason, plan)
        assert trivial is not None
        assert trivial <= bound <= value, (instance, plan)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_plan_of_a_whole_space_beats_the_bound(part: int) -> None:
    spaces = 0
    for number in range(INSTANCES_PER_PART):
        space = _exhausted(11, part, number)
        if space is None:
            continue
        spaces += 1
        instance, plans = space
        evaluator = Evaluator(instance)
        runs = [(plan, value) for plan in plans if (value := evaluator.value(plan)) is not None]
        _assert_bounded(instance, runs, _bounds(instance))
        for plan, _ in runs:
            _assert_admissible(instance, plan)
        counts = {len(sizes) for plan, _ in runs for sizes in plan.chunks.values()}
        for count in counts:
            inside = [run for run in runs if all(len(sizes) == count for sizes in run[0].chunks.values())]
            _assert_bounded(instance, inside, _bounds(instance, count))
    assert spaces >= 25  # 200 instances over all parts


def _assert_admissible(instance: Instance, plan: Plan) -> None:
    """The chunks of a plan that runs are within the limit."""
    for wave in form_waves(instance.workload.all_requests(), plan.batch):
        limit, reason = admissible_chunk_tokens(instance, wave.size, wave.shape)
        assert reason is None
        assert max(plan.chunk_sizes(wave.shape[0] - wave.shape[1])) <= limit


@settings(max_examples=60)
@given(recipes())
def test_local_search_does_not_get_below_the_bound(recipe: Recipe) -> None:
    instance = recipe.instance(tight=recipe.chance(30), options=recipe.chance(30))
    found = _bounds(instance)
    promised = {batch: bound.bound_s for batch, bound in found.items()}
    for _ in range(2):
        start = recipe.plan(instance)
        start = start.model_copy(update={"batch": min(start.batch, max(found))})
        _assert_bounded(instance, descend(Evaluator(instance), start, promised, 25), found)


@settings(max_examples=40)
@given(recipes())
def test_bound_without_large_chunks(recipe: Recipe) -> None:
    """``largest_chunk_tokens`` and ``enough_s`` narrow the question: the answers still hold."""
    instance = recipe.instance()
    plan = recipe.plan(instance)
    plan = plan.model_copy(update={"batch": min(plan.batch, max(batches(instance)))})
    largest = max(max(sizes) for sizes in plan.chunks.values())
    proved = TimeBounds(instance, StageTables(instance))
    free, narrow = proved.batch(plan.batch), proved.batch(plan.batch, largest_chunk_tokens=largest)
    assert free.bound_s is not None
    early = proved.batch(plan.batch, enough_s=free.bound_s / 2)
    value = Evaluator(instance).value(plan)
    assert narrow.bound_s is not None
    assert early.bound_s is not None
    assert early.bound_s <= free.bound_s
    assert value is None or max(free.bound_s, narrow.bound_s) <= value
    # To about the search's tolerance: fewer cuts cannot be better.
    assert narrow.bound_s >= free.bound_s * (1 - 1e-6)
    nothing = proved.batch(plan.batch, largest_chunk_tokens=0)
    assert nothing.bound_s is None


@pytest.fixture(scope="module")
def hunted() -> list[Hunted]:
    """Best values of exhausted instances, without memory limits."""
    cases = []
    for number in range(40):
        recipe = Recipe.seeded(12, number)
        instance = recipe.instance()
        plans = list(islice(every_plan(instance), LARGEST_SPACE + 1))
        if len(plans) > LARGEST_SPACE:
            continue
        evaluator, best = Evaluator(instance), dict[int, float]()
        for plan in plans:
            value = evaluator.value(plan)
            if value is not None:
                best[plan.batch] = min(value, best.get(plan.batch, value))
        cases.append((instance, best))
    return cases


def test_a_bound_one_percent_too_high_is_caught(hunted: list[Hunted]) -> None:
    assert caught(hunted, _bounds) == 0
    assert caught(hunted, _bounds, 1.01) >= len(hunted) / 3


MUTANTS: dict[str, Callable[[StagePath], StagePath]] = {
    "work": lambda path: replace(path, work=path.work * 1.01),
    "crossing": lambda path: replace(path, crossing=path.crossing * 1.01),
    "entry": lambda path: replace(path, entry=path.entry * 1.01),
    "way_out": lambda path: replace(path, way_out=path.way_out * 1.01),
}


@pytest.mark.parametrize("part", MUTANTS)
def test_each_part_of_the_path_is_as_large_as_can_be(
    hunted: list[Hunted], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every part matters somewhere: raised by one percent, the hunt catches it."""
    right = stage_path.stage_path

    def wrong(*arguments: object) -> StagePath:
        return MUTANTS[part](right(*arguments))  # type: ignore[arg-type]  # handed through as they came

    monkeypatch.setattr(bounds, "stage_path", wrong)
    assert caught(hunted, _bounds) >= 1
