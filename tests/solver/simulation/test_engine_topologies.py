"""Transfers on a torus and over a switch (rule ``link_fifo``)."""

from __future__ import annotations

from typing import Any

import pytest

from instances.mesh import Mesh
from solver.simulation.network import build_network
from solver.simulation.program_file import replay_document
from solver.simulation.trace import trace_events
from tests.solver.simulation.documents import line, run_document, spill


def _start_s(document: dict[str, Any], task: str) -> float:
    start: float = replay_document(document)["start_s"][task]
    return start


def test_a_torus_sends_round_the_back() -> None:
    # 3 hops of 0.5 s along the row, 1 round the back; 2 bytes in 2 s, sent at 1.
    document = line([[1], [1]], die_of=[[0, 0], [0, 3]], activation_bytes=[2], hop_latency_s=0.5)
    assert _start_s(document, "0,1,0") == 1 + 2 + 3 * 0.5
    assert _start_s(document | {"topology": "torus"}, "0,1,0") == 1 + 2 + 0.5


def test_links_round_the_back_have_names_and_the_speed_of_a_seam() -> None:
    # Two wafers side by side; only the links 1-2 and 3-0 join them.
    mesh = Mesh(1, 4, wafer_rows=1, wafer_columns=2, topology="torus")
    network = build_network(mesh, [(0, 0), (0, 1), (0, 3)], link_bytes_per_s=10, wafer_link_bytes_per_s=4)
    assert [network.link_name(link) for link in network.route(0, 2)] == ["(0,0)->(0,3)"]
    assert network.bottleneck_bytes_per_s[0, 1:].tolist() == [10, 4]
    assert network.hops.tolist() == [[0, 1, 1], [1, 0, 2], [1, 2, 0]]


def test_a_switch_is_one_hop() -> None:
    # 2 bytes in 2 s over both links at once, and one latency.
    document = line([[1], [1]], die_of=[[0, 0], [0, 3]], activation_bytes=[2], hop_latency_s=0.5, topology="switch")
    assert _start_s(document, "0,1,0") == 1 + 2 + 0.5
    # Stored in the switch: 2 s in, latency, 2 s out.
    assert _start_s(document | {"store_and_forward": True}, "0,1,0") == 1 + 2 + 0.5 + 2


def test_a_switch_blocks_at_its_ends_only() -> None:
    # Stage 0 writes 4 bytes of chunk 0 to stage 2 in 1..5, after its activation of zero bytes. What stage 1 sends to
    # stage 2 at 2 waits for that die's link out of the switch until 5. (Fetches stall nobody here.)
    document = line(
        [[1, 1], [1, 1], [1, 1]],
        kv_bytes=[[4, 0], [0, 0], [0, 0]],
        spill=[spill(0, 0, 2, 4)],
        topology="switch",
        serve_fraction=0,
    )
    assert _start_s(document, "0,2,0") == 5
    # Another creditor's links are free: (0,0) -> (0,3) does not keep (0,1) -> (0,2) waiting.
    four = line(
        [[1, 1], [1, 1], [1, 1], [1, 1]],
        kv_bytes=[[4, 0], [0, 0], [0, 0], [0, 0]],
        spill=[spill(0, 0, 3, 4)],
        serve_fraction=0,
    )
    assert _start_s(four | {"topology": "switch"}, "0,2,0") == 2
    # In a row the write holds all links east in 1..5, the one from (0,1) to (0,2) too.
    assert _start_s(four, "0,2,0") == 5


def test_links_of_a_switch() -> None:
    mesh = Mesh(1, 3, topology="switch")
    network = build_network(mesh, [(0, 0), (0, 2)], link_bytes_per_s=10, host_bytes_per_s=3)
    assert [network.link_name(link) for link in range(len(network.link_bytes_per_s))] == [
        "(0,0)->switch",
        "switch->(0,2)",
        "(0,2)->switch",
        "switch->(0,0)",
        "(0,0)->host",
        "host->(0,0)",
        "(0,2)->host",
        "host->(0,2)",
    ]
    assert (network.hops.tolist(), network.longest_route) == ([[0, 1], [1, 0]], 2)


@pytest.mark.parametrize("topology", ["mesh", "torus", "switch"])
def test_traffic_counts_hops(topology: str) -> None:
    # 3 bytes from (0,0) to (0,2): two hops in a row, one round the back or through a switch; both of its links carry.
    document = line([[1], [1]], die_of=[[0, 0], [0, 2]], activation_bytes=[3], topology=topology)
    program, run = run_document(document, traced=True)
    assert run.byte_hops_units == {"mesh": 6, "torus": 3, "switch": 3}[topology]
    assert run.link_units.sum() == {"mesh": 6, "torus": 3, "switch": 6}[topology]
    events = trace_events(program, run)["traceEvents"]
    titles = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    wanted = {"mesh": "(0,1)->(0,2)", "torus": "(0,0)->(0,2)", "switch": "switch->(0,2)"}[topology]
    assert wanted in titles
