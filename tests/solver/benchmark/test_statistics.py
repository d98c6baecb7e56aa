"""Statistics over records, with the arithmetic of each expected value."""

from __future__ import annotations

import math

import pytest

from solver.benchmark.best_known import BestKnown
from solver.benchmark.statistics import (
    RATIOS,
    Reference,
    contradictions,
    loss,
    references,
    shifted_geometric_mean,
    summarise,
)
from tests.solver.benchmark.making import record

NONE = {"value": None, "gap": None, "plan": None}


def test_references_take_the_least_value_and_the_largest_bound() -> None:
    entry = BestKnown(fingerprint="f", objective="o", scope="", value=2.9, bound=1.0)
    records = [record(), record(method="cpp", value=2.8, bound=2.5, trivial_bound=1.5), record(method="exact", **NONE)]
    assert references(records, {"i": entry}) == {"f": Reference(2.8, 2.5, 1.5)}
    assert references(records[:1], {"i": entry}) == {"f": Reference(2.9, 2.0, None)}


def test_other_schedules_and_fixed_chunks_are_no_references() -> None:
    plan = {**record().model_dump(mode="json")["plan"], "schedule": "vpp"}
    scope = {**record().model_dump(mode="json")["bound_scope"], "schedules": ["vpp"]}
    other = record(method="vpp", value=1.0, bound=0.5, plan=plan, bound_scope=scope)
    fixed = record(method="cpp", chunks=4, value=4.0, bound=3.9)
    known = references([record(), other, fixed], {})
    assert known == {"f": Reference(3.0, 2.0, None)}
    # 1 / 3 - 1: a plan of another schedule may be better.
    assert loss(other, known) == pytest.approx(-2 / 3)
    assert contradictions([record(), other, fixed], known) == []


def test_losses_leave_runs_without_a_plan_out_and_count_them() -> None:
    records = [
        record(),
        record(fingerprint="g", instance="j", value=4.0),
        record(fingerprint="h", instance="k", **NONE),
        record(fingerprint="x", instance="l", value=6.0, error="killed", stop_reason="time_limit"),
    ]
    known = {name: Reference(value, 1.0, None) for name, value in (("f", 3.0), ("g", 3.2), ("h", 1.0), ("x", 3.0))}
    (row,) = summarise(records, known)
    # Losses 0, 4/3.2 - 1 = 0.25 and 6/3 - 1 = 1.
    assert (row.runs, row.solved, row.errors, row.proved) == (4, 3, 1, 0)
    assert row.median_loss == pytest.approx(0.25)
    assert row.worst_loss == pytest.approx(1.0)
    assert row.worst_instance == "l"
    # Cube root of 1 * 1.25 * 2.
    assert row.mean_loss == pytest.approx(2.5 ** (1 / 3) - 1)
    # Shares of all four runs, the one without a plan included.
    assert dict(zip(RATIOS, row.profile, strict=True)) == {
        1.0001: 0.25,
        1.001: 0.25,
        1.01: 0.25,
        1.05: 0.25,
        1.1: 0.25,
        1.5: 0.5,
        2.0: 0.75,
        5.0: 0.75,
    }
    # Three runs of 2 s, and one of 2 s that counts with its limit of 10 s: (3^3 * 11)^(1/4) - 1.
    assert row.mean_runtime_s == pytest.approx((27 * 11) ** 0.25 - 1)


def test_a_method_without_any_plan_has_no_loss() -> None:
    (row,) = summarise([record(**NONE)], {})
    assert (row.solved, row.median_loss, row.worst_loss, row.mean_loss) == (0, None, None, None)
    assert set(row.profile) == {0.0}


def test_a_proof_that_there_is_no_plan_counts_with_its_time() -> None:
    (row,) = summarise([record(**NONE, status="infeasible", stop_reason="proved")], {})
    assert row.mean_runtime_s == pytest.approx(2.0)


def test_proofs_and_their_times() -> None:
    records = [
        record(gap=gap, runtime_s=time, seed=seed)
        for seed, (gap, time) in enumerate([(0.0, 5.0), (1e-4, 2.0), (0.1, 1.0)])
    ]
    (row,) = summarise(records, {})
    assert (row.proved, row.proofs_s) == (2, (2.0, 5.0))


def test_methods_and_suites_have_rows_of_their_own() -> None:
    records = [record(), record(method="mocap", knobs={"batch": "best"}), record(suite="t"), record(chunks=4)]
    assert [(row.suite, row.method) for row in summarise(records, {})] == [
        ("s", "gpipe"),
        ("s", "mocap:batch=best"),
        ("t", "gpipe"),
        ("s", "gpipe:chunks=4"),
    ]


def test_shifted_geometric_mean() -> None:
    # sqrt((1 + 1) * (7 + 1)) - 1 = 3; without shift sqrt(7).
    assert shifted_geometric_mean([1.0, 7.0], 1.0) == pytest.approx(3.0)
    assert shifted_geometric_mean([1.0, 7.0], 0.0) == pytest.approx(math.sqrt(7))


def test_a_value_below_a_bound_is_a_contradiction() -> None:
    records = [record(), record(method="cpp", bound=3.1, gap=0.0)]
    known = references(records, {})
    assert len(contradictions(records, known)) == 2
    assert "gpipe has 3.0, below the bound 3.1" in contradictions(records, known)[0]
    assert contradictions(records[:1], references(records[:1], {})) == []
