"""Geometry: routes, detours, wafers; and the arrays that the engine gets (rule ``link_fifo``)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.mesh import Mesh
from solver.simulation.network import build_network, whole_ps

DIES = st.tuples(st.integers(0, 3), st.integers(0, 3))


def test_the_column_index_changes_first() -> None:
    mesh = Mesh(2, 2)
    assert mesh.route((0, 0), (1, 1)) == [((0, 0), (0, 1)), ((0, 1), (1, 1))]
    assert mesh.route((0, 0), (1, 1), "yx") == [((0, 0), (1, 0)), ((1, 0), (1, 1))]
    assert mesh.route((1, 1), (1, 1)) == []


def test_a_route_that_meets_nothing_disabled_stays_straight() -> None:
    mesh = Mesh(2, 3, disabled_dies=frozenset({(1, 1)}))
    assert mesh.route((0, 0), (1, 2)) == [((0, 0), (0, 1)), ((0, 1), (0, 2)), ((0, 2), (1, 2))]


def test_a_detour_looks_east_west_south_north() -> None:
    # From the middle of the left column to the right, with the middle dead: south comes before north.
    mesh = Mesh(3, 3, disabled_dies=frozenset({(1, 1)}))
    assert mesh.route((1, 0), (1, 2)) == [
        ((1, 0), (2, 0)),
        ((2, 0), (2, 1)),
        ((2, 1), (2, 2)),
        ((2, 2), (1, 2)),
    ]


@pytest.mark.parametrize("named", [((0, 0), (0, 1)), ((0, 1), (0, 0))])
def test_a_disabled_link_is_disabled_both_ways(named: tuple[tuple[int, int], tuple[int, int]]) -> None:
    mesh = Mesh(2, 2, disabled_links=frozenset({named}))
    assert mesh.hops((0, 0), (0, 1)) == 3
    assert mesh.hops((0, 1), (0, 0)) == 3
    assert (0, 1) not in mesh.neighbours((0, 0))


@given(DIES, DIES, st.frozensets(DIES, max_size=6))
def test_routes_are_walks_over_live_links(
    a: tuple[int, int], b: tuple[int, int], dead: frozenset[tuple[int, int]]
) -> None:
    mesh = Mesh(4, 4, disabled_dies=dead - {a, b})
    reached = {a}
    while beyond := {other for die in reached for other in mesh.neighbours(die)} - reached:
        reached |= beyond
    if b not in reached:
        with pytest.raises(ValueError, match="no path"):
            mesh.route(a, b)
        return
    route, here = mesh.route(a, b), a
    for start, end in route:
        assert start == here
        assert end in mesh.neighbours(start)
        here = end
    assert here == b
    distance = abs(a[0] - b[0]) + abs(a[1] - b[1])
    assert len(route) >= distance
    assert (len(route) - distance) % 2 == 0
    assert len(mesh.route(a, b, "yx")) == len(route)


def test_unusable_dies_are_named() -> None:
    mesh = Mesh(1, 3, disabled_dies=frozenset({(0, 1)}))
    with pytest.raises(ValueError, match=r"no path from die \(0, 0\) to die \(0, 2\)"):
        mesh.route((0, 0), (0, 2))
    with pytest.raises(ValueError, match=r"die \(0, 1\) is disabled"):
        mesh.route((0, 0), (0, 1))
    with pytest.raises(ValueError, match="outside the 1x3 mesh"):
        mesh.hops((0, 0), (1, 0))


def test_live_dies_and_links() -> None:
    mesh = Mesh(2, 2, disabled_dies=frozenset({(1, 1)}))
    assert mesh.live_dies == ((0, 0), (0, 1), (1, 0))
    assert mesh.links == (((0, 0), (0, 1)), ((0, 0), (1, 0)), ((0, 1), (0, 0)), ((1, 0), (0, 0)))


@pytest.mark.parametrize(
    "arguments",
    [
        {"rows": 0, "columns": 1},
        {"rows": 4, "columns": 4, "wafer_rows": 3},
        {"rows": 2, "columns": 2, "disabled_dies": frozenset({(2, 0)})},
        {"rows": 2, "columns": 2, "disabled_links": frozenset({((0, 0), (1, 1))})},
    ],
)
def test_impossible_meshes_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="mesh"):
        Mesh(**arguments)


def test_links_between_wafers_have_their_own_speed() -> None:
    # Two wafers of 1x2 side by side: the link from column 1 to 2 is the slow one.
    mesh = Mesh(1, 4, wafer_rows=1, wafer_columns=2)
    network = build_network(
        mesh,
        [(0, 0), (0, 1), (0, 3)],
        link_bytes_per_s=10,
        wafer_link_bytes_per_s=4,
        hop_latency_s=1e-9,
    )
    assert network.bottleneck_bytes_per_s.tolist() == [[math.inf, 10, 4], [10, math.inf, 4], [4, 4, math.inf]]
    assert network.hops.tolist() == [[0, 1, 3], [1, 0, 2], [3, 2, 0]]
    names = [network.link_name(link) for link in network.route(0, 2)]
    assert names == ["(0,0)->(0,1)", "(0,1)->(0,2)", "(0,2)->(0,3)"]
    assert [network.link_bytes_per_s[link] for link in network.route(0, 2)] == [10, 4, 10]
    assert network.hop_latency_ps == 1000


def test_host_links_come_last() -> None:
    network = build_network(Mesh(1, 2), [(0, 0), (0, 1)], link_bytes_per_s=10, host_bytes_per_s=3)
    names = [network.link_name(link) for link in range(len(network.link_bytes_per_s))]
    assert names == [
        "(0,0)->(0,1)",
        "(0,1)->(0,0)",
        "(0,0)->host",
        "host->(0,0)",
        "(0,1)->host",
        "host->(0,1)",
    ]
    assert network.host_write_link.tolist() == [2, 4]
    assert network.host_read_link.tolist() == [3, 5]


def test_one_die_needs_no_links() -> None:
    network = build_network(Mesh(1, 1), [(0, 0)], link_bytes_per_s=1)
    assert len(network.link_bytes_per_s) == 0
    with pytest.raises(ValueError, match="named twice"):
        build_network(Mesh(1, 1), [(0, 0), (0, 0)], link_bytes_per_s=1)


def test_durations_are_whole() -> None:
    # 1/3 s to the nearest picosecond; 1.2 ns up to 2 ns; 0.3 s is a whole number of nanoseconds.
    assert whole_ps(1 / 3) == 333_333_333_333
    assert whole_ps(1.2e-9, integer_ns=True) == 2000
    assert whole_ps(0.3, integer_ns=True) == 300_000_000_000
