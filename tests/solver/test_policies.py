"""Policies on a pipeline whose times are whole seconds: 4 equal stages, 4 requests of 8 quanta, 1 s a quantum."""

from typing import Any

import numpy as np
import pytest

from instances.errors import InputError
from instances.instance import Instance
from solver.api import solve
from solver.limits import Limits
from solver.methods import METHODS
from solver.policies.annealing import Schedule, anneal
from solver.policies.mbkr import Thresholds, cross_half, head_to_tail
from tests.builders import small_instance
from tests.searches import make_search

# One quantum of 256 tokens takes 1 s on each of 4 stages, and nothing else takes time.
SECONDS: dict[str, Any] = {
    "costs": {"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 4 / 256, "pair_s": 0},
    "hardware__link_bytes_per_s": 1e21,
    "hardware__hop_latency_s": 0,
}


def seconds_instance(**changes: Any) -> Instance:
    return small_instance(**{**SECONDS, **changes})


@pytest.mark.parametrize(
    ("method", "chunks", "value"),
    [
        # One chunk of 8 s: waves end at 8*(w+1) + 3*8, mean 8*2.5 + 24.
        ("gpipe", None, 44.0),
        # Two chunks of 4 s: 8*2.5 + 3*4.
        ("cpp", 2, 32.0),
        # Eight chunks of 1 s: 8*2.5 + 3*1, the least there is.
        ("cpp", None, 23.0),
        ("terapipe", None, 23.0),
        ("exact", None, 23.0),
        # The largest batch is 2: waves of 16 s, 16*1.5 + 3*2.
        ("mocap", None, 30.0),
    ],
)
def test_closed_forms(method: str, chunks: int | None, value: float) -> None:
    result = solve(seconds_instance(), method, chunks=chunks, limits=Limits(time_s=20))
    assert result.objective.value == pytest.approx(value, abs=1e-9)
    assert result.objective.bound is not None
    assert result.objective.bound <= value


def test_mocap_with_the_best_batch() -> None:
    result = solve(seconds_instance(), "mocap", knobs={"batch": "best"}, limits=Limits(time_s=20))
    assert result.objective.value == pytest.approx(23.0)


def test_terapipe_slices_shrink_where_attention_grows() -> None:
    """With a pair term later chunks are dearer, so the DP's slices do not grow."""
    costs = {"kind": "fitted", "chunk_s": 0.4, "prefix_s": 0, "token_s": 4 / 256, "pair_s": 4 / 256**2}
    instance = seconds_instance(costs=costs, workload__tokens=16 * 256, pipeline__max_chunks=16)
    search = make_search(instance, "terapipe", slicing="dp")
    METHODS["terapipe"].run(search)
    assert search.incumbent.plan is not None
    sizes = search.incumbent.plan.chunk_sizes(16 * 256)
    assert len(set(sizes)) > 1
    assert list(sizes) == sorted(sizes, reverse=True)


def test_partners_are_half_a_pipeline_apart() -> None:
    assert (cross_half(4), cross_half(5)) == ((2, 3, 0, 1), (2, 3, 0, 1, None))
    assert (head_to_tail(4), head_to_tail(5)) == ((3, 2, 1, 0), (4, 3, None, 1, 0))


def test_thresholds() -> None:
    """p1 = p2 - (N/2 mod M): N = 16, M = 12, p2 = 7 gives 7 - 8."""
    assert Thresholds(p2=7, n=4).p1(stages=16, chunks=12) == -1
    assert Thresholds(p2=11, n=4).p1(stages=16, chunks=16) == 3


def test_mbkr_spills_the_least_window_that_runs() -> None:
    """Four stages, eight chunks, memory for seven of them beside weights and workspace: one chunk has to go.

    KV of a chunk: 256 tokens * 2*2*16*2 bytes = 32768. Stage 0 is the tightest, it holds the embedding.
    """
    roomy = seconds_instance()
    cost = roomy.stage_cost
    static = max(
        cost.weight_bytes(s, s + 1, embedding=s == 0, head=s == 3) + cost.workspace_bytes(s, s + 1, 1, 256)
        for s in range(4)
    )
    kv_chunk = 256 * 2 * 2 * 16 * 2
    instance = seconds_instance(hardware__die__hbm_bytes=static + 7 * kv_chunk, pipeline__max_batch=1)
    bare = solve(instance, "cpp", chunks=8, limits=Limits(time_s=10))
    assert bare.plan is None
    assert bare.status == "unknown"
    assert bare.reason is not None
    assert "32768" in bare.reason
    result = solve(instance, "mocap", chunks=8, knobs={"iterations": 0}, limits=Limits(time_s=10))
    assert result.plan is not None
    window = result.details["thresholds"]["2048,0"]
    assert window["n"] >= 1
    spilled = {(row.stage, row.chunk) for row in result.plan.spill}
    assert spilled == {(s, i) for s in range(4) for i in range(window["p2"], window["p2"] + window["n"])}
    assert all(row.creditor == cross_half(4)[row.stage] for row in result.plan.spill)
    sizes = result.plan.chunk_sizes(2048)
    assert all(row.tokens == sizes[row.chunk] for row in result.plan.spill)


def test_lbcp_repeats_with_its_seed() -> None:
    costs = {"kind": "fitted", "chunk_s": 0.4, "prefix_s": 0, "token_s": 4 / 256, "pair_s": 4 / 256**2}
    instance = seconds_instance(costs=costs, workload__tokens=16 * 256, pipeline__max_chunks=16)
    runs = [solve(instance, "mocap", seed=3, knobs={"iterations": 60}, limits=Limits(time_s=None)) for _ in range(2)]
    assert runs[0].plan == runs[1].plan
    assert runs[0].objective.value is not None
    # Stage 2 starts from stage 1 and keeps the best it met.
    assert runs[0].objective.value <= runs[0].details["lbcp_start_value"]


def test_annealing_accepts_worse_states_when_hot_only() -> None:
    """From 1 the only neighbour is worse (2), from 2 it is the best (0): cold stays at 1, hot gets to 0."""
    steps = {1: 2, 2: 0, 0: 1}

    def run(temperature: float) -> int:
        schedule = Schedule(iterations=200, temperature=temperature, cooling=1.0)
        limits = Limits(time_s=None)
        return anneal(1, steps.__getitem__, float, schedule, np.random.default_rng(0), limits.start())

    assert run(0.0) == 1
    assert run(10.0) == 0


def test_terapipe_slices_by_its_dp_also_where_the_number_of_chunks_is_asked_for() -> None:
    """Attention makes later tokens dearer, so the DP's three slices get shorter; uniform ones do not."""
    instance = seconds_instance(
        costs={"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 0, "pair_s": 1e-6},
        workload={"requests": 4, "tokens": 8192},
        pipeline__max_chunks=32,
    )
    sizes = {}
    for slicing in ("dp", "uniform"):
        plan = solve(instance, "terapipe", chunks=3, knobs={"slicing": slicing}, limits=Limits(time_s=None)).plan
        assert plan is not None
        sizes[slicing] = plan.chunk_sizes(8192)
    # 32 quanta of 256 tokens.
    assert sizes["uniform"] == (2816, 2816, 2560)
    assert len(sizes["dp"]) == 3
    assert sizes["dp"][0] > sizes["dp"][1] > sizes["dp"][2]


def test_terapipe_tries_as_many_caps_as_its_knob_says() -> None:
    instance = seconds_instance(
        costs={"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 1e-3, "pair_s": 1e-6},
        workload={"requests": 4, "tokens": 16384},
        pipeline__max_chunks=64,
    )
    limits = Limits(time_s=None)
    values = [
        solve(instance, "terapipe", knobs={"slicing": "dp", "caps": caps}, limits=limits).objective.value
        for caps in (1, 10, 10_000)
    ]
    assert values[0] is not None and values[1] is not None and values[2] is not None
    assert values[0] > values[1] >= values[2]
    with pytest.raises(InputError, match="at least 1"):
        solve(instance, "terapipe", knobs={"caps": 0})
