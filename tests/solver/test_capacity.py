"""How long a request fits: closed forms of equal stages in lockstep, limits, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from instances.errors import InputError
from instances.instance import Instance
from solver.capacity.api import capacity
from solver.capacity.longest import largest
from solver.capacity.result import CapacityResult, CapacityRow
from solver.evaluate import Evaluator
from solver.limits import Limits
from solver.policies.mbkr import mbkr_pairs, offset_pairs
from tests.builders import small_instance

KV_BYTES = 2 * 2 * 16 * 2
"""Per token and stage: one layer, two KV heads of 16, two bytes for keys and values each."""


def roomy_by(tokens: int, **changes: Any) -> Instance:
    """Four equal stages whose memory holds the weights and the KV of about so many tokens; time goes with tokens."""
    parts: dict[str, Any] = {
        "costs": {"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 1e-4, "pair_s": 0},
        "workload": {"requests": 3, "tokens": 1024},
        "pipeline__max_batch": 1,
        "pipeline__max_chunks": 4,
        "pipeline__chunk_quantum": 16,
        "model__activation_bytes": 0.001,
        "model__weight_bytes": 0.001,
        **changes,
    }
    return small_instance(hardware__die__hbm_bytes=tokens * KV_BYTES, **parts)


def table(instance: Instance, **options: Any) -> dict[str, CapacityRow]:
    found = capacity(instance, chunks=4, limits=Limits(time_s=60), **options)
    assert found.stop_reason == "iterations"
    for row in found.methods:
        _assert_replays(instance, row)
    return {row.method: row for row in found.methods}


def _assert_replays(instance: Instance, row: CapacityRow) -> None:
    """The plan is one of the instance with requests of that length, and gives the value that is shown."""
    if row.plan is not None:
        workload = instance.workload.model_copy(update={"tokens": row.max_tokens})
        resized = instance.model_copy(update={"workload": workload})
        assert row.plan.instance == resized.fingerprint
        outcome = Evaluator(resized).full(row.plan)
        assert outcome.value == row.value_s
        assert outcome.metrics is not None
        assert outcome.metrics.mean_latency_s == row.mean_latency_s


def test_gains_of_equal_stages() -> None:
    """Four stages, four equal chunks (M = N = 4), three waves, 5 % of latency.

    Pairs half a pipeline apart: M/(M - min(d, M-d)/2) = 4/3 with d = 2; all stages together: (M+1)/(2M) = 5/8 of the KV
    is alive on average, a gain of up to 1.6. Spilling whole chunks and waits move both a little.
    """
    rows = table(roomy_by(4096), latency_budget=0.05)
    assert rows["none"].max_tokens is not None
    assert rows["none"].max_tokens == pytest.approx(4096, rel=0.03)
    gains = {name: row.gain for name, row in rows.items()}
    assert gains["none"] == 1.0
    assert gains["mocap"] is not None
    assert gains["pool"] is not None
    assert 1.2 <= gains["mocap"] <= 1.45
    assert 1.4 <= gains["pool"] <= 1.75
    assert gains["pool"] > gains["mocap"]
    for row in rows.values():
        assert row.value_s is not None
        assert row.optimum_s is not None
        assert row.max_tokens is not None
        assert row.any_latency_tokens is not None
        assert row.value_s <= 1.05 * row.optimum_s
        assert row.any_latency_tokens >= row.max_tokens
        # The next quantum was tried, and is too long or too slow.
        assert row.next_size == row.max_tokens + 16
        tried = {point.size: point for point in row.frontier}
        following = tried[row.next_size]
        assert following.value_s is None or following.value_s > 1.05 * following.optimum_s


def test_without_a_budget_waits_buy_length() -> None:
    instance = roomy_by(2048)
    tight = table(instance, methods=["mocap"], latency_budget=0.001)["mocap"]
    free = table(instance, methods=["mocap"])["mocap"]
    assert tight.max_tokens is not None
    assert free.max_tokens is not None
    assert free.max_tokens >= tight.max_tokens
    assert free.any_latency_tokens == free.max_tokens


def test_a_host_lengthens_requests_and_its_size_ends_it() -> None:
    host = {"host_bytes": 1024 * KV_BYTES, "host_bytes_per_s": "64 GB/s"}
    rows = table(roomy_by(1024, hardware__host=host), methods=["none", "host", "pool+host"])
    assert rows["none"].max_tokens is not None
    assert rows["host"].max_tokens is not None
    assert rows["pool+host"].max_tokens is not None
    # Three of four chunks can leave, the die holds the others, and the host holds no more than it has: 2 x 1024 tokens.
    assert rows["none"].max_tokens < rows["host"].max_tokens <= 2048
    assert rows["pool+host"].max_tokens >= rows["host"].max_tokens


def test_the_largest_batch() -> None:
    # Memory for 8192 tokens: eight requests of 1024, or a little less beside the weights.
    instance = roomy_by(8192, workload={"requests": 16, "tokens": 1024}, pipeline__max_batch=16)
    found = capacity(instance, ["none", "pool"], chunks=4, by_batch=True, limits=Limits(time_s=60))
    none, pool = found.methods
    assert none.max_batch == 7
    assert pool.max_batch is not None
    assert pool.max_batch > 7
    assert none.max_tokens == 1024
    assert none.any_latency_tokens is None


def test_what_does_not_fit_at_all_says_why() -> None:
    found = capacity(small_instance(hardware__die__hbm_bytes="1 kB"), ["none"], limits=Limits(time_s=20))
    (row,) = found.methods
    assert row.max_tokens is None
    assert row.plan is None
    assert "capacity_at_rest" in row.note


@pytest.mark.parametrize(
    ("changes", "options", "says"),
    [
        ({"workload": {"trace": [{"tokens": 2048}]}}, {}, r"workload\.trace"),
        ({}, {"methods": ["none", "magic"]}, "'magic' is not allowed; expected names among none"),
        ({}, {"methods": ["host"]}, r"hardware\.host"),
        ({}, {"chunks": 9}, "chunks: 9 is not allowed"),
        ({}, {"latency_budget": -0.1}, "latency budget"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        capacity(small_instance(**changes), **options)


def test_time_that_is_up_is_said() -> None:
    found = capacity(roomy_by(4096), ["none"], chunks=4, limits=Limits(time_s=1e-3))
    assert isinstance(found, CapacityResult)
    assert found.stop_reason == "time_limit"


@pytest.mark.parametrize("limit", range(11))
def test_bisection_finds_the_last_that_runs(limit: int) -> None:
    tried: list[int] = []

    def runs(size: int) -> bool:
        tried.append(size)
        return size <= limit

    for known in range(limit + 1):
        tried.clear()
        assert largest(runs, known, 10) == limit
        assert all(known < size <= 10 for size in tried)


def test_sizes_beyond_one_that_fails_are_looked_at() -> None:
    # A heuristic that fails from 101 on, but runs again from 106 to 109: 1.08 times 100 is found, and climbed from.
    assert largest(lambda size: size <= 100 or 106 <= size < 110, 10, 500) == 109
    # And on to the next island, 1.15 times 109.
    assert largest(lambda size: size <= 100 or 106 <= size < 110 or size == 125, 10, 500) == 125
    # One that no multiple hits stays unseen.
    assert largest(lambda size: size <= 100 or size == 111, 10, 500) == 100


def test_partners() -> None:
    assert offset_pairs(8, 2) == (2, 3, 0, 1, 6, 7, 4, 5)
    assert offset_pairs(7, 2) == (2, 3, 0, 1, None, None, None)
    # Half a pipeline apart, unless the waves are shorter than the pipeline.
    assert mbkr_pairs(8, 8) == (4, 5, 6, 7, 0, 1, 2, 3)
    assert mbkr_pairs(8, 4) == (2, 3, 0, 1, 6, 7, 4, 5)
    assert mbkr_pairs(8, 1) == (1, 0, 3, 2, 5, 4, 7, 6)
