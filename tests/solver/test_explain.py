"""``explain``: what it proves, and that every change it names helps; held against all plans of tiny instances."""

from __future__ import annotations

import math
from typing import Any

import pytest

from instances.errors import InputError
from instances.instance import Instance
from instances.rules import REPLAY_RULES, STATIC_RULES
from solver.api import solve
from solver.evaluate import Evaluator
from solver.explanation.answer import explain
from solver.explanation.result import Change, Explanation
from solver.limits import Limits
from solver.replaying import simulate
from tests.brute_force import every_plan
from tests.builders import small_instance
from tests.tiny import Recipe, line

NO_LIMIT = Limits(time_s=None)


def changed(instance: Instance, field: str, value: Any) -> Instance:
    """The instance read again with one field of its file changed; memory is a floor for every die."""
    if " and " in field:
        for name, part in zip(field.split(" and "), value, strict=True):
            instance = changed(instance, name, part)
        return instance
    document = instance.canonical()
    *outer, last = field.split(".")
    place = document
    for key in outer:
        place = place[key]
    place[last] = value
    if last == "hbm_bytes":
        before = instance.hardware.die.hbm_bytes
        place[last] = max(value, before)
        for override in document["hardware"]["dies"]:
            if override["hbm_bytes"] is not None:
                override["hbm_bytes"] = max(value, override["hbm_bytes"])
    return Instance.read(document)


def some_plan_runs(instance: Instance, *, spill: bool = True) -> bool:
    evaluator = Evaluator(instance)
    return any(evaluator.full(plan).value is not None for plan in every_plan(instance, spill=spill))


def check_changes(instance: Instance, answer: Explanation, *, every: bool = True) -> None:
    """Each change gives a plan; where it is said that there is none, none of all plans runs."""
    for change in answer.changes:
        better = changed(instance, change.field, change.to)
        found = solve(better, limits=Limits(time_s=20, gap=math.inf), knobs={"compare": "no"})
        if found.plan is None:
            found = solve(better, limits=Limits(time_s=20))
        assert found.plan is not None, change
        assert change.proved_minimal <= (change.no_plan_at is not None)
        if every and change.no_plan_at is not None:
            assert not some_plan_runs(changed(instance, change.field, _plain(change))), change


def _plain(change: Change) -> Any:
    return change.no_plan_at


def test_a_feasible_instance_comes_with_a_plan() -> None:
    instance = small_instance()
    answer = explain(instance, limits=NO_LIMIT)
    assert (answer.feasible, answer.proved, answer.stop_reason) == (True, True, "done")
    assert (answer.clash, answer.changes, answer.tried) == ((), (), {})
    assert answer.plan is not None
    assert answer.value == simulate(instance, answer.plan).mean_latency_s


# One layer of 18 bytes on each of two dies, embedding 4 and head 6: with chunks of one of four tokens (5 of workspace,
# 2 of KV, and 8 of KV that may be at the other die) 18 + 6 + 5 + 2 = 31 bytes on the last die.
TINY: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"hardware": {"die": {"hbm_bytes": 25}}}, ("capacity_at_rest",)),
    ({"hardware": {"die": {"hbm_bytes": 30}}}, ("memory_admission",)),
    ({"hardware": {"die": {"hbm_bytes": 44}}, "pipeline": {"max_chunks": 1}}, ("memory_admission", "chunk_count")),
    ({"hardware": {"die": {"hbm_bytes": 38}}, "pipeline": {"max_chunks": 1}}, ("chunk_count", "capacity_at_rest")),
    ({"hardware": {"die": {"hbm_bytes": 43}}, "pipeline": {"chunk_quantum": 4}}, ("chunk_quantum", "capacity_at_rest")),
    ({"hardware": {"columns": 3, "disabled_dies": [[0, 1]]}}, ("placement_connected", "placement_live")),
    ({"hardware": {"disabled_links": [[[0, 0], [0, 1]]]}}, ("placement_connected",)),
    (
        {"pipeline": {"forbidden_cuts": [1]}, "model": {"layers": [{"pattern": ["k"], "repeat": 2}]}},
        ("forbidden_cuts",),
    ),
]


@pytest.mark.parametrize(("parts", "core"), TINY)
def test_clashes_of_tiny_instances(parts: dict[str, Any], core: tuple[str, ...]) -> None:
    instance = line((1, 1), **{**parts, "pipeline": {"layers": "free", **parts.get("pipeline", {})}})
    answer = explain(instance, limits=NO_LIMIT)
    assert (answer.feasible, answer.proved, answer.plan, answer.value) == (False, True, None, None)
    assert tuple(row.rule for row in answer.clash) == core
    for row in answer.clash:
        assert row.what == STATIC_RULES[row.rule].says if row.rule in STATIC_RULES else REPLAY_RULES[row.rule]
        assert row.where
        assert row.amount is not None
        assert row.amount > 0
    assert not some_plan_runs(instance)
    assert answer.changes
    check_changes(instance, answer)


def test_amounts() -> None:
    # 18 + 6 + 5 = 29 bytes at rest on the last die, 25 there.
    answer = explain(line((1, 1), hardware={"die": {"hbm_bytes": 25}}), limits=NO_LIMIT)
    row = answer.clash[0]
    # Without rules on chunks they may be of one token, as these are: the same 29.
    assert (row.rule, row.amount, row.unit) == ("capacity_at_rest", 4, "bytes")
    assert "stage 1 (layers 1..1)" in row.where
    memory = next(change for change in answer.changes if change.field == "hardware.die.hbm_bytes")
    # 31 with the KV of a chunk, which the other die with its 18 + 4 + 5 has room for: 4 + 0 of 8 - too few, so more.
    assert memory.before == 25
    assert memory.no_plan_at is not None
    assert memory.to > memory.no_plan_at >= 30


def test_a_die_that_is_too_small_for_any_stage() -> None:
    instance = small_instance(hardware__dies=[{"at": [0, 1], "hbm_bytes": "50 kB"}])
    answer = explain(instance, limits=NO_LIMIT)
    assert [row.rule for row in answer.clash] == ["capacity_at_rest"]
    fewer = next(change for change in answer.changes if change.field == "pipeline.stages")
    assert (fewer.before, fewer.to, fewer.proved_minimal) == (4, 3, True)
    check_changes(instance, answer, every=False)


def test_two_clashes_that_share_no_rule() -> None:
    # Too little memory, and no cut allowed.
    instance = line((1, 1), hardware={"die": {"hbm_bytes": 10}}, pipeline={"layers": "free", "forbidden_cuts": [1]})
    answer = explain(instance, limits=NO_LIMIT)
    assert len(answer.further) == 1
    rules = [row.rule for rows in (answer.clash, *answer.further) for row in rows]
    assert sorted(rules) == ["capacity_at_rest", "forbidden_cuts"]
    # One field alone mends only one of them: a single stage needs no cut, but more memory.
    assert answer.changes == ()
    assert set(answer.tried) >= {"hardware.die.hbm_bytes", "pipeline.stages"}


def test_a_deadlock_is_not_a_proof() -> None:
    instance = small_instance(hardware__die__hbm_bytes="400 kB")
    answer = explain(instance, limits=Limits(time_s=25))
    assert (answer.feasible, answer.proved) == (False, False)
    assert [row.rule for row in answer.clash] == ["deadlock"]
    assert answer.clash[0].unit == "bytes"
    assert answer.clash[0].amount is not None
    assert answer.clash[0].amount > 0
    assert "hardware.die.hbm_bytes" in {change.field for change in answer.changes}
    for change in answer.changes:
        assert not change.proved_minimal
        assert change.no_plan_at is None
    check_changes(instance, answer, every=False)


def test_chunks_that_were_not_measured() -> None:
    costs = {"kind": "table", "rows": [[c, p, 1.0] for c in (1, 2) for p in (0, 4)]}
    instance = line((1, 1), costs=costs, workload={"requests": 1, "tokens": 6}, pipeline={"max_chunks": 2})
    answer = explain(instance, limits=NO_LIMIT)
    assert (answer.feasible, answer.proved) == (False, True)
    assert answer.clash[0].where
    assert "pipeline.max_chunks" in {change.field for change in answer.changes}
    check_changes(instance, answer)


@pytest.mark.parametrize("seed", range(8))
def test_random_instances_against_every_plan(seed: int) -> None:
    recipe = Recipe.seeded(seed, 77)
    workload = {
        "requests": recipe.integer(1, 2),
        "tokens": recipe.integer(5, 8),
        "cached_tokens": recipe.choice((0, 1)),
    }
    instance = recipe.instance(tight=True, workload=workload)
    die = instance.hardware.die
    less = die.model_copy(update={"hbm_bytes": float(round(die.hbm_bytes * recipe.choice((0.6, 0.8, 0.95))))})
    instance = Instance.read(
        instance.model_copy(
            update={"hardware": instance.hardware.model_copy(update={"die": less})},
        ).canonical()
    )
    answer = explain(instance, limits=NO_LIMIT)
    if answer.feasible:
        assert answer.plan is not None
        assert Evaluator(instance).full(answer.plan).value == answer.value
    elif answer.proved:
        assert not some_plan_runs(instance)
    check_changes(instance, answer)


def test_the_answer_repeats() -> None:
    instance = small_instance(hardware__die__hbm_bytes="700 kB", pipeline__max_chunks=1)
    first, second = (explain(instance, limits=NO_LIMIT) for _ in range(2))
    assert first.model_copy(update={"runtime_s": 0.0}) == second.model_copy(update={"runtime_s": 0.0})


def test_interruption_keeps_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("solver.explanation.changes.find_plan_of_changed", interrupt)
    answer = explain(small_instance(hardware__die__hbm_bytes="10 kB"), limits=NO_LIMIT)
    assert (answer.stop_reason, answer.proved, answer.changes) == ("interrupted", True, ())
    assert [row.rule for row in answer.clash] == ["capacity_at_rest"]
    monkeypatch.setattr("solver.explanation.answer.find_plan", interrupt)
    answer = explain(small_instance(), limits=NO_LIMIT)
    assert (answer.stop_reason, answer.feasible, answer.proved) == ("interrupted", False, False)


def test_other_objectives_are_refused() -> None:
    with pytest.raises(InputError, match="max_tokens"):
        explain(small_instance(objective="max_tokens"))
