"""Rows of a capacity table: rematching, the host; and what the paper says of lengths."""

from __future__ import annotations

from typing import Any

import pytest

from instances.errors import InputError
from instances.instance import Instance
from solver.capacity import api
from solver.capacity.api import capacity
from solver.capacity.length import Length, Setting, _is_equal
from solver.capacity.result import CapacityRow
from solver.limits import Limits
from solver.policies.mbkr import cross_half, mbkr_pairs
from solver.simulation.program_file import replay_document
from tests.builders import small_plan
from tests.solver.test_capacity import KV_BYTES, roomy_by


def rows(instance: Instance, *methods: str, chunks: int = 4, **options: Any) -> dict[str, CapacityRow]:
    found = capacity(instance, methods, chunks=chunks, limits=Limits(time_s=60), **options)
    assert found.stop_reason == "iterations"
    return {row.method: row for row in found.methods}


def reached(row: CapacityRow) -> int:
    assert row.max_tokens is not None, row.note
    return row.max_tokens


def test_rematching_reaches_the_pooled_length_and_its_program_replays() -> None:
    # M = N = 4: 2M/(M + 1) = 1.6 with a pair a slot; all KV together allows as much.
    found = rows(roomy_by(4096), "none", "mocap", "rematch", latency_budget=0.05)
    rematch = found["rematch"]
    assert rematch.gain is not None
    assert 1.5 <= rematch.gain <= 1.62
    assert reached(rematch) > reached(found["mocap"]) > reached(found["none"])
    assert rematch.next_size == reached(rematch) + 16
    assert rematch.plan is None
    assert rematch.program is not None
    outcome = replay_document(rematch.program)
    assert not outcome["deadlock"]
    assert sum(outcome["latency_s"][:3]) / 3 == pytest.approx(rematch.mean_latency_s)
    assert max(outcome["peak_memory_bytes"]) <= 4096 * KV_BYTES


def test_slow_links_end_what_rematching_gains() -> None:
    # A chunk of 1024 tokens takes 0.1 s; over these links its KV takes a quarter of that.
    slow = roomy_by(4096, pipeline__chunk_quantum=64, hardware__link_bytes_per_s=1024 * KV_BYTES / 0.025)
    found = rows(slow, "none", "rematch", latency_budget=0.05)
    fast = rows(roomy_by(4096, pipeline__chunk_quantum=64), "rematch", latency_budget=0.05)
    assert reached(found["rematch"]) < reached(fast["rematch"])


@pytest.mark.parametrize("host_tokens", [512, 4096])
def test_a_host_for_reuse_lengthens_no_running_request(host_tokens: int) -> None:
    # Room for 1024 tokens at home. Three of four chunks may leave, one is being worked on: 4/3 of the length and more.
    host = {"host_bytes": host_tokens * KV_BYTES, "host_bytes_per_s": "64 GB/s"}
    found = rows(roomy_by(1024, hardware__host=host), "none", "host-reuse", "host")
    assert reached(found["host-reuse"]) == reached(found["none"])
    assert reached(found["host"]) > 1.3 * reached(found["none"])
    for name in ("none", "host-reuse"):
        plan = found[name].plan
        assert plan is not None
        assert plan.spill == ()
    active = found["host"].plan
    assert active is not None
    assert {row.creditor for row in active.spill} == {"host"}


def test_rows_of_the_host_need_one() -> None:
    with pytest.raises(InputError, match=r"hardware\.host"):
        rows(roomy_by(1024), "host-reuse")


def test_equal_chunks_means_equal_chunks() -> None:
    # Attention takes most of the time, so the fastest cuts are far from equal, and must not be used.
    costs = {"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 1e-6, "pair_s": 1e-6}
    instance = roomy_by(4096, costs=costs)
    limits = Limits(time_s=60)
    length = Length(Setting(instance, 4, 1, limits, limits.start(), equal=True), 2048)
    assert len(length.references) > 1
    ((plan, _),) = length.plans(length.search())
    assert plan.chunks == {"2048": (512, 512, 512, 512)}


def test_a_smaller_last_chunk_is_not_what_the_bound_speaks_about() -> None:
    # 1024 tokens: 3 x 272 + 208. Without a fixed number of chunks these count as equal, as engines cut; with one not.
    plan = small_plan(roomy_by(4096), chunks={"1024": [272, 272, 272, 208]})
    assert _is_equal(plan, exactly=False)
    assert not _is_equal(plan, exactly=True)
    assert _is_equal(small_plan(roomy_by(4096), chunks={"1024": [256] * 4}), exactly=True)


@pytest.mark.parametrize("chunks", [1, 4])
def test_quanta_of_one_token_do_not_cap_the_length(chunks: int) -> None:
    # One stage's memory holds 8192 tokens beside a few weights: twice as many quanta as there were sizes once.
    found = rows(roomy_by(8192, pipeline__chunk_quantum=1), "none", chunks=chunks)["none"]
    assert 8100 <= reached(found) <= 8192
    assert found.next_size == reached(found) + 1


def test_lengths_count_the_cached_prefix() -> None:
    # Memory for 4096 tokens of KV; a prefix of 1000 of them is no multiple of the quantum, and its chunks are.
    cached = {"requests": 3, "tokens": 1024, "cached_tokens": 1000}
    found = rows(roomy_by(4096, workload=cached), "none", equal_chunks=True)["none"]
    # 1000 + 64 k <= 4095 or so beside the weights.
    assert reached(found) == 1000 + 64 * 48
    assert found.plan is not None
    assert found.plan.chunks == {str(64 * 48): (768, 768, 768, 768)}


def test_kv_that_stops_growing_sets_no_limit_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MOST_SIZES", 40)
    attention = {"kind": "sliding", "heads": 4, "kv_heads": 2, "head_dim": 16, "window": 16}
    kinds = {"layer": {"attention": attention, "feed_forward": {"kind": "dense", "width": 128}}}
    found = rows(roomy_by(4096, model__kinds=kinds), "none", latency_budget=0.05, equal_chunks=True)["none"]
    assert reached(found) == 40 * 64
    assert (found.next_size, found.bound_tokens) == (None, None)
    assert found.note == "requests of more than 2560 tokens were not tried"


def test_lengths_that_the_replay_cannot_count_do_not_end_the_table() -> None:
    # KV that stops growing, a second a token: 3 requests on 4 stages, and the clock counts some 2e6 s of work in all.
    attention = {"kind": "sliding", "heads": 4, "kv_heads": 2, "head_dim": 16, "window": 16}
    kinds = {"layer": {"attention": attention, "feed_forward": {"kind": "dense", "width": 128}}}
    costs = {"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 1, "pair_s": 0}
    found = rows(roomy_by(1 << 20, model__kinds=kinds, costs=costs), "none", "pool", latency_budget=0.05)
    for row in found.values():
        assert 1e5 < reached(row) < 2e6
        assert row.note == f"more than {reached(row)} takes longer than the replay can count"
        assert row.next_size is None


def test_an_instance_that_the_replay_cannot_count_is_an_error() -> None:
    costs = {"kind": "fitted", "chunk_s": 9e5, "prefix_s": 0, "token_s": 0, "pair_s": 0}
    with pytest.raises(InputError, match="the replay's"):
        rows(roomy_by(4096, costs=costs), "none")


def test_rematching_that_no_program_can_say_is_named() -> None:
    found = rows(roomy_by(4096, pipeline__max_in_flight=2), "none", "rematch")
    assert found["rematch"].max_tokens == found["none"].max_tokens
    assert found["rematch"].note.startswith("as without spill, for programs are refused: pipeline.max_in_flight")
    assert not found["none"].note


@pytest.mark.parametrize("changes", [{"pipeline__layers": "free"}, {"objective": "p95_latency"}])
def test_where_the_bound_says_nothing_the_rows_stay(changes: dict[str, Any]) -> None:
    found = rows(roomy_by(256, **changes), "none", latency_budget=0.05, equal_chunks=True)["none"]
    assert reached(found) > 0
    assert found.bound_tokens is None


class TestWhatThePaperSays:
    """MOCAP: "fewer chunks fit longer sequences", and "the gain falls with length" (over TeraPipe); N = 4 stages.

    - Fewer chunks: true from M = N on. In lockstep pairs reach M / (M - d'/2) of the length, d' the slots between
      them, at most N/2: 4/3 for M = 4, 8/7 for M = 8. With M < N it depends on who is paired: partners half a pipeline
      apart peak together where N/2 is a multiple of M, and gain nothing; half a wave apart they gain 4/3 again.
    - The gain falls with length: not by itself. Where time goes with tokens one gain holds for every length. It falls
      where attention takes its part: the fastest cuts then have long first chunks and short late ones, and what late
      chunks hold is little beside them.
    """

    def test_the_gain_of_pairs_falls_with_the_number_of_chunks(self) -> None:
        for chunks in (4, 8):
            instance = roomy_by(4096, pipeline__max_chunks=8, pipeline__chunk_quantum=64)
            found = rows(instance, "none", "mocap", chunks=chunks, latency_budget=0.05)
            # d' = 2: M / (M - 1); whole chunks spill, so a window is wider by up to one.
            assert found["mocap"].gain == pytest.approx(chunks / (chunks - 1), rel=0.05)

    def test_fewer_chunks_than_stages_want_other_pairs(self) -> None:
        # N = 8, M = 4: half a pipeline is a whole wave.
        assert mbkr_pairs(8, 4) != cross_half(8)
        eight = {
            "hardware__columns": 4,
            "pipeline__stages": 8,
            "pipeline__chunk_quantum": 64,
            "model__layers": [{"pattern": ["layer"], "repeat": 8}],
        }
        found = rows(roomy_by(4096, **eight), "none", "mocap", latency_budget=0.05)
        assert found["mocap"].gain == pytest.approx(4 / 3, rel=0.05)

    @pytest.mark.parametrize("pair_s", [0, 1e-4 / 8192])
    def test_the_gain_falls_with_length_where_attention_counts(self, pair_s: float) -> None:
        # A token takes 0.1 ms and as much again with 8192 others before it.
        gains = []
        for tokens in (1024, 16384):
            costs = {"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 1e-4, "pair_s": pair_s}
            instance = roomy_by(tokens, costs=costs, pipeline__chunk_quantum=tokens // 128)
            gain = rows(instance, "none", "mocap", latency_budget=0.05)["mocap"].gain
            assert gain is not None
            gains.append(gain)
        if pair_s:
            assert gains[1] < gains[0] - 0.08
        else:
            assert gains[1] == pytest.approx(gains[0], rel=0.02)
