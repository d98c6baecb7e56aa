"""What a replay reports: latencies, percentiles, bubbles, traffic."""

from __future__ import annotations

from typing import Any

import pytest

from solver.simulation.program_file import read_program
from solver.simulation.replay import Replay, replay
from tests.solver.simulation.documents import line, spill


def _replay(compute_s: list[list[float]], arrivals_s: list[list[float]], **changes: Any) -> Replay:
    document = line(compute_s, **changes) | {"arrivals_s": [max(wave) for wave in arrivals_s]}
    return replay(read_program(document), arrivals_s)


def test_latency_counts_from_the_own_arrival() -> None:
    # The wave starts at 3 and ends at 5; its requests came at 0, 1 and 3. The next ends at 7, alone, arrived at 4.
    found = _replay([[2]], [[0, 1, 3], [4]])
    assert found.latency_s is not None
    assert found.completion_s is not None
    assert found.latency_s.tolist() == [5, 4, 2, 3]
    assert found.completion_s.tolist() == [5, 7]
    assert found.mean_latency_s == 3.5
    assert found.makespan_s == 7
    assert found.throughput_rps == 4 / 7


def test_percentiles_are_nearest_rank() -> None:
    # Latencies 1 to 20 (one wave a second): ranks 10, 19 and ceil(19.8) = 20.
    found = _replay([[1]], [[0.0]] * 20)
    assert (found.p50_latency_s, found.p95_latency_s, found.p99_latency_s) == (10, 19, 20)


def test_bubbles_of_a_full_pipeline() -> None:
    # Two dies busy for 2 s each, die 0 from 0 to 2, die 1 from 1 to 3. Makespan: 1 - 4 / (2 * 3). Each die is busy
    # from its first start to its last end, and in [1, 2] both are.
    bubbles = _replay([[1, 1], [1, 1]], [[0]]).bubbles
    assert bubbles is not None
    assert bubbles.makespan == pytest.approx(1 / 3)
    assert bubbles.span == 0
    assert bubbles.steady == 0


def test_bubbles_of_unequal_stages() -> None:
    # Die 0: 0 to 1, 1 to 2; die 1: 1 to 4, 4 to 7. Busy 2 + 6 = 8 of 2 * 7; spans 2 + 6; in [1, 2] both busy.
    bubbles = _replay([[1, 1], [3, 3]], [[0]]).bubbles
    assert bubbles is not None
    assert bubbles.makespan == pytest.approx(6 / 14)
    assert (bubbles.span, bubbles.steady) == (0, 0)
    # The other way round: die 0: 0 to 3, 3 to 6; die 1: 3 to 4, 6 to 7. Spans 6 + 4; in [3, 6] die 1 is busy 1 of 3.
    bubbles = _replay([[3, 3], [1, 1]], [[0]]).bubbles
    assert bubbles is not None
    assert bubbles.span == pytest.approx(2 / 10)
    assert bubbles.steady == pytest.approx(2 / 6)


def test_no_steady_phase() -> None:
    # One chunk on three stages: the last die starts at 2, the first ends at 1.
    bubbles = _replay([[1], [1], [1]], [[0]]).bubbles
    assert bubbles is not None
    assert bubbles.steady is None


def test_memory_stalls_and_traffic() -> None:
    # 2 bytes written from 2 to 4 and fetched from 4 to 6, over one hop each; activations are empty.
    found = _replay([[2, 5], [9, 1]], [[0]], kv_bytes=[[2, 1], [0, 0.5]], spill=[spill(0, 0, 1, 2)])
    # Stage 0 holds 2, and 3 from 2 to 4; stage 1 hosts 2 until stage 0 is done at 7, and starts chunk 1 at 13.
    assert found.peak_memory_bytes == [3, 2]
    assert found.stall_s == [0, 2]
    assert {link.name: (link.size_bytes, link.busy_s) for link in found.links} == {
        "(0,0)->(0,1)": (2, 2),
        "(0,1)->(0,0)": (2, 2),
    }
    assert found.byte_hops == 4
    assert found.host_peak_bytes == [0, 0]
    assert found.reason is None


def test_after_a_deadlock_times_are_unknown() -> None:
    found = _replay([[1, 1]], [[0]], kv_bytes=[[1, 1]], capacity_bytes=[1])
    assert found.deadlock
    assert found.reason is not None
    assert "stage 0 (wave 0, chunk 1) waits for 1 bytes of memory" in found.reason
    unknown = (found.makespan_s, found.mean_latency_s, found.p95_latency_s, found.throughput_rps, found.bubbles)
    assert unknown == (None,) * 5
    assert found.latency_s is None
    assert found.completion_s is None


def test_every_wave_needs_its_requests() -> None:
    program = read_program(line([[1]], waves=2))
    with pytest.raises(ValueError, match="each of the 2 waves"):
        replay(program, [[0.0]])
