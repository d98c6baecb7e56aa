"""Each static rule: broken plans are reported with their amounts, plans just inside the limit pass."""

from __future__ import annotations

import pytest

from instances.check import check
from instances.plan import Plan
from instances.rules import STATIC_RULES
from tests.builders import small_instance, small_plan
from tests.corruptions import CORRUPTIONS, FIRST_BYTES, LAST_BYTES, MIDDLE_BYTES, Changes, Corruption


def _broken(corruption: Corruption, plan_changes: Changes) -> dict[str, list[tuple[float, str, str]]]:
    instance = small_instance(**corruption.instance)
    plan = small_plan(instance, **plan_changes)
    broken: dict[str, list[tuple[float, str, str]]] = {}
    for finding in check(instance, plan):
        if not finding.ok:
            broken.setdefault(finding.rule, []).append((finding.amount, finding.unit, finding.where))
    return broken


def test_every_rule_has_a_corruption() -> None:
    assert {corruption.rule for corruption in CORRUPTIONS} == STATIC_RULES.keys()


def test_corruptions_have_different_names() -> None:
    assert len({str(corruption) for corruption in CORRUPTIONS}) == len(CORRUPTIONS)


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=str)
def test_the_rule_is_broken_by_the_amount(corruption: Corruption) -> None:
    broken = _broken(corruption, corruption.plan)
    found = broken.pop(corruption.rule)
    assert [amount for amount, _, _ in found] == list(corruption.amounts)
    assert {unit for _, unit, _ in found} == {corruption.unit}
    # One finding says where for each violation.
    assert len({where for _, _, where in found}) == len(found)
    assert all(where for _, _, where in found)
    assert broken.keys() == corruption.also


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=str)
def test_just_inside_every_rule_holds(corruption: Corruption) -> None:
    assert _broken(corruption, corruption.inside) == {}


def test_every_rule_breaks_alone() -> None:
    # A rule that only ever breaks together with another could hide behind it.
    assert {corruption.rule for corruption in CORRUPTIONS if not corruption.also} == STATIC_RULES.keys()


def test_corruptions_read_as_plans() -> None:
    # They are plans that a file may hold, not ones that reading refuses.
    for corruption in CORRUPTIONS:
        plan = small_plan(small_instance(**corruption.instance), **corruption.plan)
        assert Plan.parse(plan.model_dump(mode="json")) == plan


@pytest.mark.parametrize("stage", range(4))
def test_memory_exactly_full_is_allowed_at_every_stage(stage: int) -> None:
    need = (FIRST_BYTES, MIDDLE_BYTES, MIDDLE_BYTES, LAST_BYTES)[stage]
    die = [[0, 0], [0, 1], [1, 1], [1, 0]][stage]
    for spare, held in ((0, True), (-1, False)):
        instance = small_instance(hardware__dies=[{"at": die, "hbm_bytes": need + spare}])
        findings = [finding for finding in check(instance, small_plan(instance)) if finding.rule == "capacity_at_rest"]
        assert [(finding.ok, finding.amount) for finding in findings] == [(held, -spare)]
