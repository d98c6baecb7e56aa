"""Distances across seams between wafers, by hand and in both ways of working them out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.placement.seam_hops import seam_hops
from instances.mesh import Mesh
from tests.formulations.placement_cases import seamed


@pytest.mark.parametrize("seam", [1, 2, 7])
def test_two_wafers_side_by_side(seam: int) -> None:
    cells, hops = seamed(2, 3, seam)
    assert (seam_hops(Mesh(2, 6, 2, 3), cells, seam) == hops).all()


def test_from_corner_to_corner_of_four_wafers() -> None:
    # 3 + 3 hops, of which one in each direction crosses a seam: 4 + 2 * 5.
    mesh = Mesh(4, 4, 2, 2)
    assert seam_hops(mesh, [(0, 0), (3, 3)], 5).tolist() == [[0, 14], [14, 0]]


def test_links_within_wafers_may_be_longer_than_one() -> None:
    # Seams of five halves: 2 and 5. Along the row 2 + 5 + 2.
    mesh = Mesh(1, 4, 1, 2)
    assert seam_hops(mesh, mesh.live_dies, 5, 2)[0].tolist() == [0, 2, 7, 9]
    dead = Mesh(2, 4, 2, 2, disabled_dies=frozenset({(1, 0)}))
    assert seam_hops(dead, [(0, 0), (0, 3)], 5, 2)[0, 1] == 9


def test_a_long_way_round_may_be_shorter_than_a_second_seam() -> None:
    # Two wafers, one above the other. Between (1,0) and (1,2) lies a dead die: through the other wafer there are
    # 1 + 2 + 1 links, two of them over the seam; around it on the same wafer there are 4.
    mesh = Mesh(4, 3, 2, 3, disabled_dies=frozenset({(1, 1)}))
    assert seam_hops(mesh, [(1, 0), (1, 2)], 9)[0, 1] == 4
    blocked = Mesh(4, 3, 2, 3, disabled_dies=frozenset({(1, 1), (0, 1)}))
    assert seam_hops(blocked, [(1, 0), (1, 2)], 9)[0, 1] == 2 + 2 * 9


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), seam=st.integers(1, 9))
def test_never_shorter_than_hops_and_a_metric(seed: int, seam: int) -> None:
    rng = np.random.default_rng(seed)
    dead = frozenset({(int(rng.integers(4)), int(rng.integers(4)))}) if rng.random() < 0.7 else frozenset()
    mesh = Mesh(4, 4, 2, 2, disabled_dies=dead)
    dies = list(mesh.live_dies)
    hops = seam_hops(mesh, dies, seam)
    plain = seam_hops(mesh, dies, 1)
    assert (hops >= plain).all()
    assert (hops <= seam * plain).all()
    assert (hops == hops.T).all()
    assert all((hops[:, [via]] + hops[[via], :] >= hops).all() for via in range(len(dies)))
    for i, j in ((0, len(dies) - 1), (1, len(dies) // 2)):
        route = mesh.route(dies[i], dies[j])
        assert hops[i, j] <= sum(seam if mesh.crosses_wafers(link) else 1 for link in route)


def test_dies_without_a_path_are_named() -> None:
    mesh = Mesh(1, 4, 1, 2, disabled_dies=frozenset({(0, 1)}))
    with pytest.raises(ValueError, match=r"\(0, 0\) to die \(0, 2\)"):
        seam_hops(mesh, mesh.live_dies, 3)


def test_seams_count_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        seam_hops(Mesh(1, 2, 1, 1), [(0, 0), (0, 1)], 0)
