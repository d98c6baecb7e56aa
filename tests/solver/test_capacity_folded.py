"""V-shaped rows of a capacity table: what a V holds by itself, and what it reaches with spill."""

from __future__ import annotations

import pytest

from instances.instance import Instance
from instances.plan import Plan
from solver.capacity.result import CapacityRow
from solver.evaluate import Evaluator
from tests.solver.test_capacity import KV_BYTES, roomy_by
from tests.solver.test_capacity_rows import reached, rows

EIGHT_LAYERS = {"model__layers": [{"pattern": ["layer"], "repeat": 8}]}


@pytest.mark.parametrize(("stages", "chunks"), [(2, 4), (4, 8)])
@pytest.mark.parametrize("schedule", ["vpp", "vpp-async", "vpp-packed"])
def test_a_v_holds_least_where_it_begins(stages: int, chunks: int, schedule: str) -> None:
    """One request of M chunks on N dies that hold two parts each (facts on VPP: its peaks per die).

    A chunk is half a unit of KV on each of a die's two parts. When the last head starts on die r, d = N-1-r before the
    fold, all M heads are held and, in the order [H, T], M - 2d - 1 tails: M - d - 1/2 units, against M of the plain
    pipeline. In the order [T, H] of ``vpp`` one tail more has run, except at the fold: M - d.
    """
    instance = roomy_by(
        2 * 1024 * 4,
        workload={"requests": 1, "tokens": 1024},
        pipeline__stages=stages,
        pipeline__max_chunks=chunks,
        model__layers=[{"pattern": ["layer"], "repeat": 2 * stages}],
    )
    found = rows(instance, "none", schedule, chunks=chunks, equal_chunks=True, latency_budget=0.05)
    row = found[schedule]
    assert row.plan is not None
    assert row.plan.schedule == schedule
    outcome = Evaluator(instance.with_tokens(reached(row))).full(row.plan)
    assert outcome.metrics is not None
    unit = reached(row) / chunks * 2 * KV_BYTES
    for die, peak in enumerate(outcome.metrics.peak_memory_bytes[:stages]):
        d = stages - 1 - die
        expected = chunks - d if schedule == "vpp" and d else chunks - d - 0.5
        assert peak / unit == pytest.approx(expected, abs=0.01)
    # The fold decides: M / (M - 1/2) of the length, in whole steps of M quanta.
    assert reached(row) / reached(found["none"]) == pytest.approx(chunks / (chunks - 0.5), rel=0.04)
    # The bound speaks about the plain schedule.
    assert row.bound_tokens is None
    assert found["none"].bound_tokens is not None


def test_a_v_that_the_model_has_no_layers_for_says_so() -> None:
    row = rows(roomy_by(1024), "vpp")["vpp"]
    assert row.plan is None
    assert "stage_nonempty: a V has 8 parts, the model 4 layers" in row.note


def test_a_v_that_drains_between_waves_is_slower_than_the_budget() -> None:
    row = rows(roomy_by(2048, **EIGHT_LAYERS), "vpp", latency_budget=0.01)["vpp"]
    assert row.max_tokens is None
    assert row.any_latency_tokens is not None
    assert row.note == "runs, but slower than the budget"


def plan_of(row: CapacityRow) -> Plan:
    assert row.plan is not None, row.note
    return row.plan


def replayed(instance: Instance, row: CapacityRow) -> list[float]:
    """Peaks of the four dies in a replay of the row's plan, which gives the value that is shown."""
    outcome = Evaluator(instance.with_tokens(reached(row))).full(plan_of(row))
    assert outcome.metrics is not None
    assert outcome.value == row.value_s
    return list(outcome.metrics.peak_memory_bytes[:4])


@pytest.mark.parametrize(
    ("schedule", "peaks"),
    [("vpp", (1, 2, 3, 3.5)), ("vpp-async", (0.5, 1.5, 2.5, 3.5)), ("vpp-packed", (0.5, 1.5, 2.5, 3.5))],
)
def test_dies_of_a_v_lend_each_other_memory(schedule: str, peaks: tuple[float, ...]) -> None:
    """Four dies, four chunks of half a unit on each part; the peaks of the dies as above, in units.

    At home the fold decides. In a pool of all dies the mean of the peaks is always enough, for not all peak at once;
    fixed partners need at most half the sum of theirs, and what they lend has to be there in time.
    """
    instance = roomy_by(4096, pipeline__chunk_quantum=64, workload={"requests": 1, "tokens": 1024}, **EIGHT_LAYERS)
    names = [schedule + suffix for suffix in ("", "+head-to-tail", "+mocap", "+pool")]
    found = rows(instance, *names, equal_chunks=True, latency_budget=0.01)
    alone, ends, half, pool = (reached(found[name]) for name in names)
    for name in names[1:]:
        plan = plan_of(found[name])
        assert plan.schedule == schedule
        assert plan.spill
        assert max(replayed(instance, found[name])) <= 4096 * KV_BYTES
        for row in plan.spill:
            assert row.creditor != "host"
            assert plan.placement[row.creditor] != plan.placement[row.stage]
    dies = {
        name: {(min(row.stage, 7 - row.stage), row.creditor) for row in plan_of(found[name]).spill} for name in names
    }
    assert all(creditor == 3 - die for die, creditor in dies[names[1]])
    assert all(creditor == (die + 2) % 4 for die, creditor in dies[names[2]])
    assert alone < min(ends, half)
    assert max(ends, half) <= pool
    assert pool / alone >= 0.98 * 3.5 / (sum(peaks) / 4)


def test_late_chunks_of_a_v_leave_for_the_host() -> None:
    host = {"host_bytes": 4096 * KV_BYTES, "host_bytes_per_s": "64 GB/s"}
    instance = roomy_by(1024, hardware__host=host, **EIGHT_LAYERS)
    found = rows(instance, "vpp-packed", "vpp-packed+host", "vpp-packed+pool+host")
    assert reached(found["vpp-packed+host"]) > 1.3 * reached(found["vpp-packed"])
    assert {row.creditor for row in plan_of(found["vpp-packed+host"]).spill} == {"host"}
    assert reached(found["vpp-packed+pool+host"]) >= reached(found["vpp-packed+host"])
