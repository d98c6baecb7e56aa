"""VPP against chunk size and against attention that stops growing: tables of `tests.performance`, as inequalities."""

from __future__ import annotations

from itertools import pairwise

import pytest

from solver.evaluate import Evaluator
from tests.performance.vpp_sensitivity import TOP_K, by_attention, by_chunk_size
from tests.solver.simulation.test_v_shape import plan_of
from tests.tiny import line

K = 1024


def test_24k_is_best_of_the_sizes_that_an_engine_would_try() -> None:
    # Of multiples of 8K the V is fastest with 24K (the study's finding), while the plain pipeline likes 16K better.
    points = {size: by_chunk_size(2, size) for size in (8 * K, 16 * K, 24 * K, 32 * K, 40 * K, 48 * K)}
    assert min(points, key=lambda size: points[size].v_s) == 24 * K
    assert min(points, key=lambda size: points[size].plain_s) == 16 * K


def test_it_is_so_for_its_short_last_chunk() -> None:
    # 512K = 21*24K + 8K. In equal chunks the bubble of two dies is 1/23: the short one takes away the drain.
    cut, equal = by_chunk_size(2, 24 * K), by_chunk_size(2, 24 * K, equal=True)
    assert equal.v_bubble == pytest.approx(1 / 23, abs=1e-4)
    assert cut.v_bubble == pytest.approx(0.0306, abs=1e-4)
    # The plain pipeline waits for its longest chunk, the one before the last, and gains nothing.
    assert cut.plain_s > equal.plain_s
    # 16K and 32K divide the length: their last chunk is the longest.
    for size in (16 * K, 32 * K):
        assert by_chunk_size(2, size).v_bubble == pytest.approx(1 / (512 * K // size + 1), abs=1e-4)


def test_a_last_chunk_of_a_third() -> None:
    # T_k = 1 + k/2 for 21 chunks and a last one of 12/3 = 4 on two dies: sum T = 136.5 + 4. The fold die starts after
    # 0.75 s and has the first 21 done 136.5 s later; then die 0 runs its second visits of chunks 21 and 22, 5.75 + 2 s,
    # the former while the fold die works on the last chunk: 4.5 s idle of 145. A structural model gives 3.10 % too.
    assert _bubble(2, [1 + k / 2 for k in range(1, 23)]) == pytest.approx(1 / 23)
    assert _bubble(2, [*(1 + k / 2 for k in range(1, 22)), 4]) == pytest.approx(4.5 / 145)


@pytest.mark.parametrize(("schedule", "share"), [("chunked", 0.1351), ("vpp-async", 0.0922)])
def test_where_chunks_stop_growing_the_plain_pipeline_improves(schedule: str, share: float) -> None:
    # Four dies, T_k = 1 + k/2 up to chunk 8, then 5: sum T = 26 + 14*5 = 96; plain 15/(96 + 15), V 9.75/(96 + 9.75).
    flat = [1 + min(k, 8) / 2 for k in range(1, 23)]
    assert _bubble(4, flat, schedule) == pytest.approx(share, abs=5e-5)
    # Growing to the end: sum T = 148.5, plain + 36, V + 20.25. The V saves 15.75 of 184.5 s, and 5.25 of 111 s above.
    growing = [1 + k / 2 for k in range(1, 23)]
    saved = [1 - (1 - _bubble(4, times, "chunked")) / (1 - _bubble(4, times, "vpp-async")) for times in (growing, flat)]
    assert saved == pytest.approx([15.75 / 184.5, 5.25 / 111])


def test_the_gain_shrinks_with_the_tokens_that_an_indexer_picks() -> None:
    gains = [by_attention(top_k).gain for top_k in TOP_K]
    assert all(more > less > 0 for more, less in pairwise(gains))
    assert gains[-1] < gains[0] / 2


def _bubble(dies: int, times: list[float], schedule: str = "vpp-async") -> float:
    """Of one request whose chunks take these times on a die."""
    instance = line(
        [2] * dies,
        costs={"kind": "table", "rows": [[1, prefix, dies * time] for prefix, time in enumerate(times)]},
        workload={"requests": 1, "tokens": len(times)},
        pipeline={"layers": "balanced", "max_chunks": len(times)},
    )
    plan = plan_of(instance, "chunked" if schedule == "chunked" else "vpp-async", len(times))
    metrics = Evaluator(instance).full(plan).metrics
    assert metrics is not None
    return metrics.bubble.makespan
