"""V-shaped schedules against closed forms and figures that others computed (linear growth of equal chunks)."""

from __future__ import annotations

from itertools import product

import pytest

from formulations.bounds import TimeBounds
from formulations.scope import plain_scope
from formulations.tables import StageTables
from instances.check import check
from instances.instance import Instance
from instances.plan import Plan, Schedule
from solver.evaluate import Evaluator
from solver.simulation.replay import Bubbles, Replay
from tests.tiny import line

V_SCHEDULES: tuple[Schedule, ...] = ("vpp", "vpp-async", "vpp-packed")


def growing(
    dies: int, chunks: int, growth: float, *, requests: int = 1, hand_off: float = 0.0, window: int | None = None
) -> Instance:
    """Two layers a die. Chunk times rise linearly, the last takes ``growth`` times as long as the first.

    With t = X + pair*(2p + 1) for chunks of one token, (X + 2M - 1) / (X + 1) = growth. ``hand_off`` is the latency of
    a hop, as a share of the first chunk's time on a virtual stage.
    """
    constant = (2 * chunks - 1 - growth) / (growth - 1)
    return line(
        [2] * dies,
        fitted={"chunk_s": constant, "pair_s": 1},
        hardware={"hop_latency_s": hand_off * (constant + 1) / (2 * dies)},
        workload={"requests": requests, "tokens": chunks},
        pipeline={"layers": "balanced", "max_chunks": chunks, "max_in_flight": window},
    )


def plan_of(instance: Instance, schedule: Schedule, chunks: int) -> Plan:
    """Equal chunks on the row of dies."""
    dies = tuple((0, column) for column in range(instance.pipeline.stages))
    tokens = instance.workload.uncached_counts[0]
    plain = schedule == "chunked"
    plan = Plan(
        instance=instance.fingerprint,
        batch=1,
        layers=(2,) * len(dies) if plain else (1,) * (2 * len(dies)),
        placement=dies if plain else dies + dies[::-1],
        chunks={str(tokens): (tokens // chunks,) * chunks},
        schedule=schedule,
    )
    assert all(finding.ok for finding in check(instance, plan))
    return plan


def _replay(instance: Instance, schedule: Schedule) -> Replay:
    return Evaluator(instance).replay(plan_of(instance, schedule, instance.pipeline.max_chunks))


def _bubbles(instance: Instance, schedule: Schedule) -> Bubbles:
    bubbles = _replay(instance, schedule).bubbles
    assert bubbles is not None
    return bubbles


def _percent(instance: Instance, schedule: Schedule) -> float:
    share = _bubbles(instance, schedule).makespan
    assert share is not None
    return round(100 * share, 2)


MILD = [(2, 22, 2.9), (2, 22, 11.5), (4, 8, 1.6), (4, 16, 2.4), (8, 8, 1.6), (8, 32, 3.8)]


@pytest.mark.parametrize(("dies", "chunks", "growth"), MILD)
def test_the_bubble_of_a_plain_pipeline_grows_with_growth(dies: int, chunks: int, growth: float) -> None:
    # Makespan = sum T + (N-1) max T, with sum T = M (T_1 + T_M)/2: bubble (N-1)*2g / (M(1+g) + 2g(N-1)).
    share = (dies - 1) * 2 * growth / (chunks * (1 + growth) + 2 * growth * (dies - 1))
    assert _bubbles(growing(dies, chunks, growth), "chunked").makespan == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("schedule", V_SCHEDULES)
@pytest.mark.parametrize(("dies", "chunks", "growth"), MILD)
def test_the_bubble_of_a_v_does_not(dies: int, chunks: int, growth: float, schedule: Schedule) -> None:
    # Makespan = sum T + (N-1)(tau_1 + tau_M), tau = T/2 on a virtual stage: bubble (N-1)/(M+N-1).
    share = (dies - 1) / (chunks + dies - 1)
    assert _bubbles(growing(dies, chunks, growth), schedule).makespan == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize(
    ("dies", "chunks", "share"), [(2, 22, None), (4, 16, None), (4, 22, None), (4, 32, None), (8, 32, 18.51)]
)
def test_chunks_of_1_5_seconds_and_half_a_second_more_each(dies: int, chunks: int, share: float | None) -> None:
    # T_k = 1 + k/2, one request, no transfers. Plain: 2g(N-1) / (M(1+g) + 2g(N-1)) with g = T_M/T_1. A V: at least
    # (N-1)/(M+N-1), and that unless early growth is steep for so many dies.
    growth = (1 + chunks / 2) / 1.5
    instance = growing(dies, chunks, growth)
    plain, v_shaped = (_bubbles(instance, schedule).makespan for schedule in ("chunked", "vpp-async"))
    assert v_shaped is not None
    drain = 2 * growth * (dies - 1)
    assert plain == pytest.approx(drain / (chunks * (1 + growth) + drain), abs=1e-9)
    if share is None:
        assert v_shaped == pytest.approx((dies - 1) / (chunks + dies - 1), abs=1e-9)
    else:
        assert v_shaped > (dies - 1) / (chunks + dies - 1)
        assert round(100 * v_shaped, 2) == share


@pytest.mark.parametrize(
    ("dies", "chunks", "growth", "plain", "v_shaped", "fold"),
    [
        (4, 16, 16, 26.09, 16.56, 1.09),
        (4, 32, 16.5, 15.02, 8.65, 0.09),
        (8, 16, 8.5, 43.91, 32.74, 4.70),
        (8, 32, 32, 29.79, 19.27, 1.95),
        (16, 32, 32, 47.62, 36.23, 9.04),
    ],
)
def test_steep_growth(dies: int, chunks: int, growth: float, plain: float, v_shaped: float, fold: float) -> None:
    # A structural model of the published schedule gives these percentages; the fold die's is its idle share between
    # its first start and its last end.
    instance = growing(dies, chunks, growth)
    assert (_percent(instance, "chunked"), _percent(instance, "vpp-async")) == (plain, v_shaped)
    replayed = _replay(instance, "vpp-async")
    program, run = replayed.program, replayed.run
    tasks = program.die_tasks[program.die_ptr[-2] :]
    span = run.end_ps[tasks[-1]] - run.start_ps[tasks[0]]
    assert round(100 * (1 - program.duration_ps[tasks].sum() / span), 2) == fold


@pytest.mark.parametrize(("hand_off", "shares"), [(0.5, (7.69, 9.17, 4.81)), (1.0, (7.91, 13.54, 5.26))])
def test_hand_offs_are_hidden_by_the_swapped_order(hand_off: float, shares: tuple[float, ...]) -> None:
    # The same model with a time for each hand-over between dies: plain, vpp, vpp-async.
    instance = growing(2, 22, 8, hand_off=hand_off)
    assert tuple(_percent(instance, schedule) for schedule in ("chunked", "vpp", "vpp-async")) == shares


@pytest.mark.parametrize(("dies", "alone", "packed"), [(2, 4.35, 2.94), (4, 12.0, 7.04)])
def test_packing_fills_the_drain_with_the_next_request(dies: int, alone: float, packed: float) -> None:
    instance = growing(dies, 22, 8, requests=4)
    assert (_percent(instance, "vpp-async"), _percent(instance, "vpp-packed")) == (alone, packed)


@pytest.mark.parametrize(("window", "share"), [(4, 17.50), (8, 12.00), (None, 5.71)])
def test_a_window_opens_bubbles_between_requests(window: int | None, share: float) -> None:
    # Four equal requests, T_k = 1 + k/2, 22 chunks on four dies: the last chunk takes 12/1.5 = 8 times the first.
    assert _percent(growing(4, 22, 8, requests=4, window=window), "chunked") == share


def test_a_v_beats_the_best_plain_cuts() -> None:
    # N = 4, 24 quanta, t = 1 + c + 0.02(2pc + c^2). 12 chunks of 2: sum T = 12 + 24 + 0.02*576 = 47.52, shared by the
    # dies; T_1 = 3.08, T_M = 1 + 2 + 0.02*(2*22*2 + 4) = 4.84: 47.52/4 + 3*(3.08 + 4.84)/8 = 14.85. No plain cuts are
    # better than 15.26, so the plain bound must not be compared with V plans.
    instance = line(
        [2] * 4,
        fitted={"chunk_s": 1, "token_s": 1, "pair_s": 0.02},
        workload={"requests": 1, "tokens": 24},
        pipeline={"layers": "balanced", "max_chunks": 24},
    )
    bound_s = TimeBounds(instance, StageTables(instance)).batch(1).bound_s
    assert bound_s == pytest.approx(15.26)
    for schedule in V_SCHEDULES:
        plan = plan_of(instance, schedule, 12)
        assert Evaluator(instance).value(plan) == pytest.approx(14.85)
        assert not plain_scope(instance).contains(plan)
    assert plain_scope(instance).contains(plan_of(instance, "chunked", 12))


@pytest.mark.parametrize(("dies", "chunks"), [(1, 3), (2, 5), (3, 8), (4, 16), (4, 4), (4, 2)])
def test_kv_peaks(dies: int, chunks: int) -> None:
    # In halves of a chunk (one virtual stage's share): when the last head starts, vpp-async has run M - 2d - 1 tails
    # (d = N-1-r), whose KV all stays until the wave ends there: 2M - 2d - 1 halves. vpp has run one tail more, but for
    # the fold die. Later all M tails are there. The plain schedule has 2M halves everywhere.
    instance = growing(dies, chunks, 2)
    more_tails: tuple[tuple[Schedule, int], ...] = (("vpp-async", 0), ("vpp", 1))
    for schedule, more in more_tails:
        for r, held in enumerate(_kv_halves(_replay(instance, schedule))):
            away = dies - 1 - r
            tails = chunks - 2 * away - 1 + (more if away else 0)
            assert held == max(chunks + tails, chunks)
    assert _kv_halves(_replay(instance, "chunked")) == [2 * chunks] * dies


def _kv_halves(replayed: Replay) -> list[float]:
    """Most KV on each die, in halves of a chunk: 2 bytes, those of one token in one layer."""
    program, run = replayed.program, replayed.run
    held = [program.bytes_of(units) / 2 for units in run.peak_units - program.static_units]
    assert replayed.peak_memory_bytes == [program.bytes_of(run.peak_units[die]) for die in program.die_of_stage()]
    return held


@pytest.mark.parametrize("schedule", V_SCHEDULES)
def test_the_window_rule_is_exact(schedule: Schedule) -> None:
    # The checker refuses a window if and only if the replay would not end; with two waves.
    for dies, chunks, window in product((1, 2, 3, 4), (1, 2, 3, 5, 8), (1, 2, 3, 4, 5, 6, 7)):
        instance = line(
            [2] * dies,
            fitted={"chunk_s": 1},
            workload={"requests": 2, "tokens": chunks},
            pipeline={"layers": "balanced", "max_chunks": chunks, "max_in_flight": window},
        )
        row = tuple((0, column) for column in range(dies))
        plan = Plan(
            instance=instance.fingerprint,
            batch=1,
            layers=(1,) * (2 * dies),
            placement=row + row[::-1],
            chunks={str(chunks): (1,) * chunks},
            schedule=schedule,
        )
        refused = {finding.rule for finding in check(instance, plan) if not finding.ok}
        assert refused <= {"v_window"}
        assert (Evaluator(instance).value(plan) is None) == bool(refused), (dies, chunks, window)


def test_hand_over_inside_the_fold_die_takes_nothing() -> None:
    # One chunk, links of 1 byte/s: activations of 2 bytes/token cross from stage 0 to 1 and from 2 to 3 in 4*2 s each,
    # not from 1 to 2, which share a die.
    instance = line(
        [2, 2],
        fitted={"chunk_s": 4},
        hardware={"link_bytes_per_s": 1},
        workload={"requests": 1, "tokens": 4},
        pipeline={"layers": "balanced"},
    )
    replayed = Evaluator(instance).replay(plan_of(instance, "vpp-async", 1))
    assert replayed.run.start_ps.tolist() == [0, 9 * 10**12, 10 * 10**12, 19 * 10**12]
    assert [(link.name, link.size_bytes) for link in replayed.links] == [("(0,0)->(0,1)", 8), ("(0,1)->(0,0)", 8)]
