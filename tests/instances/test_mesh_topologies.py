"""Torus and switch: neighbours, routes, hops, dead parts, seams; and how hardware names them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.check import check
from instances.errors import InputError
from instances.hardware import Hardware
from instances.mesh import SWITCH, Die, Mesh, Topology
from tests.builders import small_instance, small_plan


def _path(mesh: Mesh, a: Die, b: Die, routing: Any = "xy") -> list[Die]:
    route = mesh.route(a, b, routing)
    return [a, *(end for _, end in route)]


def test_a_torus_joins_last_and_first() -> None:
    mesh = Mesh(3, 4, topology="torus")
    assert mesh.neighbours((0, 0)) == ((0, 1), (0, 3), (1, 0), (2, 0))
    assert mesh.neighbours((2, 3)) == ((2, 0), (2, 2), (0, 3), (1, 3))
    # 4 links out of each of 12 dies.
    assert len(mesh.links) == len(set(mesh.links)) == 48
    assert mesh.adjacent((0, 0), (2, 0)) and not mesh.adjacent((0, 0), (2, 3))


def test_two_dies_in_a_row_have_one_link_each_way() -> None:
    # East and west of (0,0) are the same die: the way round is the link that is there already. One die has none.
    assert Mesh(1, 2, topology="torus").links == (((0, 0), (0, 1)), ((0, 1), (0, 0)))
    assert Mesh(1, 1, topology="torus").links == ()


def test_a_torus_takes_the_shorter_way_round() -> None:
    mesh = Mesh(5, 6, topology="torus")
    assert _path(mesh, (0, 0), (0, 4)) == [(0, 0), (0, 5), (0, 4)]
    assert _path(mesh, (0, 1), (3, 5)) == [(0, 1), (0, 0), (0, 5), (4, 5), (3, 5)]
    assert _path(mesh, (0, 1), (3, 5), "yx") == [(0, 1), (4, 1), (3, 1), (3, 0), (3, 5)]


def test_as_long_both_ways_goes_to_the_larger_index() -> None:
    mesh = Mesh(1, 4, topology="torus")
    assert _path(mesh, (0, 0), (0, 2)) == [(0, 0), (0, 1), (0, 2)]
    # From 3 to 1 the larger index is 0 again, one further on.
    assert _path(mesh, (0, 3), (0, 1)) == [(0, 3), (0, 0), (0, 1)]
    assert _path(mesh, (0, 2), (0, 0)) == [(0, 2), (0, 3), (0, 0)]


def test_dead_parts_of_a_torus() -> None:
    # The link round is dead: the dimension-ordered route goes back by the breadth-first path, here along the row.
    cut = Mesh(1, 4, topology="torus", disabled_links=frozenset({((0, 0), (0, 3))}))
    assert _path(cut, (0, 0), (0, 3)) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    dead = Mesh(1, 4, topology="torus", disabled_dies=frozenset({(0, 1)}))
    assert _path(dead, (0, 0), (0, 2)) == [(0, 0), (0, 3), (0, 2)]
    with pytest.raises(ValueError, match=r"disabled link .* two neighbours of the torus"):
        Mesh(1, 4, topology="torus", disabled_links=frozenset({((0, 0), (0, 2))}))


def test_the_way_round_crosses_wafers_where_there_are_several() -> None:
    two = Mesh(2, 4, wafer_rows=2, wafer_columns=2, topology="torus")
    assert two.crosses_wafers(((0, 3), (0, 0))) and not two.crosses_wafers(((1, 0), (0, 0)))
    assert not Mesh(1, 4, topology="torus").crosses_wafers(((0, 3), (0, 0)))


@given(st.integers(1, 5), st.integers(1, 5), st.data())
def test_torus_routes_are_shortest_walks(rows: int, columns: int, data: st.DataObject) -> None:
    mesh = Mesh(rows, columns, topology="torus")
    a, b = (data.draw(st.sampled_from(mesh.live_dies)) for _ in range(2))
    ways = [min(abs(a[axis] - b[axis]), size - abs(a[axis] - b[axis])) for axis, size in enumerate((rows, columns))]
    for routing in ("xy", "yx"):
        path = _path(mesh, a, b, routing)
        assert path[-1] == b
        assert len(path) - 1 == sum(ways) == mesh.hops(a, b)
        assert all(after in mesh.neighbours(before) for before, after in pairwise(path))


def test_a_switch_is_one_hop_over_two_links() -> None:
    mesh = Mesh(2, 2, topology="switch", disabled_dies=frozenset({(0, 1)}))
    assert mesh.route((0, 0), (1, 1)) == [((0, 0), SWITCH), (SWITCH, (1, 1))]
    assert (mesh.hops((0, 0), (1, 1)), mesh.hops((0, 0), (0, 0)), mesh.route((0, 0), (0, 0))) == (1, 0, [])
    assert mesh.neighbours((0, 0)) == ((1, 0), (1, 1))
    assert mesh.links[:3] == (((0, 0), SWITCH), ((1, 0), SWITCH), ((1, 1), SWITCH))
    assert mesh.links[3:] == tuple((SWITCH, die) for die in mesh.live_dies)
    assert not any(mesh.crosses_wafers(link) for link in mesh.links)
    with pytest.raises(ValueError, match=r"die \(0, 1\) is disabled"):
        mesh.route((0, 0), (0, 1))
    with pytest.raises(ValueError, match=r"outside the 2x2 switch"):
        mesh.route((0, 0), (2, 2))


def test_a_switch_has_no_links_to_disable() -> None:
    with pytest.raises(ValueError, match="disabled link"):
        Mesh(1, 2, topology="switch", disabled_links=frozenset({((0, 0), (0, 1))}))


def _hardware(**changes: Any) -> Hardware:
    die = {"peak_flops": 1, "hbm_bytes": 1, "hbm_bytes_per_s": 1}
    return Hardware.parse({"rows": 1, "columns": 4, "link_bytes_per_s": 1, "die": die} | changes)


@pytest.mark.parametrize("topology", ["mesh", "torus", "switch"])
def test_hardware_names_the_topology(topology: Topology) -> None:
    hardware = _hardware(topology=topology)
    assert hardware.mesh().topology == topology
    assert Hardware.parse(hardware.model_dump(mode="json")) == hardware


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"topology": "ring"}, "topology"),
        ({"topology": "torus", "disabled_links": [[[0, 0], [0, 2]]]}, "disabled_links.0"),
        ({"topology": "mesh", "disabled_links": [[[0, 0], [0, 3]]]}, "disabled_links.0"),
        ({"topology": "switch", "disabled_links": [[[0, 0], [0, 1]]]}, "disabled_links"),
        ({"topology": "switch", "wafers": [1, 2], "wafer_link_bytes_per_s": 1}, "wafer_link_bytes_per_s"),
    ],
)
def test_hardware_that_cannot_be_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        _hardware(**changes)
    assert caught.value.field == field


def test_links_round_a_torus_may_be_disabled() -> None:
    assert _hardware(topology="torus", disabled_links=[[[0, 0], [0, 3]]]).mesh().hops((0, 0), (0, 3)) == 3


def test_a_mesh_keeps_the_fingerprint_that_it_had_before_there_was_a_choice() -> None:
    plain, named = small_instance(), small_instance(hardware__topology="mesh")
    assert "topology" not in plain.canonical()["hardware"]
    assert plain.fingerprint == named.fingerprint
    others = {small_instance(hardware__topology=topology).fingerprint for topology in ("torus", "switch")}
    assert len(others | {plain.fingerprint}) == 3


@pytest.mark.parametrize(("topology", "reached"), [("mesh", False), ("torus", True), ("switch", True)])
def test_dies_cut_off_on_a_mesh_may_be_joined_otherwise(topology: Topology, reached: bool) -> None:
    # In a row of five the second die is dead: the first is cut off from the others, unless there is a way round.
    instance = small_instance(
        hardware__rows=1, hardware__columns=5, hardware__disabled_dies=[[0, 1]], hardware__topology=topology
    )
    plan = small_plan(instance, placement=[[0, 0], [0, 2], [0, 3], [0, 4]])
    amounts = [finding.amount for finding in check(instance, plan) if finding.rule == "placement_connected"]
    assert amounts == ([0] if reached else [1, 1, 1])
