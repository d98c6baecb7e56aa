"""The joint model with memory to spare: CP-SAT, MILP and every plan under the replay agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.interface import Engine, EngineLimits
from formulations.joint import cpsat, milp
from formulations.joint.choices import choices_of
from formulations.joint.problem import Task, has_left, starts_before
from formulations.joint.solve import FORMS, JointResult, solve_joint
from formulations.joint.variables import stated
from instances.check import check
from instances.errors import InputError
from instances.instance import Instance
from solver.backends.cpsat import solve_cpsat
from solver.backends.highs import solve_highs
from solver.evaluate import Evaluator
from tests.brute_force import cut_lists, every_plan
from tests.formulations.joint_cases import best_values, small_instance
from tests.tiny import line

LIMITS = EngineLimits(time_s=20.0, deterministic=True)
ENGINES: dict[str, Engine] = {"cpsat": solve_cpsat, "milp": solve_highs}


def _solved(instance: Instance, **options: Any) -> dict[str, JointResult]:
    return {form: solve_joint(instance, form, ENGINES[form], LIMITS, **options) for form in FORMS}


def _assert_agree(instance: Instance, found: dict[str, JointResult], best: dict[int, float]) -> None:
    """Both models have the same best value and bound, equal to that of the replay, and plans that reach it."""
    value, evaluator = min(best.values()), Evaluator(instance)
    for result in found.values():
        assert (result.status, result.stop_reason) == ("optimal", "proved")
        assert result.plan is not None
        assert result.value_s is not None
        assert result.bound_s is not None
        assert result.scope.contains(result.plan)
        assert result.bound_s <= value
        assert result.value_s == pytest.approx(value, rel=1e-6)
        assert result.bound_s == pytest.approx(value, rel=1e-6)
        assert [finding for finding in check(instance, result.plan) if not finding.ok] == []
        for batch, plan in result.plans.items():
            assert evaluator.value(plan) == pytest.approx(best[batch], rel=1e-6)


@settings(max_examples=110)
@given(seed=st.integers(0, 10**6))
def test_every_plan_and_both_models_agree(seed: int) -> None:
    instance = small_instance(seed)
    _assert_agree(instance, _solved(instance), best_values(instance, spill=False))


def _two_stages(**parts: Any) -> Instance:
    """Two stages of one layer on two dies; a chunk of c tokens takes c/2 s on each; links take no time."""
    return line([1, 1], fitted={"token_s": 1.0}, **parts)


def test_makespan_by_hand() -> None:
    # One request of 4 tokens: 4 * 0.5 s of work, and the largest chunk once more: single tokens, 2.5 s.
    for result in _solved(_two_stages()).values():
        assert result.value_s == pytest.approx(2.5)
        assert result.plan is not None
        assert result.plan.chunks == {"4": (1, 1, 1, 1)}
        assert result.gap == pytest.approx(0.0, abs=1e-9)


def test_transfers_and_overheads_by_hand() -> None:
    # Chunks cost 1 s each beside 0.5 s a token: one of 4 takes 3 + 3, two of 2 take 2 + 2 + 2; three take more.
    instance = line([1, 1], fitted={"token_s": 1.0, "chunk_s": 2.0})
    assert {form: result.value_s for form, result in _solved(instance).items()} == pytest.approx(
        {"cpsat": 6.0, "milp": 6.0}
    )
    # A token's activations are 2 bytes: at 2 bytes a second the two of a chunk take 2 s more, all four 4 s.
    slow = line([1, 1], fitted={"token_s": 1.0, "chunk_s": 2.0}, hardware={"link_bytes_per_s": 2})
    for result in _solved(slow).values():
        assert result.value_s == pytest.approx(8.0)


def test_activations_queue_for_their_link() -> None:
    # At a byte a second the 2 bytes of each token take 2 s, 8 s in all, after 0.5 s for the first token and before
    # 0.5 s for the last.
    instance = line([1, 1], fitted={"token_s": 1.0}, hardware={"link_bytes_per_s": 1})
    assert best_values(instance, spill=False) == {1: pytest.approx(9.0)}
    for result in _solved(instance).values():
        assert result.value_s == pytest.approx(9.0)


def test_a_window_of_one_runs_chunks_one_by_one() -> None:
    # Whatever the cuts, each chunk leaves before the next enters: 4 * 0.5 s on either stage.
    for result in _solved(_two_stages(pipeline={"max_in_flight": 1})).values():
        assert result.value_s == pytest.approx(4.0)


def test_batches_and_mean_latency_by_hand() -> None:
    # Two requests, one token a chunk. Batch 1: ends at 2.5 and 4.5, mean 3.5. Fitted times are a batch's whatever its
    # size counts: batch 2 takes twice as long, 5 s for both.
    instance = _two_stages(workload={"requests": 2, "tokens": 4}, pipeline={"max_batch": 2}, objective="mean_latency")
    for result in _solved(instance).values():
        assert result.value_s == pytest.approx(3.5)
        assert sorted(result.plans) == [1, 2]
        assert result.plan is not None
        assert result.plan.batch == 1


def test_a_free_split_gives_the_fast_die_more() -> None:
    # Three layers of 4 tokens on dies of 2500 and 10000 FLOP/s, one chunk at most; the brute force knows the best.
    instance = line(
        [1, 2],
        hardware={"dies": [{"at": [0, 1], "peak_flops": 2500}]},
        pipeline={"layers": "free", "max_chunks": 2},
    )
    best = best_values(instance, spill=False)
    _assert_agree(instance, _solved(instance), best)
    plan = _solved(instance)["milp"].plan
    assert plan is not None
    assert plan.layers == (2, 1) if plan.placement[1] == (0, 1) else (1, 2)


def test_a_start_and_a_value_to_beat() -> None:
    instance = small_instance(5)
    best = min(best_values(instance, spill=False).values())
    start = next(every_plan(instance))
    for result in _solved(instance, start=start).values():
        assert result.value_s == pytest.approx(best, rel=1e-6)
    for result in _solved(instance, start=start, below_s=best).values():
        assert result.bound_s == pytest.approx(best, rel=1e-6)
        assert result.bound_s is not None
        assert result.bound_s <= best
    # Nothing is better than half of the best: that half is a bound then.
    for result in _solved(instance, below_s=best / 2).values():
        assert (result.plan, result.status) == (None, "unknown")
        assert result.bound_s == best / 2


def test_a_number_of_chunks() -> None:
    for seed in range(12):
        instance = small_instance(seed)
        evaluator = Evaluator(instance)
        values = [
            value
            for plan in every_plan(instance)
            if all(len(sizes) == 2 for sizes in plan.chunks.values()) and (value := evaluator.value(plan)) is not None
        ]
        for result in _solved(instance, chunk_counts=(2, 2)).values():
            assert result.value_s == pytest.approx(min(values), rel=1e-6)
            assert result.scope.chunks == (2, 2)


def test_a_rule_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a rule the models are too optimistic somewhere: the agreement above means something."""
    instances = [small_instance(seed) for seed in range(30)]
    best = [min(best_values(instance, spill=False).values()) for instance in instances]
    for rule in ("die_serial", "activation_ready", "in_flight_window"):
        for twin in (cpsat, milp):
            monkeypatch.setattr(twin, rule, lambda joint: None)
        for form, engine in ENGINES.items():
            found = [solve_joint(instance, form, engine, LIMITS).value_s for instance in instances]
            assert any(value is not None and value < least * 0.99 for value, least in zip(found, best, strict=True))
        monkeypatch.undo()


def test_what_is_known_of_two_tasks() -> None:
    assert starts_before(Task(0, 0, 1), Task(0, 1, 1)) is True
    assert starts_before(Task(1, 1, 0), Task(0, 1, 2)) is False
    assert starts_before(Task(0, 1, 0), Task(0, 0, 1)) is None
    # A wave has left stage 0 when its last chunk, slot 2, starts at stage 1, and when the next wave starts on stage 0.
    assert has_left((0, 0), Task(0, 1, 2), 2) is True
    assert has_left((0, 0), Task(1, 0, 0), 2) is True
    assert has_left((0, 1), Task(0, 0, 2), 2) is False
    assert has_left((0, 1), Task(1, 0, 0), 2) is None


def test_choices_that_look_alike_are_one() -> None:
    # Two equal dies: either order is the same. With one that differs there are two.
    assert len(choices_of(line([1, 1])).configurations) == 1
    other = line([1, 1], hardware={"dies": [{"at": [0, 1], "chunk_overhead_s": 1.0}]})
    assert len(choices_of(other).configurations) == 2
    # Three of four dies in a square: the middle stage beside both others, or two hops from one of them.
    square = line([1, 1, 1], hardware={"rows": 2, "columns": 2})
    ways = {tuple(way.hops for way in one.ways) for one in choices_of(square).configurations}
    assert ways == {(1, 1), (1, 2), (2, 1)}


def test_slots_and_arcs() -> None:
    # Three quanta, at most two chunks: 0..3 whole, or 0..1 and 0..2 first with the rest last.
    instance = line([1, 1], workload={"requests": 1, "tokens": 3}, pipeline={"max_chunks": 2})
    problem = stated(instance, 1)
    found = sorted((tuple(arc), list(slots)) for arc, slots in problem.arcs[0].items())
    assert found == [
        ((0, 1, False), [0]),
        ((0, 2, False), [0]),
        ((0, 3, True), [0]),
        ((1, 3, True), [1]),
        ((2, 3, True), [1]),
    ]
    assert len(cut_lists(instance, 3)) == 3
    assert not problem.memory_binds


def test_what_the_model_is_not_for() -> None:
    with pytest.raises(InputError, match="capacity"):
        solve_joint(line([1, 1], objective="max_tokens"), "milp", solve_highs, LIMITS)
    large = line([1] * 9, hardware={"rows": 3, "columns": 3})
    with pytest.raises(InputError, match="placements"):
        solve_joint(large, "milp", solve_highs, LIMITS)
