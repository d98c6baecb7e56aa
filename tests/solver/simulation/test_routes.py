"""Routes between all dies at once, against those that the mesh finds one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.placement.distances import compact, hop_table
from instances.mesh import Die, Mesh
from solver.simulation.network import build_network
from solver.simulation.routes import all_routes


@st.composite
def _meshes(draw: Callable[[st.SearchStrategy[Any]], Any], switch: bool = False) -> tuple[Mesh, list[Die]]:
    """A small grid with dead dies and links, and its live dies in any order."""
    topology = draw(st.sampled_from(("mesh", "torus", *(("switch",) if switch else ()))))
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    whole = Mesh(rows, columns, topology=topology)
    dead = draw(st.sets(st.sampled_from(whole.live_dies), max_size=3))
    links = () if topology == "switch" or not whole.links else draw(st.sets(st.sampled_from(whole.links), max_size=4))
    mesh = Mesh(rows, columns, disabled_dies=frozenset(dead), disabled_links=frozenset(links), topology=topology)
    return mesh, draw(st.permutations(mesh.live_dies))


def _one_by_one(ask: Callable[[Die, Die], Any], dies: list[Die]) -> list[Any] | str:
    try:
        return [ask(a, b) for a in dies for b in dies]
    except ValueError as error:
        return str(error)


@given(_meshes(), st.sampled_from(("xy", "yx")))
def test_routes_and_refusals_are_those_of_the_mesh(drawn: tuple[Mesh, list[Die]], routing: Any) -> None:
    mesh, dies = drawn
    if not dies:
        return
    expected = _one_by_one(lambda a, b: mesh.route(a, b, routing), dies)
    if isinstance(expected, str):
        with pytest.raises(ValueError) as caught:
            all_routes(mesh, dies, routing)
        assert str(caught.value) == expected
        return
    pointers, links = all_routes(mesh, dies, routing)
    ends = [[divmod(end, mesh.columns) for end in divmod(link, mesh.rows * mesh.columns)] for link in links.tolist()]
    found = [ends[pointers[pair] : pointers[pair + 1]] for pair in range(len(dies) ** 2)]
    assert found == [[list(link) for link in route] for route in expected]
    network = build_network(mesh, dies, link_bytes_per_s=1.0, routing=routing)
    # Links are numbered by their first use.
    used = list(dict.fromkeys(link for route in expected for link in route))
    assert network.link_ends.tolist() == [[*a, *b] for a, b in used]
    for pair, route in enumerate(expected):
        assert network.route(pair // len(dies), pair % len(dies)) == [used.index(link) for link in route]


@given(_meshes(switch=True))
def test_hops_are_those_of_the_mesh(drawn: tuple[Mesh, list[Die]]) -> None:
    mesh, dies = drawn
    expected = _one_by_one(mesh.hops, dies)
    if isinstance(expected, str):
        with pytest.raises(ValueError, match="no path"):
            hop_table(mesh, dies)
    else:
        assert hop_table(mesh, dies).ravel().tolist() == expected


def test_a_window_holds_enough_dies_and_is_small() -> None:
    whole = [(row, column) for row in range(30) for column in range(40)]
    assert len(compact(whole, 16)) == 16
    assert len(compact(whole, 17)) == 24
    # Without the upper left corner the first full window begins beside it.
    assert compact([die for die in whole if die != (0, 0)], 4) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    # A single row, and all dies where a smaller window holds too few.
    assert compact([(0, column) for column in range(50)], 5) == [(0, column) for column in range(6)]
    assert compact(whole, 1200) == whole
