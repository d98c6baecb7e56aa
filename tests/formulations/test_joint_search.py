"""The exact method on tiny instances: as good as every plan, with bounds from the joint model."""

from __future__ import annotations

import pytest

from instances.instance import Instance
from solver.evaluate import Evaluator
from solver.exact.joint import joint
from solver.search import Search
from tests.brute_force import every_plan
from tests.formulations.joint_cases import best_values, small_instance
from tests.searches import bare_search
from tests.tiny import line


def _searched(instance: Instance, *, chunks: int | None = None) -> Search:
    """A search in which only the part for tiny instances has run."""
    search = bare_search(instance, chunks=chunks)
    joint(search)
    return search


@pytest.mark.parametrize("part", range(4))
def test_every_plan_is_no_better_and_the_bound_is_met(part: int) -> None:
    for seed in range(15 * part, 15 * part + 15):
        instance = small_instance(seed)
        best = min(best_values(instance, spill=False).values())
        found = _searched(instance).incumbent
        assert found.value == pytest.approx(best, rel=1e-9)
        assert found.bound is not None
        assert found.value is not None
        assert found.bound <= found.value
        assert found.gap == pytest.approx(0.0, abs=1e-5)


def test_where_memory_binds_the_bound_stays_below_every_plan() -> None:
    closed = 0
    for seed in range(20):
        instance = small_instance(seed, tight=True)
        best = min(best_values(instance, spill=True).values(), default=None)
        found = _searched(instance).incumbent
        if best is not None:
            assert found.bound is not None
            assert found.bound <= best
            closed += found.value is not None and found.value <= best * (1 + 1e-9)
    assert closed >= 10


def test_a_number_of_chunks_that_was_asked_for() -> None:
    instance = small_instance(3)
    evaluator = Evaluator(instance)
    plans = [plan for plan in every_plan(instance) if all(len(sizes) == 2 for sizes in plan.chunks.values())]
    values = [value for plan in plans if (value := evaluator.value(plan)) is not None]
    found = _searched(instance, chunks=2).incumbent
    assert found.value == pytest.approx(min(values), rel=1e-9)
    assert found.plan is not None
    assert {len(sizes) for sizes in found.plan.chunks.values()} == {2}


def test_all_plans_prove_the_best_where_none_can_spill() -> None:
    # One stage and no host: every plan is replayed, and the best is proved to the last digit.
    instance = line([2], workload={"requests": 2, "tokens": 4}, pipeline={"max_batch": 2})
    found = _searched(instance).incumbent
    assert found.value == min(best_values(instance, spill=False).values())
    assert found.bound == found.value


def test_large_instances_are_left_alone() -> None:
    instance = line([1] * 9, hardware={"rows": 3, "columns": 3})
    found = _searched(instance).incumbent
    assert (found.plan, found.bound) == (None, None)
    long = line([1, 1], workload={"requests": 4, "tokens": 40}, pipeline={"max_chunks": 40})
    found = _searched(long).incumbent
    assert (found.plan, found.bound) == (None, None)
