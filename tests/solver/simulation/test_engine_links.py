"""Transfers share links first come, first served; the options of rule 9; the host's own link."""

from __future__ import annotations

from typing import Any

import pytest

from tests.solver.simulation.documents import line, run_document, spill, times_s

ACTIVATION, WRITE, FETCH = range(3)


def _transfers_s(document: dict[str, Any]) -> list[tuple[int, float, float]]:
    """Kind, start and arrival of each transfer, in the order of the requests."""
    _, outcome = run_document(document, traced=True)
    assert outcome.events is not None
    return [(kind, start / 1e12, end / 1e12) for kind, *_, start, end in outcome.events.transfers.tolist()]


def test_a_write_waits_for_the_activation_on_a_shared_link() -> None:
    # Stage 0 at column 0, stage 1 at column 2, stage 2 between them. At 2 the activation of 4 bytes takes both links to
    # the right until 6; the write of 1 byte to stage 2 needs the first of them: 6 to 7.
    document = line(
        [[2, 1], [1, 1], [1, 1]],
        die_of=[[0, 0], [0, 2], [0, 1]],
        activation_bytes=[4, 0],
        kv_bytes=[[1, 0], [0, 0], [0, 0]],
        spill=[spill(0, 0, 2, 1)],
    )
    assert _transfers_s(document)[:2] == [(ACTIVATION, 2, 6), (WRITE, 6, 7)]


def test_a_fetch_keeps_its_place_while_it_waits_for_its_writes() -> None:
    # Chunk 0 of stage 1 ends at 2 and writes 5 bytes to stage 0 until 7. Chunk 1 starts at 2 and asks for them back,
    # over the other link, from 7 to 12. Chunk 2 of stage 0 ends at 3: its activation asked later and waits until 12,
    # although the link is idle up to 7. The last fetch, of chunk 2, follows.
    document = line([[1, 1, 1], [1, 1, 1]], kv_bytes=[[0, 0, 0], [5, 0, 0]], spill=[spill(1, 0, 0, 5)])
    assert _transfers_s(document) == [
        (ACTIVATION, 1, 1),
        (WRITE, 2, 7),
        (ACTIVATION, 2, 2),
        (FETCH, 7, 12),
        (ACTIVATION, 12, 12),
        (FETCH, 12, 17),
    ]


def test_cut_through_and_store_and_forward() -> None:
    # 6 bytes at 2 bytes/s over 2 hops of 0.5 s. Cut-through: 6/2 + 2 * 0.5 = 4; store and forward: 2 * (6/2 + 0.5) = 7.
    document = line(
        [[1], [1]],
        die_of=[[0, 0], [0, 2]],
        activation_bytes=[6],
        link_bytes_per_s=2,
        hop_latency_s=0.5,
    )
    assert times_s(document)[0][0, 1, 0] == 1 + 4
    assert times_s(document | {"store_and_forward": True})[0][0, 1, 0] == 1 + 7


def test_store_and_forward_holds_one_link_after_the_other() -> None:
    # Two activations of 2 bytes over 2 links: the second follows one link behind: 1 + 2 * 2, then 2 more.
    document = line([[1, 0], [0, 0]], die_of=[[0, 0], [0, 2]], activation_bytes=[2, 2], store_and_forward=True)
    start, _ = times_s(document)
    assert (start[0, 1, 0], start[0, 1, 1]) == (5, 7)


def test_one_send_per_die() -> None:
    # At 2 stage 0 sends 3 bytes west and writes 1 byte east: both at once, or one after the other was delivered at 5.5.
    document = line(
        [[2, 1], [1, 1], [1, 1]],
        die_of=[[0, 1], [0, 0], [0, 2]],
        activation_bytes=[3, 0],
        kv_bytes=[[1, 0], [0, 0], [0, 0]],
        spill=[spill(0, 0, 2, 1)],
        hop_latency_s=0.5,
    )
    assert _transfers_s(document)[:2] == [(ACTIVATION, 2, 5.5), (WRITE, 2, 3.5)]
    assert _transfers_s(document | {"one_send_per_die": True})[:2] == [(ACTIVATION, 2, 5.5), (WRITE, 5.5, 7)]


def test_integer_ns_rounds_every_duration_up() -> None:
    # Compute 1.5 ns -> 2; 1 byte at 0.4 bytes/ns = 2.5 ns -> 3; a hop of 0.2 ns -> 1. In all 2 + 3 + 1 + 2 = 8 ns.
    document = line(
        [[1.5e-9], [1.5e-9]],
        activation_bytes=[1],
        link_bytes_per_s=0.4e9,
        hop_latency_s=0.2e-9,
    )
    assert times_s(document)[1][0, 1, 0] == pytest.approx(5.7e-9, abs=1e-15)
    assert times_s(document | {"integer_ns": True})[1][0, 1, 0] == pytest.approx(8e-9, abs=1e-15)


def test_integer_ns_leaves_whole_nanoseconds_alone() -> None:
    # 0.3 s is not a whole number of nanoseconds as a double, but it is one.
    document = line([[0.3], [0.1]], activation_bytes=[1], link_bytes_per_s=10, integer_ns=True)
    assert times_s(document)[1][0, 1, 0] == 0.5


def test_routing_yx_takes_other_links() -> None:
    document = line([[1], [1]], die_of=[[0, 0], [1, 1]], activation_bytes=[1])
    for routing, between in (("xy", "(0,1)"), ("yx", "(1,0)")):
        program, outcome = run_document(document | {"routing": routing})
        used = {program.network.link_name(link) for link, units in enumerate(outcome.link_units) if units}
        assert used == {f"(0,0)->{between}", f"{between}->(1,1)"}


def test_a_dead_die_is_routed_around() -> None:
    # (0,1) is dead: east is closed, so south, twice east, north: 4 hops of 1 s instead of 2.
    document = line([[1], [1]], die_of=[[0, 0], [0, 2]], hop_latency_s=1, rows=2)
    assert times_s(document)[0][0, 1, 0] == 1 + 2
    assert times_s(document | {"disabled_dies": [[0, 1]]})[0][0, 1, 0] == 1 + 4


def test_bytes_and_byte_hops() -> None:
    # 3 bytes over 2 links: 3 bytes and 3 s on each, 6 byte-hops.
    program, outcome = run_document(line([[1], [1]], die_of=[[0, 0], [0, 2]], activation_bytes=[3]))
    assert outcome.byte_hops_units == 6 * program.units_per_byte
    used = outcome.link_units > 0
    assert outcome.link_units[used].tolist() == [3, 3]
    assert outcome.link_busy_ps[used].tolist() == [3 * 10**12] * 2


HOST = line(
    [[2, 5]],
    kv_bytes=[[3, 1]],
    spill=[spill(0, 0, "host", 3)],
    host={"host_bytes": 10, "host_bytes_per_s": 1.5},
)


def test_host_write_and_fetch() -> None:
    # Written from 2 to 4, read from 4 to 6 while chunk 1 computes from 2 to 7.
    assert _transfers_s(HOST) == [(WRITE, 2, 4), (FETCH, 4, 6)]
    assert times_s(HOST)[1][0, 0, 1] == 7
    # Compute waits: 6 + 5.
    assert times_s(HOST | {"overlap": False})[1][0, 0, 1] == 11
    # Room for 3 bytes only: chunk 1 waits until its 3 bytes are at the host at 4; fetch 4 to 6, compute 4 to 9.
    start, end = times_s(HOST | {"capacity_bytes": [3]})
    assert (start[0, 0, 1], end[0, 0, 1]) == (4, 9)


def test_host_traffic_stalls_nobody_and_has_no_hops() -> None:
    program, outcome = run_document(HOST)
    assert outcome.stall_ps.tolist() == [0]
    assert outcome.byte_hops_units == 0
    assert outcome.host_peak_units.tolist() == [3]
    carried = {program.network.link_name(link): units for link, units in enumerate(outcome.link_units.tolist())}
    assert carried == {"(0,0)->host": 3, "host->(0,0)": 3}


def test_a_full_host_takes_no_write() -> None:
    # Never granted, so nothing is fetched; the write is cancelled when the stage ends its wave.
    document = HOST | {"host": {"host_bytes": 2, "host_bytes_per_s": 1.5}}
    assert _transfers_s(document) == []
    assert times_s(document)[1][0, 0, 1] == 7
