"""The witness gives the worked replays: all of them where the shared folder is present, eight restated here."""

from __future__ import annotations

import json
from typing import Any

from tests.reference.simulator import simulate
from tests.shared_data import shared_path

SQUARE = [[0, 0], [0, 1], [1, 1], [1, 0]]


def _assert_same(document: dict[str, Any], expected: dict[str, Any]) -> None:
    result = simulate(document)
    assert {key: result.get(key) for key in expected} == expected


def test_every_worked_replay_is_reproduced() -> None:
    examples = sorted(shared_path("spec/examples").glob("*.json"))
    assert len(examples) == 28
    for path in examples:
        example = json.loads(path.read_text(encoding="utf-8"))
        _assert_same(example["input"], example["expected"])


def _square(**changes: Any) -> dict[str, Any]:
    """Four stages round a 2x2 mesh, chunks of 3, 4 and 5 seconds with one byte of KV each, free activations."""
    return {
        "die_of": SQUARE,
        "compute_s": [[3, 4, 5]] * 4,
        "activation_bytes": [0, 0, 0],
        "kv_bytes": [[1.0, 1.0, 1.0]] * 4,
        "arrivals_s": [0.0],
        "link_bytes_per_s": 1.0,
        "hop_latency_s": 0.0,
    } | changes


def test_flow_shop() -> None:
    # Equal stages: end of (s, i) = sum of t up to i + s*max of t up to i; the last is 12 + 3*5 = 27. The second wave
    # follows without a gap at stage 0, 12 s later: 27 + 12 = 39. Nothing leaves before its wave ends: peak 3 bytes.
    _assert_same(
        _square(arrivals_s=[0.0, 0.0]),
        {
            "deadlock": False,
            "makespan_s": 39.0,
            "latency_s": [27.0, 39.0],
            "peak_memory_bytes": [3.0, 3.0, 3.0, 3.0],
            "stall_s": [0.0, 0.0, 0.0, 0.0],
        },
    )


def test_spill_and_stall() -> None:
    # Stage 0 writes chunk 0 (1 byte) to stage 2 in 3..4; its chunk 1, started at 3, fetches it in 4..5 (ready when the
    # write has arrived): stage 2 is idle, blocked until 5, and loses nothing. Chunk 2, started at 7, fetches in 7..8:
    # stage 2 runs chunk 0 from 6 and ends at 6 + 3 + 1 = 10 in place of 9. Stage 3 starts it at 10; chunk 1 arrives at
    # 15 as ever, so the makespan stays 27. Stage 0 never holds more than 2 bytes: chunk 0 has left at 4.
    start = {"0,2,0": 6.0, "0,2,1": 11.0, "0,3,0": 10.0, "0,3,1": 15.0, "0,3,2": 22.0}
    end = {"0,0,2": 12.0, "0,2,0": 10.0, "0,2,1": 15.0, "0,3,0": 13.0, "0,3,2": 27.0}
    document = _square(spill=[{"stage": 0, "chunk": 0, "creditor": 2, "bytes": 1.0}])
    result = simulate(document)
    assert {label: result["start_s"][label] for label in start} == start
    assert {label: result["end_s"][label] for label in end} == end
    _assert_same(document, {"stall_s": [0.0, 0.0, 2.0, 0.0], "peak_memory_bytes": [2.0, 3.0, 3.0, 3.0]})


def test_deadlock() -> None:
    # Two bytes hold two chunks: 2 of 3 chunks run at each of 4 stages, in the first of two waves: 24 - 8 = 16 remain.
    # The third chunk waits for its one byte at stage 0, and nowhere else: it never gets further.
    _assert_same(
        _square(arrivals_s=[0.0, 0.0], capacity_bytes=[2, 2, 2, 2]),
        {"deadlock": True, "says": "16 tasks never ran", "waiting": [{"stage": 0, "bytes": 1.0}]},
    )


def test_spilled_bytes_leave_home_on_arrival() -> None:
    # Two hops of 0.1 s, 10 bytes/s. (0,0,0) ends at 2.1 with 3 bytes at home; its write of 2 arrives at
    # 2.1 + 0.2 + 0.2 = 2.5. Chunk 1 needs 3 of 4 bytes: 3 + 3 > 4 before 2.5, 1 + 3 = 4 then. Its fetch holds the links
    # in 2.5..2.7 and stalls (0,1,0), which started at 2.1 + 0.2 = 2.3: end 2.3 + 2.8 + 0.2 = 5.3. (0,0,1) ends at 7.4,
    # its 2 bytes arrive at 7.4 + 0.2 + 0.2 = 7.8, the last second ends at 8.8. Stage 1 peaks at its own 3 + 3 = 6: the
    # 2 hosted ones went at 7.4.
    _assert_same(
        {
            "die_of": [[1, 0], [0, 1]],
            "compute_s": [[2.1, 4.9], [2.8, 1.0]],
            "activation_bytes": [0, 2],
            "kv_bytes": [[3, 3], [3, 3]],
            "arrivals_s": [0],
            "link_bytes_per_s": 10,
            "hop_latency_s": 0.1,
            "spill": [{"stage": 0, "chunk": 0, "creditor": 1, "bytes": 2}],
            "capacity_bytes": [4, 8],
        },
        {
            "makespan_s": 8.8,
            "peak_memory_bytes": [4.0, 6.0],
            "stall_s": [0.0, 0.2],
            "start_s": {"0,0,0": 0.0, "0,0,1": 2.5, "0,1,0": 2.3, "0,1,1": 7.8},
            "end_s": {"0,0,0": 2.1, "0,0,1": 7.4, "0,1,0": 5.3, "0,1,1": 8.8},
        },
    )


def test_waiting_write_goes_before_the_own_task() -> None:
    # At 7.5 stage 1 wants to write 2 bytes to stage 0, which holds 3 + 1 = 4 of 4: it queues. At 8 stage 0 ends its
    # wave and frees 4: the write is granted first, so wave 1 (3 bytes, 2 + 3 > 4) waits until stage 1 ends its wave.
    # That is 9.5 + 5 = 14.5: (0,1,1) starts when 2 bytes sent at 8 arrive, 8 + 1 + 0.5; its fetch (ready 9.5, there at
    # 11) hides. Wave 1 repeats it: (1,0,0) 14.5..18.5, (1,0,1) ends 22.5, the write waits from 22 to 22.5, (1,1,1)
    # runs 24..29. Latency of wave 1 is 29 - 3 = 26. Each fetch stalls stage 0 for 2/2 = 1 s.
    _assert_same(
        {
            "die_of": [[0, 0], [0, 1]],
            "compute_s": [[4, 4], [3, 5]],
            "activation_bytes": [0, 2],
            "kv_bytes": [[3, 1], [3, 1]],
            "arrivals_s": [0, 3],
            "link_bytes_per_s": 2,
            "hop_latency_s": 0.5,
            "spill": [{"stage": 1, "chunk": 0, "creditor": 0, "bytes": 2}],
            "capacity_bytes": [4, 5],
        },
        {
            "latency_s": [14.5, 26.0],
            "peak_memory_bytes": [4.0, 3.0],
            "stall_s": [2.0, 0.0],
            "start_s": {
                "0,0,0": 0.0,
                "0,0,1": 4.0,
                "0,1,0": 4.5,
                "0,1,1": 9.5,
                "1,0,0": 14.5,
                "1,0,1": 18.5,
                "1,1,0": 19.0,
                "1,1,1": 24.0,
            },
        },
    )


def test_stall_while_the_task_waits_for_its_own_fetch() -> None:
    # No overlap, 1 byte takes 0.2 s, a hop 0.3 s. (0,0,1) starts at 2.7, its byte was written in 2.7..2.9, there at
    # 3.2, comes back in 3.2..3.4, there at 3.7: end 3.7 + 4.8 = 8.5. The service stalls (0,1,0): 3.0 + 1.2 + 0.2 = 4.4.
    # (0,0,2) starts at 8.5 and has its byte at 9.0. At 8.8 (0,1,1) starts and fetches from stage 0, which still waits
    # for its own fetch: the 0.2 s add in full, 9.0 + 2.8 + 0.2 = 12.0. (0,1,1) ends at 8.8 + 0.5 + 1.1 = 10.4, (0,1,2)
    # starts at 12.3 and ends at 12.3 + 0.5 + 2.5 = 15.3.
    _assert_same(
        {
            "die_of": [[0, 2], [0, 1]],
            "compute_s": [[2.7, 4.8, 2.8], [1.2, 1.1, 2.5]],
            "activation_bytes": [0, 0, 0],
            "kv_bytes": [[1, 3, 1], [1, 3, 1]],
            "arrivals_s": [0],
            "link_bytes_per_s": 5,
            "hop_latency_s": 0.3,
            "spill": [
                {"stage": 0, "chunk": 0, "creditor": 1, "bytes": 1},
                {"stage": 1, "chunk": 0, "creditor": 0, "bytes": 1},
            ],
            "overlap": False,
        },
        {
            "stall_s": [0.4, 0.4],
            "end_s": {"0,0,0": 2.7, "0,0,1": 8.5, "0,0,2": 12.0, "0,1,0": 4.4, "0,1,1": 10.4, "0,1,2": 15.3},
        },
    )


def test_a_task_that_waits_for_memory_does_not_hold_a_write_back() -> None:
    # (0,0,1) waits from 2: 2 + 2 > 3 until its chunk's write (2 bytes, 2..4) has arrived. At 3 stage 1 asks for 1 byte
    # there: 2 + 1 = 3 fits, no write waits, so it is granted. At 4 stage 0 holds 1 and (0,0,1) starts: 1 + 2 = 3. Its
    # fetch of 2 bytes takes 4..6 and stalls stage 1 for half of that, idle. Activation 6..8, (0,1,1) runs 8..13.
    _assert_same(
        {
            "die_of": [[0, 1], [0, 3]],
            "compute_s": [[2, 2], [1, 5]],
            "activation_bytes": [0, 2],
            "kv_bytes": [[2, 2], [2, 2]],
            "arrivals_s": [0],
            "link_bytes_per_s": 1,
            "hop_latency_s": 0,
            "spill": [
                {"stage": 0, "chunk": 0, "creditor": 1, "bytes": 2},
                {"stage": 1, "chunk": 0, "creditor": 0, "bytes": 1},
            ],
            "capacity_bytes": [3, 6],
            "serve_fraction": 0.5,
        },
        {
            "peak_memory_bytes": [3.0, 4.0],
            "stall_s": [0.5, 1.0],
            "start_s": {"0,0,0": 0.0, "0,0,1": 4.0, "0,1,0": 2.0, "0,1,1": 8.0},
            "end_s": {"0,0,0": 2.0, "0,0,1": 6.0, "0,1,0": 3.0, "0,1,1": 13.0},
        },
    )


def test_an_activation_of_zero_bytes_waits_for_its_links() -> None:
    # At 14 three tasks end: (0,2,0) first (chunk 0), so its write holds link (1,0)->(0,0) in 14..14.5; then (0,1,1),
    # on the link back, no delay; then (1,0,0), whose zero bytes need both (1,1)->(1,0) and the held link: 14.5. At 14.5
    # the fetch of (0,2,1) starts too and stalls stage 1 until 15 before its start is tried: (1,1,0) starts at 15.
    # (0,2,1) computes from the fetch's arrival: 15 + 4 = 19; wave 1: (1,1,1) ends 15 + 5 + 4 = 24, (1,2,0) 20..24,
    # written 24..24.5, back at 25, end 29.
    result = simulate(
        {
            "die_of": [[1, 1], [0, 0], [1, 0]],
            "compute_s": [[5, 4], [5, 4], [4, 4]],
            "activation_bytes": [0, 0],
            "kv_bytes": [[3, 1], [3, 1], [3, 1]],
            "arrivals_s": [0, 0],
            "link_bytes_per_s": 2,
            "hop_latency_s": 0,
            "spill": [{"stage": 2, "chunk": 0, "creditor": 1, "bytes": 1}],
            "overlap": False,
        }
    )
    assert result["start_s"]["1,1,0"] == 15.0
    assert result["latency_s"] == [19.0, 29.0]
    assert result["stall_s"] == [0.0, 1.0, 0.0]


def test_durations_are_rounded_to_picoseconds_once() -> None:
    # One byte at 3 bytes/s takes 333,333,333,333.33 ps -> ...333; two take 666,666,666,666.67 ps -> ...667. Both are
    # sent at 0 (no compute at stage 0) over the same link: 333,333,333,333 + 666,666,666,667 ps = 1 s exactly.
    document = {
        "die_of": [[0, 0], [0, 1]],
        "compute_s": [[0, 0], [0, 0]],
        "activation_bytes": [1, 2],
        "kv_bytes": [[0, 0], [0, 0]],
        "arrivals_s": [0],
        "link_bytes_per_s": 3,
        "hop_latency_s": 0,
    }
    start_ps = simulate(document)["start_ps"]
    assert start_ps["0,1,0"] == 333_333_333_333
    assert start_ps["0,1,1"] == 1_000_000_000_000
