"""What the worked replays leave out: options, host tier, disabled parts, releases at a start, V-shaped orders."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reference.lowering import die_programs
from tests.reference.network import Transfer
from tests.reference.program import read_program
from tests.reference.simulator import replay, simulate


def _two_stages(first: list[int], second: list[int], **changes: Any) -> dict[str, Any]:
    """Two stages, one chunk of 1 s, 4 bytes of activations at 2 bytes/s, half a second a hop."""
    return {
        "die_of": [first, second],
        "compute_s": [[1], [1]],
        "activation_bytes": [4],
        "kv_bytes": [[1], [1]],
        "arrivals_s": [0],
        "link_bytes_per_s": 2,
        "hop_latency_s": 0.5,
    } | changes


def _path(transfer: Transfer) -> list[tuple[int, ...]]:
    return [transfer.links[0][0][1:], *(target[1:] for _, target in transfer.links)]


def test_cut_through_and_store_and_forward() -> None:
    # Two hops: 1 + 4/2 + 2*0.5 = 4 in one piece, 1 + 2*(4/2 + 0.5) = 6 one link after the other.
    assert simulate(_two_stages([0, 0], [1, 1]))["start_s"]["0,1,0"] == 4.0
    assert simulate(_two_stages([0, 0], [1, 1], store_and_forward=True))["start_s"]["0,1,0"] == 6.0


def test_store_and_forward_holds_one_link_at_a_time() -> None:
    held_ps = replay(_two_stages([0, 0], [1, 1], store_and_forward=True)).transfers[0].held_ps
    # Sent at 1: the first link is held for 4/2 = 2 s, the second from 3 + 0.5 on for 2 s.
    assert held_ps == ((1 * 10**12, 3 * 10**12), (3_500 * 10**9, 5_500 * 10**9))


@pytest.mark.parametrize(("routing", "corner"), [("xy", (0, 1)), ("yx", (1, 0))])
def test_routing_order(routing: str, corner: tuple[int, int]) -> None:
    # "xy" changes the column index first: (0,0) -> (0,1) -> (1,1).
    transfer = replay(_two_stages([0, 0], [1, 1], routing=routing)).transfers[0]
    assert _path(transfer) == [(0, 0), corner, (1, 1)]


def test_detour_around_a_disabled_link() -> None:
    # The link is dead both ways; the way left in a 2x2 mesh has three hops: 1 + 2 + 3*0.5 = 4.5.
    document = _two_stages([0, 0], [0, 1], disabled_links=[[[0, 1], [0, 0]]], rows=2, columns=2)
    simulator = replay(document)
    assert _path(simulator.transfers[0]) == [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert simulator.result()["start_s"]["0,1,0"] == 4.5


def test_detour_around_a_disabled_die_goes_east_first() -> None:
    # From (0,1) to (2,1) with (1,1) dead: east about and west about are equally short, east comes first.
    document = _two_stages([0, 1], [2, 1], disabled_dies=[[1, 1]], rows=3, columns=3)
    assert _path(replay(document).transfers[0]) == [(0, 1), (0, 2), (1, 2), (2, 2), (2, 1)]


def test_intact_routes_are_kept_beside_disabled_parts() -> None:
    # (0,0) -> (1,1) by the column first is intact; the dead die (1,0) is not on it.
    transfer = replay(_two_stages([0, 0], [1, 1], disabled_dies=[[1, 0]])).transfers[0]
    assert _path(transfer) == [(0, 0), (0, 1), (1, 1)]


def test_a_stage_that_cannot_be_reached_is_an_error() -> None:
    with pytest.raises(ValueError, match="no route"):
        simulate(_two_stages([0, 0], [0, 2], disabled_dies=[[0, 1]]))


def _spilling(**changes: Any) -> dict[str, Any]:
    """Stage 0 sends 4 bytes east and then writes 1 byte of chunk 0 south, to stage 2."""
    return {
        "die_of": [[0, 0], [0, 1], [1, 0]],
        "compute_s": [[1, 1], [1, 1], [1, 1]],
        "activation_bytes": [4, 4],
        "kv_bytes": [[1, 1], [1, 1], [1, 1]],
        "arrivals_s": [0],
        "link_bytes_per_s": 2,
        "hop_latency_s": 0.5,
        "spill": [{"stage": 0, "chunk": 0, "creditor": 2, "bytes": 1}],
    } | changes


def test_one_send_per_die() -> None:
    # The activation leaves at 1 and is delivered at 1 + 2 + 0.5 = 3.5. The write has its own link: it leaves at 1, or
    # at 3.5 if the die sends one thing at a time. It takes 0.5 + 0.5 s, then stage 2 sends it back: at 2, or at 4.5.
    write, fetch = (_of_kind(_spilling(), kind) for kind in ("write", "fetch"))
    assert (write.start_ps, fetch.start_ps) == (1 * 10**12, 2 * 10**12)
    write, fetch = (_of_kind(_spilling(one_send_per_die=True), kind) for kind in ("write", "fetch"))
    assert (write.start_ps, fetch.start_ps) == (3_500 * 10**9, 4_500 * 10**9)


def _of_kind(document: dict[str, Any], kind: str) -> Transfer:
    return next(transfer for transfer in replay(document).transfers if transfer.kind == kind)


def test_integer_ns_rounds_durations_up() -> None:
    # 1.2 ns of compute -> 2; 4 bytes at 3 bytes/ns = 1.33 ns -> 2; a hop of 0.1 ns -> 1: start 5 ns, end 7 ns.
    document = _two_stages([0, 0], [0, 1], compute_s=[[1.2e-9], [1.2e-9]], link_bytes_per_s=3e9, hop_latency_s=1e-10)
    result = simulate(document | {"integer_ns": True})
    assert (result["start_ps"]["0,1,0"], result["end_ps"]["0,1,0"]) == (5_000, 7_000)
    # Without it: 1200 + 1333 + 100 = 2633 ps.
    assert simulate(document)["start_ps"]["0,1,0"] == 2_633


def test_host_link_has_no_latency_and_stalls_nobody() -> None:
    # Written at 1, 1 byte at 4 bytes/s: there at 1.25; chunk 1 fetches it in 1.25..1.5 while it computes until 2.
    spill = [{"stage": 0, "chunk": 0, "creditor": "host", "bytes": 1}]
    simulator = replay(_spilling(spill=spill, host={"host_bytes": 1, "host_bytes_per_s": 4}))
    write, fetch = (next(item for item in simulator.transfers if item.kind == kind) for kind in ("write", "fetch"))
    assert (write.start_ps, write.arrival_ps) == (1 * 10**12, 1_250 * 10**9)
    assert (fetch.start_ps, fetch.arrival_ps) == (1_250 * 10**9, 1_500 * 10**9)
    assert simulator.result()["stall_s"] == [0.0, 0.0, 0.0]
    assert simulator.result()["end_s"]["0,0,1"] == 2.0


def test_each_die_has_its_own_host_memory() -> None:
    # One byte of host memory for each die: stages 0 and 1 both get theirs; the second wave of stage 0 waits for the
    # first to end there (at 2), so its own chunk 0 (2..3) finds the host free at 3.
    spill: list[dict[str, Any]] = [{"stage": s, "chunk": 0, "creditor": "host", "bytes": 1} for s in (0, 1)]
    host = {"host_bytes": 1, "host_bytes_per_s": 4}
    simulator = replay(_spilling(spill=spill, host=host, arrivals_s=[0, 0]))
    writes = [item for item in simulator.transfers if item.kind == "write"]
    assert [(item.source[1:], item.target[1:]) for item in writes].count(((0, 0), (0, 0))) == 2
    assert [item.ready_ps for item in writes if item.source[1:] == (0, 0)] == [1 * 10**12, 3 * 10**12]


def test_a_write_waits_for_room_at_the_host() -> None:
    # Two chunks of 1 byte, one byte of room: the second write waits until the wave ends at stage 0 and is cancelled.
    spill = [{"stage": 0, "chunk": chunk, "creditor": "host", "bytes": 1} for chunk in (0, 1)]
    simulator = replay(
        _spilling(
            spill=spill,
            host={"host_bytes": 1, "host_bytes_per_s": 4},
            compute_s=[[1, 1, 1]] * 3,
            activation_bytes=[0, 0, 0],
            kv_bytes=[[1, 1, 1]] * 3,
        )
    )
    assert [write.task.chunk for write in simulator.cancelled] == [1]
    assert sum(item.kind == "write" for item in simulator.transfers) == 1


def test_a_negative_amount_is_a_release_at_the_start() -> None:
    # Stage 1 holds 3 of 3 bytes when stage 0 wants to write 2 there (at 4): it queues. Chunk 1 of stage 1 starts at 4
    # too (its activations take no time) and gives 2 back: the write is granted at that start.
    document = _two_stages(
        [0, 0],
        [0, 1],
        compute_s=[[1, 3, 1], [1, 1, 1]],
        activation_bytes=[0, 0, 0],
        kv_bytes=[[2, 2, 2], [3, -2, 1]],
        hop_latency_s=0,
        capacity_bytes=[9, 3],
        spill=[{"stage": 0, "chunk": 1, "creditor": 1, "bytes": 2}],
    )
    simulator = replay(document)
    assert [item.ready_ps for item in simulator.transfers if item.kind == "write"] == [4 * 10**12]
    reasons = [
        (change.reason, int(change.changed_bytes)) for change in simulator.memory_changes if change.place[2] == 1
    ]
    assert reasons[:3] == [("start", 3), ("start", -2), ("grant", 2)]


@pytest.mark.parametrize(
    ("schedule", "outer"),
    [
        # d = 1 on the outer die. Periods -1, 0: heads 0, 1. Period 1: head 2 and tail 0. Periods 2, 3: tails 1, 2.
        ("vpp", "H0 H1 T0 H2 T1 T2 H0 H1 T0 H2 T1 T2"),
        ("vpp-async", "H0 H1 H2 T0 T1 T2 H0 H1 H2 T0 T1 T2"),
        # Six chunks in one row: period k runs head k+1 and tail k-1.
        ("vpp-packed", "H0 H1 H2 T0 H0 T1 H1 T2 H2 T0 T1 T2"),
    ],
)
def test_v_shaped_orders(schedule: str, outer: str) -> None:
    document = _two_stages([0, 0], [0, 1], schedule=schedule) | {
        "die_of": [[0, 0], [0, 1], [0, 1], [0, 0]],
        "compute_s": [[1, 1, 1]] * 4,
        "activation_bytes": [0, 0, 0],
        "kv_bytes": [[1, 1, 1]] * 4,
        "arrivals_s": [0, 0],
    }
    orders = die_programs(read_program(document))
    assert " ".join(("H" if task.stage < 2 else "T") + str(task.chunk) for task in orders[(0, 0)]) == outer
    # The fold die runs every head just before its tail.
    fold = [(task.stage, task.chunk) for task in orders[(0, 1)]]
    assert fold == [(stage, chunk) for chunk in (0, 1, 2) for stage in (1, 2)] * 2
    assert simulate(document)["deadlock"] is False
