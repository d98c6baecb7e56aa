"""Loads of links by hand, and that spreading them never costs value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.placement.link_load import MOST_DIES, LoadSearch, largest_load, routes_of, spread_out
from formulations.placement.problem import PlacementProblem, stated
from formulations.placement.seam_hops import seam_hops
from instances.mesh import Link, Mesh
from tests.formulations.placement_cases import Cell, cross_half, pipeline


def one(link: Link) -> int:
    return 1


def on_mesh(mesh: Mesh, flows: list[tuple[int, int, float]], stages: int) -> tuple[PlacementProblem, list[Cell]]:
    dies = list(mesh.live_dies)
    return stated(seam_hops(mesh, dies, 1), flows, stages, dies), dies


def test_load_by_hand() -> None:
    # On a line of three, 0 -> 2 and 0 -> 1 share the first link: 2 + 0.5. Back from 2 to 1 is another direction.
    mesh = Mesh(1, 3)
    problem, dies = on_mesh(mesh, [(0, 2, 2.0), (0, 1, 0.5), (2, 1, 4.0)], 3)
    load = largest_load(problem, mesh, dies, [0, 1, 2], one)
    assert load is not None
    assert (load.load, load.link) == (4.0, ((0, 2), (0, 1)))
    load = largest_load(problem, mesh, dies, [1, 0, 2], one)
    # Now 0 -> 2 goes one hop east, 0 -> 1 one west, and 2 -> 1 two west: 4 and, on the last link, 4 + 0.5.
    assert load is not None
    assert (load.load, load.link) == (4.5, ((0, 1), (0, 0)))


def test_a_slow_link_counts_as_several() -> None:
    mesh = Mesh(1, 2, 1, 1)
    problem, dies = on_mesh(mesh, [(0, 1, 2.0)], 2)
    load = largest_load(problem, mesh, dies, [0, 1], lambda link: 3 if mesh.crosses_wafers(link) else 1)
    assert load is not None
    assert load.load == 6.0


def test_no_flows_load_nothing() -> None:
    mesh = Mesh(1, 2)
    problem, dies = on_mesh(mesh, [], 2)
    assert largest_load(problem, mesh, dies, [0, 1], one) is None
    assert spread_out(problem, mesh, dies, [1, 0], one, np.random.default_rng(0)) == [1, 0]


def test_routes_go_along_the_row_first_and_around_dead_dies() -> None:
    mesh = Mesh(2, 3, disabled_dies=frozenset({(0, 1)}))
    dies = list(mesh.live_dies)
    routes = routes_of(mesh, dies, one)
    pair = dies.index((0, 0)) * len(dies) + dies.index((0, 2))
    links = [mesh.links[k] for k in routes.links[routes.pointers[pair] : routes.pointers[pair + 1]]]
    assert links == mesh.route((0, 0), (0, 2))
    assert len(links) == 4


def test_of_equal_placements_the_one_with_spread_loads_is_taken() -> None:
    # Three stages send 2, 1 and 1 to stage 3 in a corner of 2x2 dies: one of the light ones sits across, 4 + 1. Its
    # route goes along the row first, and so ends on the link of the stage in the same column as stage 3: 2 + 1 if that
    # is the heavy one, 1 + 1 if not.
    mesh = Mesh(2, 2)
    problem, dies = on_mesh(mesh, [(0, 3, 2.0), (1, 3, 1.0), (2, 3, 1.0)], 4)
    start = [2, 3, 1, 0]
    first = largest_load(problem, mesh, dies, start, one)
    assert first is not None
    assert (problem.value(start), first.load) == (5.0, 3.0)
    best = spread_out(problem, mesh, dies, start, one, np.random.default_rng(0))
    after = largest_load(problem, mesh, dies, best, one)
    assert after is not None
    assert (problem.value(best), after.load) == (5.0, 2.0)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), forced=st.booleans())
def test_nothing_gets_worse_and_loads_add_up(seed: int, forced: bool) -> None:
    rng = np.random.default_rng(seed)
    dead = frozenset({(1, 1)}) if rng.random() < 0.5 else frozenset()
    mesh = Mesh(3, 3, disabled_dies=dead)
    dies = list(mesh.live_dies)
    flows = [(s, t, float(rng.integers(1, 5))) for s, t, _ in pipeline(6)]
    flows += [(int(t), int(s), 1.5) for s, t in cross_half(6)]
    # Partners 0 and 3, 2 and 5 lie one below the other, at the left and the right edge.
    order = [0, 1, 2, *(dies.index(die) for die in ((1, 0), (2, 1), (1, 2)))]
    pairs = [(0, 3), (2, 5)] if forced else []
    problem = stated(seam_hops(mesh, dies, 1), flows, 6, dies, pairs)
    assert problem.violations(order) == []
    routes = routes_of(mesh, dies, one)
    search = LoadSearch(problem, routes, order, rng)
    search.run(500)
    after = search.placement
    assert problem.violations(after) == []
    assert problem.value(after) <= problem.value(order)
    if problem.value(after) == problem.value(order):
        loads = [largest_load(problem, mesh, dies, placement, one) for placement in (order, after)]
        assert loads[0] is not None
        assert loads[1] is not None
        assert loads[1].load <= loads[0].load
    total = sum(
        ticks * len(mesh.route(dies[after[s]], dies[after[t]]))
        for (s, t, _), ticks in zip(problem.flows, problem.ticks, strict=True)
    )
    assert problem.weighed(total) == pytest.approx(problem.value(after))


def test_many_dies_keep_their_placement() -> None:
    mesh = Mesh(1, MOST_DIES + 1)
    problem, dies = on_mesh(mesh, [(0, 1, 1.0)], 2)
    assert spread_out(problem, mesh, dies, [5, 9], one, np.random.default_rng(0)) == [5, 9]
