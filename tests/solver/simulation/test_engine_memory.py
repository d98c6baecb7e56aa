"""Memory makes tasks and writes wait (rules 4, 5, 10), and sometimes for ever (rule 11)."""

from __future__ import annotations

from dataclasses import replace

from solver.simulation.engine import run
from solver.simulation.program_file import read_program, replay_document
from solver.simulation.waiting import describe
from tests.solver.simulation.documents import line, run_document, spill, times_s

# Stage 1 keeps chunk 0 at stage 0, which has room for 2 bytes.
HOSTED = line(
    [[1, 1], [1, 5]],
    waves=2,
    kv_bytes=[[1, 1], [1, 1]],
    spill=[spill(1, 0, 0, 1)],
    capacity_bytes=[2, 9],
)


def test_a_die_waits_for_what_it_hosts() -> None:
    # At 2 stage 0 is full, and stage 1's write waits an instant, until stage 0 ends its wave. Stage 0's next wave has
    # room for chunk 0 (2 to 3), and for chunk 1 only when stage 1 ends its wave at 2 + 5 = 7.
    start, end = times_s(HOSTED)
    assert start[1, 0, 0] == 2
    assert end[0, 1, 1] == 7
    assert start[1, 0, 1] == 7
    # Stage 1 runs chunk 0 of wave 1 from 7 to 8; its 1 byte is written 8 to 9, fetched 9 to 10 for chunk 1 (8 to 13).
    assert end[1, 1, 1] == 13


def test_peaks_and_memory_over_time() -> None:
    _, outcome = run_document(HOSTED, traced=True)
    assert outcome.peak_units.tolist() == [2, 2]
    assert outcome.events is not None
    seconds = [(time // 10**12, used, hosted) for time, die, used, hosted in outcome.events.memory.tolist() if die == 0]
    assert seconds == [
        (0, 0, 0),
        (0, 1, 0),
        (1, 2, 0),
        (2, 0, 0),  # stage 0 ends its wave ...
        (2, 1, 1),  # ... which lets stage 1's write in
        (2, 2, 1),
        (7, 1, 0),  # stage 1 ends its wave
        (7, 2, 0),
        (8, 0, 0),  # stage 0 ends wave 1; the write of stage 1, asked for just before, is let in
        (8, 1, 1),
        (13, 0, 0),
    ]


def test_a_spilled_chunk_leaves_its_home_on_arrival() -> None:
    # 2 bytes written from 1 to 3; chunk 1 needs one of them at 1 and gets it at 3.
    document = line([[1, 1], [9, 1]], kv_bytes=[[2, 1], [0, 0]], spill=[spill(0, 0, 1, 2)], capacity_bytes=[2, 9])
    assert times_s(document)[0][0, 0, 1] == 3


def test_exactly_full_is_allowed_and_a_release_always_passes() -> None:
    # Takes 2, gives 1 back, takes 1: never more than 2; static memory of 1 takes the rest.
    document = line([[1, 1, 1]], kv_bytes=[[2, -1, 1]], capacity_bytes=[3], static_bytes=[1])
    _, outcome = run_document(document, traced=True)
    assert not outcome.deadlock
    assert outcome.peak_units.tolist() == [3]
    assert outcome.events is not None
    assert outcome.events.memory[:, 2].tolist() == [1, 3, 2, 3, 1]


def test_decimal_bytes_are_exact() -> None:
    # 0.1 + 0.2 fits 0.3, which doubles deny; 0.1 + 0.2 + 0.0000001 does not.
    assert not replay_document(line([[1, 1]], kv_bytes=[[0.1, 0.2]], capacity_bytes=[0.3]))["deadlock"]
    assert replay_document(line([[1, 1]], kv_bytes=[[0.1, 0.2000001]], capacity_bytes=[0.3]))["deadlock"]


def test_a_deadlock_names_stages_and_bytes() -> None:
    # Room for two chunks of 1.5 bytes, a third never fits: 3 of 3.5 bytes are taken, 1 is missing.
    program, outcome = run_document(line([[1, 1, 1], [1, 1, 1]], kv_bytes=[[1.5] * 3] * 2, capacity_bytes=[3.5, 9]))
    assert outcome.deadlock
    assert outcome.end_ps.tolist()[-2:] == [-1, -1]
    text = describe(program, outcome.waiting, 2)
    assert text == (
        "2 tasks never ran: stage 0 (wave 0, chunk 2) waits for 1.5 bytes of memory, 1 more than its 3.5 bytes have "
        "free; stage 1 (wave 0, chunk 2) waits for its activations"
    )


def test_a_deadlock_in_a_document() -> None:
    found = replay_document(line([[1, 1], [1, 1]], kv_bytes=[[1, 1]] * 2, capacity_bytes=[1, 9]))
    assert (found["deadlock"], found["stage"], found["bytes"]) == (True, 0, 1)
    assert [(row["stage"], row["reason"]) for row in found["waiting"]] == [(0, "memory"), (1, "activation")]


def test_a_full_window_is_named() -> None:
    # One chunk inside, and stage 1 can never take it: chunk 1 waits for the window.
    document = line([[1, 1], [1, 1]], kv_bytes=[[0, 0], [2, 0]], capacity_bytes=[9, 1], max_in_flight=1)
    program, outcome = run_document(document)
    assert [(one.reason, one.units, one.missing_units) for one in outcome.waiting] == [
        ("memory", 2, 1),
        ("window", 0, 0),
    ]
    assert "stage 0 (wave 0, chunk 1) waits for one of the 1 chunks in flight to leave" in describe(
        program, outcome.waiting, 3
    )


def test_static_memory_beyond_capacity_keeps_even_empty_tasks_out() -> None:
    _, outcome = run_document(line([[1]], static_bytes=[2], capacity_bytes=[1]))
    assert outcome.deadlock
    assert outcome.waiting[0].missing_units == 1


def test_runs_do_not_change_the_program() -> None:
    program = read_program(HOSTED)
    first, second = run(program), run(program)
    assert first.end_ps.tolist() == second.end_ps.tolist()
    assert run(replace(program, max_in_flight=1)).end_ps.tolist() != first.end_ps.tolist()
