"""What would help: replays of the same plan on better hardware."""

from __future__ import annotations

import pytest

from reports.sensitivity import sensitivities
from solver.replaying import simulate
from tests.builders import small_instance, small_plan

NO_OVERHEADS = {
    "hardware__hop_latency_s": 0,
    "hardware__die__layer_overhead_s": 0,
    "hardware__die__chunk_overhead_s": 0,
}


def test_ten_percent_more_of_everything_that_binds() -> None:
    # One stage: no links. One TFLOP/s against 1 TB/s of 2-byte numbers: 2048 tokens are far into the compute roof.
    instance = small_instance(pipeline__stages=1, workload__requests=1, **NO_OVERHEADS)
    plan = small_plan(instance, layers=[4], placement=[[0, 0]], chunks={"2048": [2048]})
    metrics = simulate(instance, plan).metrics
    assert metrics is not None
    found = {one.what: one.change for one in sensitivities(instance, plan, metrics.mean_latency_s)}
    assert found["+10 % FLOP/s of every die"] == pytest.approx(1 / 1.1 - 1, rel=1e-2)
    assert found["+10 % memory of every die"] == 0
    assert found["+10 % link speed"] == 0


def test_slow_links() -> None:
    # 1 kB/s: the time is that of the links, but for a thousandth.
    instance = small_instance(hardware__link_bytes_per_s="1 kB/s", **NO_OVERHEADS)
    plan = small_plan(instance)
    metrics = simulate(instance, plan).metrics
    assert metrics is not None
    found = {one.what: one.change for one in sensitivities(instance, plan, metrics.mean_latency_s)}
    assert found["+10 % link speed"] == pytest.approx(1 / 1.1 - 1, rel=1e-3)


def test_dies_with_their_own_rates_get_better_too() -> None:
    slow = [{"at": [0, 1], "peak_flops": "0.5 TFLOP/s"}]
    instance = small_instance(hardware__dies=slow, workload__requests=1, **NO_OVERHEADS)
    plan = small_plan(instance)
    metrics = simulate(instance, plan).metrics
    assert metrics is not None
    found = {one.what: one.change for one in sensitivities(instance, plan, metrics.mean_latency_s)}
    # The links' share of the time is small; without the slow die's the gain would be about half.
    assert found["+10 % FLOP/s of every die"] == pytest.approx(1 / 1.1 - 1, rel=0.05)


def test_measured_costs_do_not_depend_on_rates() -> None:
    costs = {"kind": "fitted", "chunk_s": 1e-3, "prefix_s": 0, "token_s": 1e-6, "pair_s": 0}
    instance = small_instance(costs=costs)
    found = {one.what: one for one in sensitivities(instance, small_plan(instance), 1.0)}
    flops = found["+10 % FLOP/s of every die"]
    assert (flops.value, flops.change) == (None, None)
    assert "measured" in flops.note
    assert found["+10 % link speed"].value is not None


def test_the_host_has_a_row_where_there_is_one() -> None:
    host = {"host_bytes": "1 TB", "host_bytes_per_s": "64 GB/s"}
    instance = small_instance(hardware__host=host)
    assert sensitivities(instance, small_plan(instance), 1.0)[-1].what == "+10 % host link speed"
