"""Symmetries, for breaking them in the models and searches.

A permutation of the dies that keeps all distances moves each placement to one of the same value: a mesh has
reflections, a square one transposition too, a hypercube many more. Any set of such permutations may be used, it need
not be all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from formulations.placement.problem import PlacementProblem


def symmetries(problem: PlacementProblem) -> list[list[int]]:
    """Permutations of the dies that keep all distances, the identity first."""
    return problem.symmetries


def representatives(problem: PlacementProblem) -> list[int]:
    """For each die the first to which a symmetry moves it."""
    return [min(images) for images in zip(*symmetries(problem), strict=True)]


def moved_to_representative(problem: PlacementProblem, placement: Sequence[int]) -> list[int]:
    """The placement moved by a symmetry so that stage 0 lies on the first die that can be reached."""
    images = min(symmetries(problem), key=lambda permutation: permutation[placement[0]])
    return [images[die] for die in placement]
