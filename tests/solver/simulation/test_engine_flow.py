"""Compute alone, and compute with activations: flow shops with known answers (rules 1 to 3)."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from tests.solver.simulation.documents import line, times_s

TIMES = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def test_equal_stages_two_waves() -> None:
    # W * sum + (N - 1) * max = 2 * 6 + 2 * 3 = 18; the first wave is out at 6 + 2 * 3 = 12.
    _, end = times_s(line([[3, 1, 2]] * 3, waves=2))
    assert end[0, 2, 2] == 12
    assert end[1, 2, 2] == 18


@given(TIMES, st.integers(1, 4), st.integers(1, 3))
def test_proportionate_flow_shop(chunk_s: list[int], stages: int, waves: int) -> None:
    """End of chunk i at stage s is (sum up to i) + s * (largest up to i), waves concatenated."""
    _, end = times_s(line([[float(t) for t in chunk_s]] * stages, waves=waves))
    in_order = chunk_s * waves
    sums, largest = [*accumulate(in_order)], [*accumulate(in_order, max)]
    for number in range(len(in_order)):
        wave, chunk = divmod(number, len(chunk_s))
        for stage in range(stages):
            assert end[wave, stage, chunk] == sums[number] + stage * largest[number]


@given(st.data(), st.integers(2, 4), st.integers(1, 5), st.integers(1, 3))
def test_unequal_stages_with_activations(data: st.DataObject, stages: int, chunks: int, waves: int) -> None:
    """A max-plus recurrence: on a line each link carries the activations of one stage, in order."""
    seconds = st.integers(0, 5)
    compute = [data.draw(st.lists(seconds, min_size=chunks, max_size=chunks)) for _ in range(stages)]
    sent = data.draw(st.lists(st.integers(0, 3), min_size=chunks, max_size=chunks))
    arrivals = sorted(data.draw(st.lists(seconds, min_size=waves, max_size=waves)))
    latency = data.draw(st.integers(0, 2))
    document = line(
        [[float(t) for t in row] for row in compute],
        activation_bytes=sent,
        arrivals_s=arrivals,
        hop_latency_s=latency,
    )
    _, end = times_s(document)
    free = [0] * stages  # of each die
    link_free = [0] * stages  # of the link that leaves each die
    for wave, arrival in enumerate(arrivals):
        for chunk in range(chunks):
            ready = arrival
            for stage in range(stages):
                free[stage] = max(free[stage], ready) + compute[stage][chunk]
                assert end[wave, stage, chunk] == free[stage]
                link_free[stage] = max(link_free[stage], free[stage]) + sent[chunk]
                ready = link_free[stage] + latency


def test_a_window_of_one_lets_one_chunk_in_at_a_time() -> None:
    # Each chunk passes both stages before the next may enter: 2 + 3, then 1 + 4.
    start, end = times_s(line([[2, 1], [3, 4]], max_in_flight=1))
    assert start[0, 0, 1] == 5
    assert end[0, 1, 1] == 10


def test_a_wave_does_not_start_before_it_arrives() -> None:
    start, _ = times_s(line([[1], [1]], arrivals_s=[0.5, 7.25]))
    assert start[0, 0, 0] == 0.5
    assert start[1, 0, 0] == 7.25


def test_more_events_at_once_than_the_queue_has_room_for_at_first() -> None:
    # 500 activations are under way together: chunk i leaves at i + 1 and takes 1000 s.
    start, _ = times_s(line([[1.0] * 500, [0.0] * 500], hop_latency_s=1000))
    assert [start[0, 1, chunk] for chunk in range(500)] == [chunk + 1001 for chunk in range(500)]
