"""Symmetries of the mesh, for breaking them in the models.

A mesh may keep its distances under reflections and, if square, under transposition. Each placement can then be moved
so that stage 0 lies on the first die of its orbit without a change of value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formulations.placement.problem import PlacementProblem


def symmetries(problem: PlacementProblem) -> list[list[int]]:
    """Permutations of the dies that keep all distances, out of the eight of a square; the identity comes first."""
    identity = list(range(problem.dies))
    found = [identity]
    if problem.dies_rc is None:
        return found
    die_at = {cell: die for die, cell in enumerate(problem.dies_rc)}
    low_row, low_column = (min(cell[axis] for cell in die_at) for axis in (0, 1))
    high_row, high_column = (max(cell[axis] for cell in die_at) for axis in (0, 1))
    for number in range(1, 8):
        images = []
        for row, column in problem.dies_rc:
            row = low_row + high_row - row if number & 1 else row
            column = low_column + high_column - column if number & 2 else column
            if number & 4:
                row, column = column - low_column + low_row, row - low_row + low_column
            images.append(die_at.get((row, column), -1))
        if sorted(images) == identity and (problem.hops[np.ix_(images, images)] == problem.hops).all():
            found.append(images)
    return found


def representatives(problem: PlacementProblem) -> list[int]:
    """For each die the first die of its orbit."""
    return [min(images) for images in zip(*symmetries(problem), strict=True)]


def moved_to_representative(problem: PlacementProblem, placement: Sequence[int]) -> list[int]:
    """The placement moved by a symmetry so that stage 0 lies on the first die of its orbit."""
    images = min(symmetries(problem), key=lambda permutation: permutation[placement[0]])
    return [images[die] for die in placement]
