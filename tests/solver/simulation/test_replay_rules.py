"""Each rule of the replay in the smallest case that shows it (spec section 3); the other files try their corners.

Links carry 1 byte/s without latency unless a case says otherwise.
"""

from __future__ import annotations

from solver.simulation.program_file import replay_document
from tests.solver.simulation.documents import line, run_document, spill, times_s


def test_die_serial() -> None:
    # One die, two waves of chunks of 3 and 1 s: one after the other.
    start, end = times_s(line([[3, 1]], waves=2))
    assert list(start.values()) == [0, 3, 4, 7]
    assert list(end.values()) == [3, 4, 7, 8]


def test_activation_ready() -> None:
    # The wave arrives at 1 and runs until 3; its 3 bytes are there at 6.
    start, _ = times_s(line([[2], [1]], activation_bytes=[3], arrivals_s=[1]))
    assert start[0, 0, 0] == 1
    assert start[0, 1, 0] == 6


def test_in_flight_window() -> None:
    # Chunk 0 leaves stage 1 at 2 + 3; only then may chunk 1 enter. With two inside it enters at 2.
    for window, entered in ((1, 5), (2, 2)):
        start, _ = times_s(line([[2, 1], [3, 4]], max_in_flight=window))
        assert start[0, 0, 1] == entered


def test_memory_admission() -> None:
    # Stage 1 keeps 1 byte of its chunk 0 at stage 0 until its wave ends. Stage 0 has room for 2 bytes: its second wave
    # takes 1 at 2, and 1 more only when stage 1 is done, at 1 + 1 + 5 = 7 (without a limit, at 3).
    kept = [spill(1, 0, 0, 1)]
    hosted = line([[1, 1], [1, 5]], waves=2, kv_bytes=[[1, 1], [1, 1]], spill=kept, serve_fraction=0)
    assert times_s(hosted)[0][1, 0, 1] == 3
    assert times_s({**hosted, "capacity_bytes": [2, 9]})[0][1, 0, 1] == 7


def test_spill_write() -> None:
    # Chunk 0 ends at 1; its 2 bytes are written until 3, and free their home then: chunk 1 needs one of them.
    written = line([[1, 1], [9, 1]], kv_bytes=[[2, 1], [0, 0]], spill=[spill(0, 0, 1, 2)], capacity_bytes=[2, 9])
    assert times_s(written)[0][0, 0, 1] == 3
    # A creditor without room never grants it.
    assert replay_document({**written, "capacity_bytes": [2, 1]})["deadlock"]


def test_remote_fetch() -> None:
    # Written 2 to 4, so fetched 4 to 6 by chunk 1, which starts at 2 and computes until 3.
    served = line([[2, 1], [9, 1]], kv_bytes=[[2, 0], [0, 0]], spill=[spill(0, 0, 1, 2)])
    assert times_s(served)[1][0, 0, 1] == 6
    # Without overlap it computes from 6 on.
    assert times_s({**served, "overlap": False})[1][0, 0, 1] == 7


def test_serve_stall() -> None:
    # Stage 1 computes from 2, stands still while it serves from 4 to 6, and ends at 2 + 9 + 2.
    served = line([[2, 1], [9, 1]], kv_bytes=[[2, 0], [0, 0]], spill=[spill(0, 0, 1, 2)])
    assert times_s(served)[1][0, 1, 0] == 13
    _, outcome = run_document(served)
    assert (outcome.stall_ps / 1e12).tolist() == [0, 2]


def test_link_fifo() -> None:
    # 4 bytes from 1 to 5, with a latency of 2 there at 7; 1 byte, asked for at 2, from 5 to 6, there at 8.
    start, _ = times_s(line([[1, 1], [0, 0]], activation_bytes=[4, 1], hop_latency_s=2))
    assert start[0, 1, 0] == 7
    assert start[0, 1, 1] == 8


def test_release() -> None:
    # Two bytes a wave on a die of two: the next wave starts when the last chunk ends, at 2.
    document = line([[1, 1]], waves=2, kv_bytes=[[1, 1]], capacity_bytes=[2])
    assert times_s(document)[0][1, 0, 0] == 2
    _, outcome = run_document(document)
    assert outcome.peak_units.tolist() == [2]


def test_deadlock() -> None:
    found = replay_document(line([[1, 1]], kv_bytes=[[1, 1]], capacity_bytes=[1]))
    assert (found["deadlock"], found["stage"], found["bytes"]) == (True, 0, 1)
    assert not replay_document(line([[1, 1]], kv_bytes=[[1, 1]], capacity_bytes=[2]))["deadlock"]
