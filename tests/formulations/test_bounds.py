"""The time bounds where they can be worked out by hand, and where an earlier version was wrong."""

from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest

from formulations.bounds import BatchBound, TimeBounds
from formulations.mean_stage import mean_work
from formulations.tables import StageTables
from instances.instance import Instance
from solver.evaluate import Evaluator
from tests.brute_force import cut_lists, every_plan
from tests.builders import small_instance
from tests.tiny import ONE_KIND, line

OBJECTIVES = ("makespan", "mean_latency", "p95_latency")


def _bound(instance: Instance, batch: int = 1) -> BatchBound:
    return TimeBounds(instance, StageTables(instance)).batch(batch)


def _best(instance: Instance, batch: int = 1) -> float:
    """Best replayed value of a batch over all plans without spill."""
    evaluator = Evaluator(instance)
    values = [evaluator.value(plan) for plan in every_plan(instance) if plan.batch == batch]
    return min(value for value in values if value is not None)


def _assert_met(instance: Instance, value: float, batch: int = 1) -> None:
    """Bound and best plan have the value, to the picoseconds that are taken off for rounding."""
    bound = _bound(instance, batch).bound_s
    best = _best(instance, batch)
    assert best == pytest.approx(value, rel=1e-9, abs=1e-10)
    assert bound == pytest.approx(value, rel=1e-9, abs=1e-10)
    assert bound is not None
    assert bound <= best


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("requests", [1, 3])
@pytest.mark.parametrize("objective", ["makespan", "mean_latency"])
def test_equal_stages_reach_the_closed_form(stages: int, requests: int, objective: str) -> None:
    # W waves, N stages: W*sum t + (N-1)*max t; for the mean (W+1)/2 in place of W.
    fitted = {"chunk_s": 0.3 * stages, "token_s": 0.2 * stages, "pair_s": 0.05 * stages}
    workload = {"requests": requests, "tokens": 6}
    instance = line([1] * stages, fitted=fitted, workload=workload, objective=objective)
    weight = requests if objective == "makespan" else (requests + 1) / 2

    def closed_form(sizes: tuple[int, ...]) -> float:
        ends = (0, *accumulate(sizes))
        times = [0.3 + 0.2 * (e - p) + 0.05 * (2 * p * (e - p) + (e - p) ** 2) for p, e in pairwise(ends)]
        return weight * sum(times) + (stages - 1) * max(times)

    plans = every_plan(instance.model_copy(update={"objective": objective}))
    on_a_row = ((0, stage) for stage in range(stages))
    place = tuple(on_a_row)
    values = [Evaluator(instance).value(plan) for plan in plans if plan.placement == place]
    expected = min(closed_form(sizes) for sizes in cut_lists(instance, 6))
    assert min(value for value in values if value is not None) == pytest.approx(expected, rel=1e-9)
    assert _bound(instance).bound_s == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("objective", "value"), [("makespan", 8.0), ("mean_latency", 6.5), ("p95_latency", 8.0)])
def test_one_heavy_stage(objective: str, value: float) -> None:
    # One chunk takes 1, 3, 1 s: two waves end at 1 + 3 + 1 = 5 and 1 + 3 + 3 + 1 = 8. More chunks only add.
    instance = line((1, 3, 1), fitted={"chunk_s": 5}, workload={"requests": 2, "tokens": 2}, objective=objective)
    _assert_met(instance, value)


def test_two_heavy_stages_apart() -> None:
    # Two chunks of 2 tokens take 6, 2, 6 s: 6 + 6 on stage 0, the second crosses in 2 and ends after 6 more: 20.
    instance = line((3, 1, 3), fitted={"token_s": 7}, pipeline={"chunk_quantum": 2})
    _assert_met(instance, 20.0)


def test_transfers_on_the_way() -> None:
    # One chunk of 4 tokens sends 8 bytes at 4 bytes/s and a hop of 0.5 s: 1 + 2.5 + 3 + 2.5 + 1 = 10.
    hardware = {"link_bytes_per_s": 4, "hop_latency_s": 0.5}
    _assert_met(line((1, 3, 1), fitted={"chunk_s": 5}, hardware=hardware, pipeline={"max_chunks": 1}), 10.0)


@pytest.mark.parametrize(
    ("second_s", "makespan", "mean"),
    [
        # Each request takes 5 s on the only stage. Far apart nobody waits; at 2 the second ends at 10, 8 after it came.
        (100.0, 105.0, 5.0),
        (2.0, 10.0, 6.5),
    ],
)
def test_arrivals(second_s: float, makespan: float, mean: float) -> None:
    trace = {"trace": [{"arrival_s": second_s, "tokens": 2}, {"arrival_s": 0.0, "tokens": 2}]}
    for objective, value in (("makespan", makespan), ("mean_latency", mean)):
        _assert_met(line((1,), fitted={"chunk_s": 5}, workload=trace, objective=objective), value)


def test_short_last_wave() -> None:
    # 5 requests of 2 tokens in batches of 2, one chunk: waves of 2, 2 and 1 s on each of two equal stages. Stage 0 ends
    # the first at 2; stage 1 works 2 + 2 + 1 from there: 7.
    workload = {"requests": 5, "tokens": 2}
    instance = line((1, 1), fitted={"token_s": 1}, workload=workload, pipeline={"max_batch": 2, "max_chunks": 1})
    bound, best = _bound(instance, 2).bound_s, _best(instance, 2)
    assert best == pytest.approx(7.0)
    assert bound == pytest.approx(7.0)


def test_fixed_number_of_chunks() -> None:
    # chunk_s 1 on each of two stages, three chunks: 3 + 1 = 4; one chunk would take 2.
    instance = line((1, 1), fitted={"chunk_s": 2})
    assert TimeBounds(instance, StageTables(instance), 3).batch(1).bound_s == pytest.approx(4.0)
    assert _bound(instance).bound_s == pytest.approx(2.0)


# The cases below are counterexamples to earlier versions of the bound.


SLIDING = {"kind": "sliding", "heads": 1, "kv_heads": 1, "head_dim": 1, "window": 1}


def _of_two_kinds(hidden: int, one: dict[str, Any], two: dict[str, Any], **parts: Any) -> Instance:
    """A layer of each kind, on a stage of its own."""
    kinds = {"one": {**ONE_KIND, **one}, "two": {**ONE_KIND, **two}}
    model = {"hidden": hidden, "kinds": kinds, "layers": [{"pattern": ["one", "two"]}]}
    return line((1, 1), model=model, **parts)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_waves_of_two_shapes_share_the_stage(objective: str) -> None:
    """Short requests work longest on stage 1, long ones on stage 0: both dies work at the same time."""
    instance = _of_two_kinds(
        2,
        {"attention": {"kind": "full", "heads": 8, "kv_heads": 1, "head_dim": 4}},
        {"attention": SLIDING, "feed_forward": {"kind": "dense", "width": 60}},
        workload={"trace": [{"tokens": 4}, {"tokens": 40}]},
        pipeline={"chunk_quantum": 20},
        objective=objective,
    )
    bound = _bound(instance).bound_s
    assert bound is not None
    assert bound <= _best(instance)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_waves_of_two_sizes_share_the_stage(objective: str) -> None:
    """Weights are read once for a wave of any size, KV once a request: a short wave has another slowest stage."""
    instance = _of_two_kinds(
        16,
        {"attention": SLIDING, "feed_forward": {"kind": "dense", "width": 8}},
        {},
        hardware={"die": {"peak_flops": 1e6, "hbm_bytes_per_s": 1e4}},
        workload={"requests": 4, "tokens": 101, "cached_tokens": 100},
        pipeline={"max_batch": 3},
        objective=objective,
    )
    bound = _bound(instance, 3).bound_s
    assert bound is not None
    assert bound <= _best(instance, 3)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_fitted_costs_have_the_chunk_overhead_in_them(objective: str) -> None:
    """With a free split the overhead of the die was counted on top of fitted times."""
    hardware = {"die": {"chunk_overhead_s": 1.0}}
    free = {"layers": "free"}
    instance = line(
        (1, 1), fitted={"chunk_s": 0.1, "token_s": 0.01}, hardware=hardware, pipeline=free, objective=objective
    )
    # One chunk of 4 tokens, 0.14 s in all.
    assert _bound(instance).bound_s == pytest.approx(0.14)
    assert _best(instance) == pytest.approx(0.14)


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_many_roundings_to_picoseconds(stages: int) -> None:
    """Compute, transfer and hop latency of 0.49 ps each round to nothing: the replay takes no time at all."""
    hardware = {"link_bytes_per_s": 8 / 0.49e-12, "hop_latency_s": 0.49e-12}
    fitted = {"chunk_s": stages * 0.49e-12}
    instance = line([1] * stages, fitted=fitted, hardware=hardware, pipeline={"max_chunks": 1})
    bound = _bound(instance).bound_s
    assert bound is not None
    assert bound <= 0.0


@pytest.mark.parametrize("seed", [5, 11, 31, 50])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_short_latencies_late_in_a_trace(objective: str, seed: int) -> None:
    """Microseconds after ten days the clock's floats have few digits left."""
    trace = [{"arrival_s": 9e5 + (seed * k % 97) / 97, "tokens": 4} for k in range(7)]
    instance = line((1,), workload={"trace": trace}, hardware={"die": {"peak_flops": 1e9}}, objective=objective)
    bound, best = _bound(instance).bound_s, _best(instance)
    assert bound is not None
    assert best * 0.99 <= bound <= best


def test_one_stage_with_free_layers() -> None:
    """No transfers at all, which once multiplied 0 by infinity."""
    _assert_met(line((2,), fitted={"chunk_s": 3}, pipeline={"layers": "free"}), 3.0)


def test_lengths_beyond_the_weighted_quanta_do_not_spoil_the_climb() -> None:
    """Once a weight has fallen to 0 its entry may be a thousand times longer than the others: no overflow from it."""
    path = Path(__file__).parents[2] / "instances" / "data" / "suites" / "slow-links" / "mistral-123b-128k-64gbs.json"
    instance = Instance.load(path)
    found = TimeBounds(instance, StageTables(instance))
    assert [found.batch(batch).bound_s is not None for batch in (2, 3)] == [True, True]


@pytest.mark.parametrize("slow", [1, 2])
def test_slow_dies_count_for_less_where_the_split_is_free(slow: int) -> None:
    """Four dies, ``slow`` of them at half speed: the work is shared by 4 - slow/2 dies in place of 4."""
    dies = [{"at": [0, column], "peak_flops": "0.5 TFLOP/s", "hbm_bytes_per_s": "0.5 TB/s"} for column in range(slow)]
    changes: dict[str, Any] = {
        "hardware__rows": 1,
        "hardware__columns": 4,
        "hardware__die__layer_overhead_s": 0,
        "hardware__die__chunk_overhead_s": 0,
        "model__layers": [{"pattern": ["layer"], "repeat": 8}],
        "model__vocab": 1,
        "workload": {"requests": 16, "tokens": 1024},
        "pipeline__chunk_quantum": 512,
        "pipeline__max_chunks": 2,
        "pipeline__max_batch": 1,
        "pipeline__layers": "free",
    }
    unlike = small_instance(**changes, hardware__dies=dies)
    means = [mean_work(StageTables(found), 1, (1024, 0))[0] for found in (small_instance(**changes), unlike)]
    assert means[1][0, 1] == pytest.approx(means[0][0, 1] * 4 / (4 - slow / 2), rel=1e-9)
    alike, bound = _bound(small_instance(**changes)).bound_s, _bound(unlike).bound_s
    assert alike is not None
    assert bound is not None
    # One layer of eight cannot be cut, so a single slow die need not show.
    assert bound > alike if slow > 1 else bound >= alike
    evaluator = Evaluator(unlike)
    values = [evaluator.value(plan) for plan in every_plan(unlike) if plan.batch == 1]
    assert bound <= min(value for value in values if value is not None)
