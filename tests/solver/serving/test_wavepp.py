"""WavePP as a whole: what each row of the ablation brings, and that no request is ever lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from instances.instance import Instance
from solver.api import solve
from solver.limits import Limits
from solver.methods import METHODS
from solver.result import Result
from solver.serving.jobs import Batch, Log
from solver.serving.setting import setting_of
from solver.serving.wavepp.method import ROWS, run
from solver.serving.wavepp.scheduler import WavePP
from tests.builders import small_instance
from tests.searches import make_search
from tests.solver.serving.building import FAST_LINKS, FITTED, row, traced

QUICK = Limits(time_s=60)
SECONDS: dict[str, Any] = {**FAST_LINKS, "costs": FITTED}
# Blocks of 4 tokens, 2048 bytes of all four layers; no time for control unless a test gives some.
PLAIN: dict[str, Any] = {
    "block": 4,
    "largest": 16,
    "smallest": 4,
    "walk_us": 0,
    "hop_us": 0,
    "block_us": 0,
    "hint_age_ms": 0,
    "deadline_ms": 0,
}


def served(instance: Instance, row_: str = "mpu", **knobs: Any) -> tuple[Log, WavePP]:
    search = make_search(instance, "wavepp", **{**PLAIN, **ROWS[row_], **knobs})
    return run(setting_of(search, search.knobs["largest"]), dict(search.knobs))


def solved(instance: Instance, row_: str = "mpu", **knobs: Any) -> Result:
    return solve(instance, "wavepp", knobs={**PLAIN, **ROWS[row_], **knobs}, limits=QUICK)


def end_s(log: Log) -> float:
    assert log.stuck is None, log.stuck
    return max(iteration.ends_ps[-1] for iteration in log.iterations) / 1e12


def room(blocks: Sequence[int], largest: int = 16, **changes: Any) -> dict[str, Any]:
    """Dies on which so many blocks of 4 tokens have room, by stage."""
    stages, plain = len(blocks), small_instance(workload={"requests": 1, "tokens": 4096})
    cost, places = plain.stage_cost, [(0, 0), (0, 1), (1, 1), (1, 0)]
    layers = 4 // stages
    dies = []
    for stage, count in enumerate(blocks):
        start = stage * layers
        static = cost.weight_bytes(start, start + layers, stage == 0, stage == stages - 1)
        static += cost.workspace_bytes(start, start + layers, 1, largest)
        dies.append({"at": list(places[stage]), "hbm_bytes": int(static) + count * 512 * layers})
    return {
        "hardware__dies": dies,
        "hardware__rows": 2 if stages > 2 else 1,
        "hardware__columns": min(2, stages),
        **changes,
    }


SHARED: dict[str, Any] = {"prefix_id": "a", "prefix_tokens": 32}


def test_a_prefix_is_computed_once() -> None:
    log, scheduler = served(traced(row(40, **SHARED), row(40, 30.0, **SHARED), **SECONDS), largest=64)
    # 40 tokens take 1 + 10 s; the second reuses 32 and takes 1 + 2 s.
    assert end_s(log) == pytest.approx(33.0)
    assert [job.computed for job in log.jobs] == [40, 8]
    assert scheduler.hits == {1: True}


def test_seeded_prefixes_are_there_from_the_start() -> None:
    log, _ = served(traced(row(40, **SHARED, cached_tokens=32), row(20, cached_tokens=8), **SECONDS), largest=64)
    # Both in one wave: 8 + 12 tokens.
    assert [job.computed for job in log.jobs] == [8, 12]
    assert end_s(log) == pytest.approx(6.0)


def test_recurrent_layers_resume_at_a_snapshot() -> None:
    # A layer with a state on each stage; snapshots every 16 tokens. Of a prefix of 40 tokens 32 can be used.
    full = small_instance().model.kinds["layer"].model_dump(mode="json")
    linear = {**full, "attention": {"kind": "linear", "name": "delta", "parameters": 0, "state_bytes": 2048}}
    shared: dict[str, Any] = {"prefix_id": "a", "prefix_tokens": 40}
    instance = traced(
        row(48, **shared),
        row(48, 60.0, **shared),
        stages=2,
        model__kinds={"full": full, "linear": linear},
        model__layers=[{"pattern": ["full", "linear"], "repeat": 2}],
        **SECONDS,
    )
    log, scheduler = served(instance, snapshot=16)
    assert [job.computed for job in log.jobs] == [48, 16]
    # 4 tokens of 128 bytes a full layer, and a quarter of a state.
    assert scheduler.block_bytes == (4 * 128 + 512,) * 2
    assert solved(instance, snapshot=16).details["prediction_error_s"] == 0


def test_overlapped_admission_beats_blocking() -> None:
    # One stage, six requests of one wave of 1 + 16/4 = 5 s, a walk of 2 s.
    instance = traced(*[row(16)] * 6, **SECONDS)
    blocking, _ = served(instance, "naive", walk_us=2e6)
    overlapped, _ = served(instance, "admission", walk_us=2e6)
    assert end_s(blocking) == pytest.approx(6 * 7)
    assert end_s(overlapped) == pytest.approx(2 + 6 * 5)


def test_stage_0_starts_before_later_stages_are_ready() -> None:
    # Two stages, two layers each; the second has to send 4 blocks of 1024 bytes to its host at 256 B/s first.
    instance = traced(
        row(16),
        row(16, 10.0),
        stages=2,
        **SECONDS,
        **room([9, 4]),
        hardware__host={"host_bytes": "1 GB", "host_bytes_per_s": 256},
    )
    result = solved(instance, "leases")
    # A stage takes (1 + 4)/2 = 2.5 s. The second request starts at 10 s; its second stage is ready at 26 s.
    assert result.metrics is not None
    assert result.metrics.makespan_s == pytest.approx(10 + 16 + 2.5)
    assert result.details["prediction_error_s"] == 0
    blocking = solved(instance, "leases", admission="blocking")
    assert blocking.metrics is not None
    assert blocking.metrics.makespan_s == pytest.approx(10 + 16 + 2.5 + 2.5)


def pressed() -> Instance:
    """Twelve requests at once, of three prefixes of 8 blocks and suffixes of 6, in a cache of 40 blocks."""
    return traced(*[row(56, prefix_id=i % 3, prefix_tokens=32) for i in range(12)], **SECONDS, **room([40]))


def test_leases_and_escrow_beat_none_under_cache_pressure() -> None:
    none, unprotected = served(pressed(), "admission", held=8)
    leases, protected = served(pressed(), "leases", held=8)
    # With leases each prefix is computed once, and the nine other requests compute 24 tokens each: 24 waves of 5 s.
    assert [sum(job.computed for job in log.jobs) for log in (leases, none)] == [3 * 56 + 9 * 24, 576]
    assert [end_s(log) for log in (leases, none)] == pytest.approx([120.0, 180.0])
    assert (sum(protected.hits.values()), sum(unprotected.hits.values())) == (9, 3)
    # Where all progress alike, too many start, stall and give way: what they computed is computed again.
    again, preempting = served(pressed(), "admission", packing="equal", held=4, stall="preempt")
    alike, _ = served(pressed(), "leases", packing="equal", held=4)
    assert preempting.preemptions > 0
    assert end_s(alike) < end_s(again)


def test_without_escrow_requests_can_lock_each_other_out() -> None:
    # Two prompts of 10 blocks in a cache of 12: each takes what is free, until neither can go on.
    instance = traced(row(40), row(40), **SECONDS, **room([12]))
    result = solved(instance, "admission", packing="equal")
    assert (result.program, result.objective.value) == (None, None)
    assert result.reason == (
        "deadlock: requests 0, 1 hold 12 of 12 blocks on stage 0 and wait for more, of which there is no escrow"
    )
    with_escrow = solved(instance, "leases", packing="equal")
    assert with_escrow.program is not None


def test_a_request_larger_than_a_stage_is_named() -> None:
    result = solved(traced(row(40), row(64), stages=2, **SECONDS, **room([30, 12])))
    assert result.reason == "memory: request 1 needs 16 blocks of KV; a stage has 12"


def test_smaller_waves_fill_the_pipeline_at_low_concurrency() -> None:
    # One request of 64 tokens on 4 stages. Static: one wave of (1 + 16)/4 s a stage, 17 s. MPU: four waves of 16.
    instance = traced(row(64), stages=4, **SECONDS)
    static, _ = served(instance, "leases", largest=64)
    mpu, _ = served(instance, "mpu", largest=64)
    assert end_s(static) == pytest.approx(17.0)
    assert [iteration.batch.tokens for iteration in mpu.iterations] == [16, 16, 16, 16]
    assert end_s(mpu) == pytest.approx((4 + 3) * 1.25)


def test_splitting_can_hurt_at_high_concurrency() -> None:
    # Waves cost 1 s each besides 0.25 s a token. Requests come one at a time, always four inside: splitting the tokens
    # that happen to be ready makes more waves, where static packing lets them gather in one.
    rows = [row(16, 0.9 * number) for number in range(40)]
    instance = traced(*rows, stages=4, **SECONDS)
    static, _ = served(instance, "leases", largest=64, held=40)
    mpu, _ = served(instance, "mpu", largest=64, held=40, target=8)
    assert len(mpu.iterations) > len(static.iterations)
    assert end_s(mpu) > end_s(static)


def test_a_wave_that_is_not_full_waits_for_its_deadline() -> None:
    # The second request is let in at 1 s, the third at 2 s. Stage 0 is free at 1.5 s: the wave waits for the third.
    rows = [row(16), row(4), row(4)]
    instance = traced(*rows, stages=4, **SECONDS)
    log, _ = served(instance, walk_us=0.5e6, smallest=16, deadline_ms=1000)
    sizes = [[piece.job for piece in iteration.batch.pieces] for iteration in log.iterations]
    assert sizes == [[0], [1, 2]]
    at_once, _ = served(instance, walk_us=0.5e6, smallest=16, deadline_ms=0)
    assert [[piece.job for piece in iteration.batch.pieces] for iteration in at_once.iterations] != [[0]]


def test_a_budget_in_predicted_time_makes_waves_of_equal_time() -> None:
    costs = {**FITTED, "pair_s": 0.05}
    instance = traced(row(256), stages=4, **FAST_LINKS, costs=costs)
    tokens, _ = served(instance, "mpu", largest=32, smallest=4)
    time, _ = served(instance, "time", largest=32, smallest=4)
    spread = [
        max(iteration.durations_ps[0] for iteration in log.iterations[:-1])
        / min(iteration.durations_ps[0] for iteration in log.iterations[:-1])
        for log in (tokens, time)
    ]
    # Waves of equal tokens take longer and longer behind a longer prefix.
    assert spread[1] < spread[0] / 2
    assert end_s(time) < end_s(tokens)


def test_the_ablation_has_its_rows_and_the_program_replays() -> None:
    rows = [row(100 + 8 * (i % 3), 0.0, prefix_id=i % 2, prefix_tokens=64) for i in range(8)]
    result = solved(traced(*rows, stages=4, **SECONDS), ablation="yes")
    assert list(result.details["ablation"]) == ["naive", "admission", "leases", "mpu", "time"]
    assert result.metrics is not None
    found = result.details["ablation"]["mpu"]["prompt_tokens_per_s"]
    assert result.metrics.prompt_tokens_per_s == pytest.approx(found)
    assert result.metrics.good_hit_rate is not None
    assert (result.metrics.prompt_tokens_per_s or 0) >= result.metrics.computed_tokens_per_s


def test_knobs_are_listed() -> None:
    assert {"largest", "deadline_ms", "held", "headroom", "block"} <= set(METHODS["wavepp"].knobs)


class Watched(WavePP):
    """Looks after every step at what must always hold."""

    def compose(self, now_ps: int) -> Batch | None:
        found = super().compose(now_ps)
        for cache in self.admission.caches:
            assert 0 <= cache.used <= cache.capacity
            assert cache.escrow >= 0
            # What is promised can be taken, whatever else happens.
            assert cache.available >= 0
            assert all(chain.pinned <= chain.blocks for chain in cache.chains.values())
        assert len(self.admission.held) <= self.admission.most_held
        return found


def random_case(rng: np.random.Generator) -> tuple[Instance, dict[str, Any]]:
    """A short stream with shared prefixes, stages with different room, all knobs."""
    stages = int(rng.choice([1, 2, 4]))
    rows, arrival = [], 0.0
    for _ in range(int(rng.integers(2, 9))):
        tokens = int(rng.integers(2, 70))
        keys: dict[str, Any] = {}
        if rng.random() < 0.7:
            keys = {"prefix_id": int(rng.integers(3)), "prefix_tokens": int(rng.integers(1, tokens))}
        if rng.random() < 0.2:
            keys["cached_tokens"] = int(rng.integers(1, tokens))
        arrival += float(rng.choice([0, 0, 0.5, 3, 20]))
        rows.append(row(tokens, arrival, **keys))
    blocks = [int(rng.integers(18, 40)) for _ in range(stages)]
    host = {"host_bytes": "1 GB", "host_bytes_per_s": int(rng.choice([1024, 10**6]))}
    changes = room(blocks, 32, hardware__host=host if rng.random() < 0.5 else None)
    knobs = {
        "block": 4,
        "largest": int(rng.choice([8, 16, 32])),
        "smallest": int(rng.choice([2, 4, 8])),
        "target": int(rng.choice([0, 1, 8])),
        "held": int(rng.choice([0, 1, 3])),
        "headroom": int(rng.choice([1, 60, 10**6])),
        "walk_us": float(rng.choice([0, 10, 2e6])),
        "hop_us": float(rng.choice([0, 10, 5e5])),
        "block_us": float(rng.choice([0, 1e5])),
        "hint_age_ms": float(rng.choice([0, 100, 20_000])),
        "deadline_ms": float(rng.choice([0, 5, 4000])),
        "admission": str(rng.choice(["overlapped", "blocking"])),
        "waves": str(rng.choice(["mpu", "time", "static"])),
        "packing": str(rng.choice(["first", "equal"])),
        "protection": "leases",
    }
    return traced(*rows, stages=stages, costs={**FITTED, "pair_s": 0.01}, **changes), knobs


@pytest.mark.slow
def test_no_request_is_lost_or_stuck_in_1000_random_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solver.serving.wavepp.method.WavePP", Watched)
    evicted = rechecks = replayed = 0
    for seed in range(1000):
        instance, knobs = random_case(np.random.default_rng(seed))
        search = make_search(instance, "wavepp", **knobs)
        setting = setting_of(search, 32)
        log, scheduler = run(setting, dict(search.knobs))
        assert log.stuck is None, (seed, log.stuck)
        assert all(job.done for job in log.jobs), seed
        admission = scheduler.admission
        for cache in admission.caches:
            assert cache.escrow == 0, seed
            assert not cache.active, seed
            assert not any(chain.pins for chain in cache.chains.values()), seed
        reused = [scheduler._entries[job.index].start * 4 for job in log.jobs]
        assert [job.computed + start for job, start in zip(log.jobs, reused, strict=True)] == [
            job.prompt for job in log.jobs
        ], seed
        evicted += sum(cache.evicted for cache in admission.caches)
        rechecks += admission.rechecks
        if seed % 25 == 0:
            outcome = setting.judged(log)
            assert not isinstance(outcome, str), (seed, outcome)
            assert outcome.error_s == 0, seed
            replayed += 1
    # The traces did press.
    assert evicted > 10_000
    assert rechecks > 10
    assert replayed == 40
