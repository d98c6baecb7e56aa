"""Plans as documents: what is read, written and refused; rules are another matter."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.errors import InputError
from instances.plan import Plan, SpillRow
from tests.builders import changed

PLAN: dict[str, Any] = {
    "schema_version": 1,
    "instance": "0123456789abcdef0123456789abcdef",
    "batch": 1,
    "layers": [40, 40],
    "placement": [[0, 0], [0, 1]],
    "chunks": {"32768": [14336, 10240, 8192]},
    "spill": [{"stage": 0, "chunk": 1, "creditor": 1, "tokens": 2048}],
    "schedule": "chunked",
}


def test_the_example_of_the_interface_page() -> None:
    plan = Plan.parse(PLAN)
    assert (plan.batch, plan.layers, plan.layer_starts) == (1, (40, 40), (0, 40))
    assert plan.placement == ((0, 0), (0, 1))
    assert plan.chunk_sizes(32768) == (14336, 10240, 8192)
    assert plan.spill == (SpillRow(stage=0, chunk=1, creditor=1, tokens=2048),)
    assert json.loads(plan.to_json()) == PLAN


def test_spill_and_schedule_may_be_left_out() -> None:
    plan = Plan.parse(changed(PLAN, {"spill": ..., "schedule": ..., "schema_version": ...}))
    assert (plan.spill, plan.schedule, plan.schema_version) == ((), "chunked", 1)


def test_rows_of_a_shape() -> None:
    rows = [
        {"stage": 0, "chunk": 0, "creditor": "host", "tokens": 1, "shape": [10, 2]},
        {"stage": 0, "chunk": 0, "creditor": 1, "tokens": 2, "shape": [8, 0]},
        {"stage": 1, "chunk": 0, "creditor": 0, "tokens": 3},
    ]
    plan = Plan.parse(changed(PLAN, {"spill": rows}))
    assert [row.tokens for row in plan.spill_of((10, 2))] == [1, 3]
    assert [row.tokens for row in plan.spill_of((8, 0))] == [2, 3]
    # Nulls are not written, so that a plan reads as on the interface page.
    assert json.loads(plan.to_json())["spill"] == rows


def test_layer_starts() -> None:
    assert Plan.parse(changed(PLAN, {"layers": [3, 1, 2]})).layer_starts == (0, 3, 4)
    assert Plan.parse(changed(PLAN, {"layers": []})).layer_starts == ()


def test_plans_are_read_from_plan_and_result_files(tmp_path: Path) -> None:
    alone, inside = tmp_path / "plan.json", tmp_path / "result.json"
    alone.write_text(Plan.parse(PLAN).to_json(), encoding="utf-8")
    inside.write_text(json.dumps({"method": "exact", "plan": PLAN}), encoding="utf-8")
    assert Plan.load(alone) == Plan.load(inside) == Plan.parse(PLAN)


def test_a_result_without_a_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('{"method": "exact", "plan": null}', encoding="utf-8")
    with pytest.raises(InputError, match=r"result.json: plan: null is not .* a result that holds a plan"):
        Plan.load(path)


@pytest.mark.parametrize(
    ("schedule", "v_shaped"), [("chunked", False), ("vpp", True), ("vpp-async", True), ("vpp-packed", True)]
)
def test_schedules(schedule: str, v_shaped: bool) -> None:
    assert Plan.parse(changed(PLAN, {"schedule": schedule})).v_shaped is v_shaped


def test_keys_of_chunk_lists_may_be_numbers_in_python() -> None:
    assert Plan.parse(changed(PLAN, {"chunks": {32768: [32768]}})).chunk_sizes(32768) == (32768,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": 2}, "schema_version: 2 is not allowed; expected 1"),
        ({"schema_version": True}, "schema_version: true is not allowed; expected 1"),
        ({"instance": ...}, "instance: nothing is given"),
        ({"instance": 5}, "instance: 5 is not allowed; expected a text"),
        ({"batch": 0}, "batch: 0 is not allowed; expected a number of at least 1"),
        ({"batch": 1.0}, "batch: 1.0 is not allowed; expected a whole number"),
        ({"layers": [40.5, 39.5]}, "layers.0: 40.5 is not allowed; expected a whole number"),
        ({"layers": 80}, "layers: 80 is not allowed; expected a list"),
        ({"placement": [[0, 0], [0]]}, "placement.1: [0] is not allowed; expected a list of 2 entries"),
        ({"placement": [[0, 0], [0, -1]]}, "placement.1.1: -1 is not allowed; expected a number of at least 0"),
        ({"chunks": [32768]}, "chunks: [32768] is not allowed; expected an object"),
        ({"chunks": {"32768": []}}, "chunks.32768: [] is not allowed; expected a list of at least one chunk"),
        ({"chunks": {"32768": [32768.0]}}, "chunks.32768.0: 32768.0 is not allowed; expected a whole number"),
        ({"chunks": {"32768": [10**400]}}, "chunks.32768.0: "),
        ({"chunks": {"32k": [1]}}, "chunks: '32k' is not allowed; expected a number of uncached tokens as the key"),
        ({"chunks": {"0": [1]}}, "chunks: '0' is not allowed"),
        ({"chunks": {"-5": [1]}}, "chunks: '-5' is not allowed"),
        ({"chunks": {"05": [1]}}, "chunks: '05' is not allowed"),
        ({"chunks": {"٣": [1]}}, "chunks: '٣' is not allowed"),
        ({"chunks": {"9" * 5000: [1]}}, "expected a number of uncached tokens as the key"),
        ({"spill": [{"stage": 0, "chunk": 0, "creditor": 1}]}, "spill.0.tokens: nothing is given"),
        ({"spill": [{"stage": 0, "chunk": 0, "creditor": "disk", "tokens": 1}]}, "spill.0.creditor: 'disk' is not"),
        ({"spill": [{"stage": 0, "chunk": 0, "creditor": "disk", "tokens": 1}]}, "expected a whole number or 'host'"),
        ({"spill": [{"stage": 0, "chunk": 0, "creditor": -1, "tokens": 1}]}, "of at least 0 or 'host'"),
        ({"spill": [{"stage": 0, "chunk": 0, "creditor": True, "tokens": 1}]}, "spill.0.creditor: true is not"),
        ({"spill": [{"stage": -1, "chunk": 0, "creditor": 1, "tokens": 1}]}, "spill.0.stage: -1 is not allowed"),
        ({"spill": [{"stage": 0, "chunk": 0, "creditor": 1, "tokens": -1}]}, "spill.0.tokens: -1 is not allowed"),
        ({"spill": [{"stage": 0, "chunk": 0, "creditor": 1, "tokens": 1.5}]}, "spill.0.tokens: 1.5 is not allowed"),
        ({"spill": [{"stage": 0, "chunk": 0, "creditor": 1, "tokens": 1, "shape": [1]}]}, "spill.0.shape: [1] is not"),
        ({"spill": [{"stage": 0, "chunk": 0, "to": 1, "tokens": 1}]}, "spill.0.to: 1 is not allowed; expected one of"),
        ({"schedule": "gpipe"}, "schedule: 'gpipe' is not allowed; expected 'chunked', 'vpp'"),
        ({"cuts": [1]}, "cuts: [1] is not allowed; expected one of the keys schema_version, instance, batch"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    if changes.get("spill", [{}])[0].keys() == {"stage", "chunk", "to", "tokens"}:
        changes["spill"][0]["creditor"] = 1
    with pytest.raises(InputError, match=re.escape(message)):
        Plan.parse(changed(PLAN, changes))


COUNTS = st.integers(-3, 10**6)
ROWS = st.fixed_dictionaries(
    {
        "stage": st.integers(0, 9),
        "chunk": st.integers(0, 9),
        "creditor": st.integers(0, 9) | st.just("host"),
        "tokens": st.integers(0, 10**6),
    },
    optional={"shape": st.tuples(st.integers(1, 99), st.integers(0, 99)).map(list)},
)
PLANS = st.fixed_dictionaries(
    {
        "schema_version": st.just(1),
        "instance": st.text(max_size=8).filter(lambda text: text.isprintable()),
        "batch": st.integers(1, 99),
        "layers": st.lists(COUNTS, max_size=4),
        "placement": st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(list), max_size=4),
        "chunks": st.dictionaries(st.integers(1, 10**6).map(str), st.lists(COUNTS, min_size=1, max_size=4), max_size=2),
        "spill": st.lists(ROWS, max_size=3),
        "schedule": st.sampled_from(["chunked", "vpp", "vpp-async", "vpp-packed"]),
    }
)


@given(PLANS)
def test_round_trip(document: dict[str, Any]) -> None:
    # Nonsense is kept as it is: the checker reports it.
    plan = Plan.parse(document)
    assert json.loads(plan.to_json()) == document
    assert Plan.parse(json.loads(plan.to_json())) == plan
