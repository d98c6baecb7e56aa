"""KV in two tiers: load or compute by time, reuse across requests, active requests that spill."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.errors import InputError
from instances.instance import Instance
from solver.api import solve
from solver.limits import Limits
from solver.result import Result
from solver.serving.kv_tier import HostCache, Tier, Tiered
from solver.serving.memory import Memory
from solver.serving.setting import Setting, setting_of
from tests.searches import make_search
from tests.solver.serving.building import FAST_LINKS, FITTED, row, traced

QUICK = Limits(time_s=30)
HOST: dict[str, Any] = {"hardware__host": {"host_bytes": "1 TB", "host_bytes_per_s": "64 GB/s"}}
# 512 bytes a token, of all four layers; at 128 B/s a token takes 4 s to load.
SLOW_HOST: dict[str, Any] = {"hardware__host": {"host_bytes": "1 TB", "host_bytes_per_s": 128}}


def at_host(cached: int, tokens: int, stages: int = 1, **changes: Any) -> Instance:
    return traced(row(tokens, cached_tokens=cached), stages=stages, **{**FAST_LINKS, "costs": FITTED, **changes})


def setting(instance: Instance, chunk: int = 64) -> Setting:
    return setting_of(make_search(instance, "kv-tier"), chunk)


def solved(instance: Instance, **knobs: object) -> Result:
    return solve(instance, "kv-tier", knobs=knobs, limits=QUICK)


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("block", [16, 256])
@pytest.mark.parametrize("pair_s", [1e-13, 7e-13, 2.9e-12])
def test_the_crossover_is_its_closed_form_at_64_gb_a_second(stages: int, block: int, pair_s: float) -> None:
    costs = {"kind": "fitted", "chunk_s": 1e-5, "prefix_s": 0, "token_s": 2e-9, "pair_s": pair_s}
    prefix = 1 << 16
    tier = Tier(setting(at_host(prefix, prefix + 8, stages, **HOST, costs=costs)), 64e9, block)
    # Of each stage: 512/N bytes a token; a and b are an N-th of the model's. N cancels out.
    closed = (512 / 64e9 - 2e-9 - pair_s * block) / (2 * pair_s)
    expected = min(prefix, max(0, int(closed // block + 1) * block))
    assert tier.crossover(prefix) == expected
    assert closed == pytest.approx(expected, abs=block) or expected in (0, prefix)


def test_a_model_of_the_catalogue_computes_the_front_and_loads_the_rest() -> None:
    # Dies far ahead of their host link: on today's a 70B model always loads, 5 us a token against some 200 us.
    die = {"peak_flops": "40 PFLOP/s", "hbm_bytes": "192 GB", "hbm_bytes_per_s": "20 TB/s"}
    instance = Instance.read(
        {
            "schema_version": 1,
            "name": "tiers",
            "hardware": {
                "rows": 1,
                "columns": 4,
                "link_bytes_per_s": "1 TB/s",
                "die": die,
                "host": {"host_bytes": "1 TB", "host_bytes_per_s": "64 GB/s"},
            },
            "model": {"name": "llama3-70b"},
            "workload": {"trace": [row(140_000, cached_tokens=131_072)]},
            "pipeline": {"stages": 4},
        }
    )
    tier = Tier(setting(instance, 8192), 64e9, 256)
    at = tier.crossover(131_072)
    assert 0 < at < 131_072
    each = tier.load_s(256)
    # 20 layers a stage, 8 heads of 128, keys and values of two bytes: 81920 bytes a token.
    assert each == pytest.approx(256 * 81_920 / 64e9)
    assert tier.compute_s(at - 256, 256) <= each < tier.compute_s(at, 256)


@pytest.mark.parametrize(
    ("decide", "value"),
    [
        # 16 tokens load in 64 s; then 4 tokens take 2 s.
        ("load", 66.0),
        # 16 tokens take 5 s, then 4 tokens 2 s.
        ("compute", 7.0),
    ],
)
def test_times_of_a_request(decide: str, value: float) -> None:
    result = solved(at_host(16, 20, **SLOW_HOST), decide=decide)
    assert result.objective.value == pytest.approx(value)
    assert result.metrics is not None
    computed = result.metrics.computed_tokens_per_s * result.metrics.makespan_s
    assert computed == pytest.approx(4 if decide == "load" else 20)


def test_the_front_is_computed_while_the_rest_is_loaded() -> None:
    # With 0.1 s a pair a block of 2 behind L takes 0.5 + 0.1*(4L + 4) s, to load it 8 s: computed below L = 17.75.
    costs = {**FITTED, "pair_s": 0.1}
    result = solved(at_host(32, 40, **SLOW_HOST, costs=costs), block=2, chunk=64)
    assert result.details["crossover_tokens"] == 18
    # 18 tokens: 1 + 4.5 + 32.4 s; 14 tokens load in 56 s; then 8 behind 32 take 1 + 2 + 0.1*(512 + 64) s.
    assert result.objective.value == pytest.approx(max(37.9, 56) + 60.6)
    assert (result.details["loaded_tokens"], result.details["computed_again_tokens"]) == (14, 18)
    assert result.details["loaded_bytes"] == 14 * 512


def test_a_prefix_goes_to_the_host_and_serves_the_next_request() -> None:
    shared: dict[str, Any] = {"prefix_id": "system", "prefix_tokens": 16}
    rows = [row(20, 0.0, **shared), row(20, 10.0, **shared), row(20, 100.0, **shared)]
    instance = traced(*rows, **FAST_LINKS, costs=FITTED, **SLOW_HOST)
    result = solved(instance, decide="load")
    # The first ends at 6 s and its 16 tokens are at the host at 70 s: too late for the second, in time for the third.
    assert result.details["loaded_tokens"] == 16
    assert result.details["stored_bytes"] == 16 * 512


def test_the_least_recently_used_prefix_leaves_a_full_host() -> None:
    cache = HostCache(30 * 512, setting(at_host(4, 8, **HOST)))
    cache.store("a", 10, 5)
    cache.store("b", 10, 5)
    assert cache.find("a", 4) == 0  # still being copied
    assert cache.find("a", 5) == 10
    cache.store("c", 20, 6)
    assert (dict(cache.tokens), cache.evictions) == ({"a": 10, "c": 20}, 1)
    cache.store("d", 31, 7)  # larger than the host
    assert dict(cache.tokens) == {"a": 10, "c": 20}


def tight(**changes: Any) -> Instance:
    """One request of 2048 tokens, 512 bytes each on four stages, that has room for three quarters of it."""
    plain = traced(row(2048), stages=4, **HOST)
    cost = plain.stage_cost
    static = max(cost.weight_bytes(s, s + 1, s == 0, s == 3) for s in range(4)) + cost.workspace_bytes(0, 1, 1, 256)
    return traced(row(2048), stages=4, **HOST, hardware__die__hbm_bytes=int(static) + 1536 * 128, **changes)


def test_active_requests_spill_where_reuse_alone_has_no_room() -> None:
    refused = solved(tight(), chunk=256)
    assert (refused.program, refused.plan) == (None, None)
    assert refused.reason is not None
    assert "request 0 needs 262144 bytes" in refused.reason
    spilled = solved(tight(), chunk=256, mode="active_spill")
    assert spilled.plan is not None
    assert {entry.creditor for entry in spilled.plan.spill} == {"host"}
    assert spilled.metrics is not None
    assert max(spilled.metrics.peak_memory_bytes) <= tight().hardware.die.hbm_bytes


def test_without_a_host_there_is_nothing_to_keep_kv_at() -> None:
    result = solved(traced(row(20), costs=FITTED))
    assert result.reason == "hardware.host: there is none, and kv-tier keeps KV there"


@pytest.mark.parametrize("keys", [{}, {"prefix_tokens": 0}, {"prefix_tokens": 20}])
def test_a_prefix_has_a_length(keys: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"workload\.trace\.1\.prefix_tokens"):
        solved(traced(row(20), row(20, prefix_id="a", **keys), costs=FITTED, **HOST))


requests = st.lists(
    st.tuples(st.integers(2, 60), st.integers(0, 30), st.sampled_from([None, "a", "b"]), st.integers(1, 50)),
    min_size=1,
    max_size=6,
)


@given(
    rows=requests,
    stages=st.integers(1, 3),
    speed=st.sampled_from([128, 4096]),
    decide=st.sampled_from(["each", "load", "compute"]),
)
def test_every_token_is_loaded_or_computed(
    rows: list[tuple[int, int, str | None, int]], stages: int, speed: int, decide: str
) -> None:
    trace = [
        row(tokens, arrival / 4, cached_tokens=min(length, tokens) - 1)
        if prefix is None
        else row(tokens, arrival / 4, prefix_id=prefix, prefix_tokens=min(length, tokens - 1))
        for tokens, arrival, prefix, length in rows
    ]
    host = {"hardware__host": {"host_bytes": 40 * 512, "host_bytes_per_s": speed}}
    made = setting(traced(*trace, stages=stages, costs=FITTED, **host))
    cache = HostCache(40 * 512, made)
    asked = made.instance.workload.all_requests()
    scheduler = Tiered(Tier(made, speed, 4), Memory(made.cost, made.free_bytes), cache, asked, 16, decide)
    log = made.run(scheduler, made.jobs(1))
    assert log.stuck is None
    assert sum(job.computed for job in log.jobs) + scheduler.loaded_tokens == sum(request.tokens for request in asked)
    served = made.judged(log)
    assert not isinstance(served, str), served
    assert served.error_s == 0
