"""The static checker as a whole: planted plans pass, nonsense is reported and never crashes it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances.check import check
from instances.errors import InputError
from instances.plan import Plan
from instances.rules import REPLAY_RULES, STATIC_RULES, Finding
from tests.builders import small_instance, small_plan, small_plan_document
from tests.instances.planted import Planted, planted


def _broken(findings: list[Finding]) -> list[tuple[str, float]]:
    return [(finding.rule, finding.amount) for finding in findings if not finding.ok]


def test_each_rule_that_holds_is_found_once_and_in_order() -> None:
    instance = small_instance()
    findings = check(instance, small_plan(instance))
    assert [finding.rule for finding in findings] == list(STATIC_RULES)
    for finding in findings:
        assert finding.model_dump() == {
            "rule": finding.rule,
            "ok": True,
            "amount": 0,
            "unit": STATIC_RULES[finding.rule].unit,
            "where": "",
        }


def test_a_broken_rule_is_found_once_for_each_place_and_not_as_held() -> None:
    instance = small_instance()
    findings = check(instance, small_plan(instance, placement=[[0, 0], [0, 0], [1, 1], [1, 1]]))
    assert _broken(findings) == [("placement_injective", 1), ("placement_injective", 1)]
    assert [finding.where for finding in findings if not finding.ok] == [
        "die [0, 0] holds stages [0, 1]",
        "die [1, 1] holds stages [2, 3]",
    ]
    assert len(findings) == len(STATIC_RULES) + 1


def test_rules_have_one_name_each() -> None:
    assert not STATIC_RULES.keys() & REPLAY_RULES.keys()
    assert all(rule.says and rule.unit for rule in STATIC_RULES.values())
    assert all(REPLAY_RULES.values())


@pytest.mark.parametrize("changes", [{"workload__tokens": 2304}, {"objective": "makespan"}, {"hardware__rows": 3}])
def test_a_plan_for_another_instance_is_refused(changes: dict[str, Any]) -> None:
    instance, other = small_instance(), small_instance(**changes)
    with pytest.raises(InputError, match="made for another") as caught:
        check(other, small_plan(instance))
    assert (caught.value.field, caught.value.value) == ("instance", instance.fingerprint)
    assert other.fingerprint in caught.value.allowed


def test_a_plan_for_a_renamed_instance_is_welcome() -> None:
    plan = small_plan(small_instance())
    assert _broken(check(small_instance(name="renamed", source="a remark"), plan)) == []


def test_a_switch_joins_all_dies_that_live() -> None:
    instance = small_instance(
        hardware__rows=1, hardware__columns=3, hardware__disabled_dies=[[0, 1]], hardware__topology="switch", **TWO
    )
    assert _broken(check(instance, small_plan(instance, layers=[2, 2], placement=[[0, 0], [0, 2]]))) == []


def test_tied_tables_count_once_on_a_die_with_both() -> None:
    # Untied the die of stages 0 and 3 holds 928,384 bytes (tests.corruption_cases); the head's 128,000 go.
    for spare, broken in ((0, []), (-1, [("capacity_at_rest", 1)])):
        instance = small_instance(model__tied_embeddings=True, hardware__die__hbm_bytes=800_384 + spare, **TWO)
        placement = [[0, 0], [0, 1], [0, 1], [0, 0]]
        assert _broken(check(instance, small_plan(instance, schedule="vpp", placement=placement))) == broken


TWO: dict[str, Any] = {"pipeline__stages": 2}


@given(planted())
def test_planted_plans_keep_every_rule(case: Planted) -> None:
    instance = case.instance
    assert _broken(check(instance, case.plan_for(instance))) == []


@given(planted(), st.data())
def test_one_byte_less_on_one_die_is_reported(case: Planted, data: st.DataObject) -> None:
    stage = data.draw(st.integers(0, len(case.need_bytes) - 1))
    dies = case.document["hardware"]["dies"]
    short = [{**die, "hbm_bytes": die["hbm_bytes"] - (number == stage)} for number, die in enumerate(dies)]
    hardware = {**case.document["hardware"], "dies": short}
    instance = Planted({**case.document, "hardware": hardware}, case.plan, case.need_bytes).instance
    assert _broken(check(instance, case.plan_for(instance))) == [("capacity_at_rest", 1)]


@given(planted(), st.data())
def test_spill_beyond_a_chunk_is_reported_by_the_excess(case: Planted, data: st.DataObject) -> None:
    rows = case.plan["spill"]
    if not rows:
        return
    number, excess = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(1, 5))
    row, instance = rows[number], case.instance
    shape = row.get("shape") or instance.workload.shapes[0]
    size = case.plan["chunks"][str(shape[0] - shape[1])][row["chunk"]]
    same = [other for other in rows if all(other.get(key) == row.get(key) for key in ("stage", "chunk"))]
    same = [other for other in same if (other.get("shape") or list(shape)) == list(shape)]
    tokens = row["tokens"] + size - sum(other["tokens"] for other in same) + excess
    changed = [{**other, "tokens": tokens} if other is row else other for other in rows]
    plan = Planted(case.document, {**case.plan, "spill": changed}, case.need_bytes).plan_for(instance)
    assert _broken(check(instance, plan)) == [("spill_within_chunk", excess)]


NUMBERS = st.integers(-2, 5) | st.sampled_from([256, 1024, 2048, 2**40, -(2**40)])
SHAPES = st.sampled_from([[2048, 0], [2304, 256], [7, 7], [2**40, 0]])
NATURAL = NUMBERS.map(abs)
ROWS = st.fixed_dictionaries(
    {"stage": NATURAL, "chunk": NATURAL, "creditor": NATURAL | st.just("host"), "tokens": NATURAL},
    optional={"shape": SHAPES},
)
NONSENSE = st.fixed_dictionaries(
    {},
    optional={
        "batch": NATURAL.map(lambda batch: batch or 1),
        "layers": st.lists(NUMBERS, max_size=5),
        "placement": st.lists(st.tuples(NATURAL, NATURAL), max_size=5),
        "chunks": st.dictionaries(
            st.sampled_from(["2048", "1", "2304", "9999999999999"]),
            st.lists(NUMBERS, min_size=1, max_size=9),
            max_size=2,
        ),
        "spill": st.lists(ROWS, max_size=4),
        "schedule": st.sampled_from(["chunked", "vpp", "vpp-async", "vpp-packed"]),
    },
)
INSTANCES = [
    small_instance(),
    small_instance(
        pipeline__layers="free", pipeline__forbidden_cuts=[1, 2], hardware__disabled_links=[[[0, 0], [0, 1]]]
    ),
    small_instance(pipeline__stages=2, pipeline__max_in_flight=1, hardware__topology="torus"),
    small_instance(pipeline__layers=[1, 1, 1, 1], hardware__topology="switch"),
    small_instance(workload={"trace": [{"tokens": 2048}, {"tokens": 2304, "cached_tokens": 256}]}),
]


@settings(max_examples=200)
@given(NONSENSE, st.sampled_from(INSTANCES))
def test_any_plan_that_reads_can_be_checked(changes: dict[str, Any], instance: Any) -> None:
    document = {**small_plan_document(instance), **changes}
    findings = check(instance, Plan.parse(document))
    assert list(dict.fromkeys(finding.rule for finding in findings)) == list(STATIC_RULES)
    for finding in findings:
        assert finding.unit == STATIC_RULES[finding.rule].unit
        assert math.isfinite(finding.amount)
        assert (finding.amount == 0) == finding.ok == (not finding.where)
        assert finding.amount >= 0
