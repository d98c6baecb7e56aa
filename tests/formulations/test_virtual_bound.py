"""The bound of V-shaped schedules: by hand, against all plans of small spaces, local search, and with errors put in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from formulations.bounds import BatchBound
from formulations.tables import StageTables
from formulations.virtual import bound, path
from formulations.virtual.bound import VirtualBounds
from formulations.virtual.path import Build, FoldPath
from formulations.virtual.split import virtual_reason
from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluator
from tests.brute_force import batches
from tests.formulations.hunted import Hunted, caught
from tests.formulations.virtual_cases import (
    LARGEST_SPACE,
    every_v_plan,
    keeps_rules,
    plans_of,
    runs_of,
    splits,
    v_descend,
)
from tests.solver.simulation.v_plans import v_instance, v_plan, with_memory
from tests.tiny import Recipe, line, recipes

PARTS, INSTANCES_PER_PART = 4, 40


def found_bounds(instance: Instance, chunks: int | None = None) -> dict[int, BatchBound]:
    proved = VirtualBounds(instance, StageTables(instance), chunks)
    return {batch: proved.batch(batch) for batch in batches(instance)}


def assert_bounded(instance: Instance, runs: list[tuple[Plan, float]], found: dict[int, BatchBound]) -> None:
    """No value is below the bound of its batch, and where no plan can exist none runs."""
    for batch in found:
        bound_s, trivial_s = found[batch].bound_s, found[batch].trivial_s
        below = [plan for plan, value in runs if plan.batch == batch and (bound_s is None or value < bound_s)]
        # The check takes longer than the replay.
        assert not any(keeps_rules(instance, plan) for plan in below), (instance, found[batch].reason)
        assert bound_s is None or (trivial_s is not None and trivial_s <= bound_s)


def equal_v(dies: int, chunks: int, requests: int = 1, **parts: Any) -> Instance:
    """A V of one layer a part; chunks of one quantum that take 2N s, one on each part, one after the other."""
    return line(
        [2] * dies,
        fitted={"token_s": 2.0 * dies},
        workload={"requests": requests, "tokens": chunks},
        pipeline={"max_chunks": chunks, "layers": "balanced", **parts},
    )


@pytest.mark.parametrize(
    ("dies", "chunks", "requests"), [(1, 1, 1), (2, 3, 1), (3, 4, 1), (4, 6, 1), (2, 3, 2), (3, 5, 3)]
)
def test_equal_chunks_are_proved_optimal(dies: int, chunks: int, requests: int) -> None:
    """Chunks of a quantum take 1 s a part: the fold die works 2*M*W s, a chunk comes and goes in N-1 s each.

    A larger first or last chunk takes longer to come or to go, and no cuts make the work less.
    """
    instance = equal_v(dies, chunks, requests)
    expected = 2 * chunks * requests + 2 * (dies - 1)
    assert found_bounds(instance)[1].bound_s == pytest.approx(expected, rel=1e-9)
    best = min(value for _, value in runs_of(instance, list(every_v_plan(instance))))
    assert best == pytest.approx(expected, rel=1e-9)


def test_slow_links_let_few_chunks_in() -> None:
    """Two dies, one-quantum chunks only: 1 s on each of 4 parts and 100 s there and back, three chunks inside at most.

    Six of them: 6*(4 + 200)/3 = 408 s, far more than the fold die's work. A window of one: 6*204 s, which is met.
    """
    limits = {"layers": "balanced", "max_chunks": 6, "chunk_quantum": 1}
    parts: dict[str, Any] = {
        "fitted": {"token_s": 4.0},
        "workload": {"requests": 1, "tokens": 6},
        "hardware": {"hop_latency_s": 100.0},
    }
    assert found_bounds(line([2, 2], pipeline=limits, **parts), 6)[1].bound_s == pytest.approx(408.0, rel=1e-9)
    one = line([2, 2], pipeline={**limits, "max_in_flight": 1}, **parts)
    assert found_bounds(one, 6)[1].bound_s == pytest.approx(1224.0, rel=1e-9)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_v_of_a_whole_space_beats_the_bound(part: int) -> None:
    spaces = 0
    for number in range(INSTANCES_PER_PART):
        recipe = Recipe.seeded(31, part, number)
        instance = v_instance(recipe)
        if recipe.chance(50):
            instance, _ = with_memory(recipe, instance, v_plan(recipe, instance))
        if plans_of(instance) > LARGEST_SPACE:
            continue
        spaces += 1
        runs = runs_of(instance, list(every_v_plan(instance)))
        assert_bounded(instance, runs, found_bounds(instance))
        for count in {len(sizes) for plan, _ in runs for sizes in plan.chunks.values()}:
            inside = [run for run in runs if all(len(sizes) == count for sizes in run[0].chunks.values())]
            assert_bounded(instance, inside, found_bounds(instance, count))
    assert spaces >= INSTANCES_PER_PART // 2


@settings(max_examples=60)
@given(recipes())
def test_local_search_does_not_get_below_the_bound(recipe: Recipe) -> None:
    instance = v_instance(recipe)
    plan = v_plan(recipe, instance)
    if recipe.chance(30):
        instance, plan = with_memory(recipe, instance, plan)
    found = found_bounds(instance)
    start = plan.model_copy(update={"batch": min(plan.batch, max(found))})
    promised = {batch: each.bound_s for batch, each in found.items()}
    assert_bounded(instance, list(v_descend(Evaluator(instance), start, promised, 30)), found)


@pytest.fixture(scope="module")
def hunted() -> list[Hunted]:
    """Best values of exhausted instances, without memory limits."""
    cases: list[Hunted] = []
    # In the first ones the way in of the second chunk and the way out of the last but one matter.
    drawn = [*LINES, *(v_instance(Recipe.seeded(32, number)) for number in range(60))]
    for number, instance in enumerate(drawn):
        if number >= len(LINES) and plans_of(instance) > LARGEST_SPACE:
            continue
        best: dict[int, float] = {}
        for plan, value in runs_of(instance, list(every_v_plan(instance))):
            best[plan.batch] = min(value, best.get(plan.batch, value))
        cases.append((instance, best))
    return cases


def test_a_bound_one_percent_too_high_is_caught(hunted: list[Hunted]) -> None:
    assert caught(hunted, found_bounds) == 0
    assert caught(hunted, found_bounds, 1.01) >= len(hunted) / 4


def line_of_dies(dies: int, tokens: int, **fitted: float) -> Instance:
    limits = {"max_chunks": tokens, "layers": "balanced"}
    return line([2] * dies, fitted=fitted, workload={"requests": 1, "tokens": tokens}, pipeline=limits)


LINES = [
    line_of_dies(2, 8, chunk_s=1.0, token_s=8.0),
    line_of_dies(3, 7, chunk_s=3.0, token_s=6.0),
    line_of_dies(3, 8, chunk_s=1.0, token_s=8.0),
]

MUTANTS: dict[str, Callable[[FoldPath], FoldPath]] = {
    "work": lambda over: replace(over, work=over.work * 1.01),
    "entry": lambda over: replace(over, entry=over.entry * 1.01),
    "exit": lambda over: replace(over, exit=over.exit * 1.01),
    "lead": lambda over: replace(over, lead=over.lead * 0.0),
    "trail": lambda over: replace(over, trail=over.trail * 0.0),
}


@pytest.mark.parametrize("part", MUTANTS)
def test_each_part_of_the_path_is_as_large_as_can_be(
    hunted: list[Hunted], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every part matters somewhere: made wrong, the hunt catches it."""
    right = path.fold_paths

    def wrong(*arguments: Any) -> list[Build]:
        def mutant(build: Build) -> Build:
            return lambda size, shape, limit: MUTANTS[part](build(size, shape, limit))

        return [mutant(build) for build in right(*arguments)]

    monkeypatch.setattr(bound, "fold_paths", wrong)
    assert caught(hunted, found_bounds) >= 1


def test_reasons_why_there_is_no_v() -> None:
    given_layers = line([2, 2])
    assert (virtual_reason(given_layers) or "").startswith("layers_given")
    short = line([2, 1], pipeline={"layers": "balanced"})
    assert (virtual_reason(short) or "").startswith("stage_nonempty: a V has 4 parts, the model 3 layers")
    cut = line([2, 2], pipeline={"layers": "balanced", "forbidden_cuts": [3]})
    assert (virtual_reason(cut) or "").startswith("forbidden_cuts: the balanced split over 4 parts cuts at layer 3")
    few = line([3, 3], pipeline={"layers": "free", "forbidden_cuts": [1, 2, 3]})
    assert (virtual_reason(few) or "").startswith("forbidden_cuts: 3 cuts are needed, and 2 allowed")
    assert splits(few) == []
    assert virtual_reason(line([2, 2], pipeline={"layers": "free"})) is None
