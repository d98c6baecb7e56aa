"""Permutations that keep a matrix: the known groups, and what they are used for."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from formulations.placement.automorphisms import MOST_SYMMETRIES, automorphisms
from formulations.placement.problem import stated
from formulations.placement.symmetry import moved_to_representative, representatives, symmetries
from tests.formulations.placement_cases import mesh


@pytest.mark.parametrize(
    ("rows", "columns", "dead", "count"),
    [(2, 2, [], 8), (2, 3, [], 4), (3, 3, [], 8), (2, 3, [(0, 1)], 2), (2, 3, [(0, 0)], 2), (12, 11, [], 4)],
)
def test_symmetries_of_meshes(rows: int, columns: int, dead: list[tuple[int, int]], count: int) -> None:
    # A square has eight, a rectangle four, a rectangle without the middle of one side the left-right reflection.
    # Without a corner there is a square with a tail, which may be flipped.
    cells, hops = mesh(rows, columns, dead)
    problem = stated(hops, [], 2, cells)
    found = symmetries(problem)
    assert len({tuple(permutation) for permutation in found}) == len(found) == count
    for die, first in enumerate(representatives(problem)):
        assert moved_to_representative(problem, [die])[0] == first


def test_all_permutations_that_keep_a_matrix_and_no_others() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        matrix = rng.integers(0, 2, (5, 5))
        keeping = {p for p in permutations(range(5)) if (matrix[np.ix_(p, p)] == matrix).all()}
        assert {tuple(p) for p in automorphisms(matrix)} == keeping


def test_a_hypercube_has_all_its_384_symmetries() -> None:
    # Four dimensions: each may be reflected, and they may change places, 2^4 * 4!.
    corners = np.arange(16)
    apart = np.array([[int(a ^ b).bit_count() for b in corners] for a in corners])
    assert len(automorphisms(apart)) == 384


def test_many_symmetries_are_cut_off_but_exchanges_are_all_there() -> None:
    found = automorphisms(np.ones((9, 9), dtype=np.int64))
    assert len(found) <= MOST_SYMMETRIES + 9 * 8 // 2
    exchanges = [p for p in found if sum(i != image for i, image in enumerate(p)) == 2]
    assert len(exchanges) == 9 * 8 // 2
