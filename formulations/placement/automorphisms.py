"""Permutations that leave a matrix as it is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt

MOST_SYMMETRIES = 1000
MOST_WORK = 5_000_000
"""Entries compared in the search for them, about a second."""


def automorphisms(matrix: npt.NDArray[np.int64]) -> list[list[int]]:
    """Permutations p with ``matrix[p[i], p[j]] == matrix[i, j]``; not all of them if there are many.

    The identity comes first, then at most MOST_SYMMETRIES exchanges of two numbers, then as many of any kind, found by
    backtracking: i is mapped to numbers whose row and column hold the same entries.
    """
    size = len(matrix)
    kinds = [(tuple(np.sort(matrix[i])), tuple(np.sort(matrix[:, i])), matrix[i, i]) for i in range(size)]
    alike = [[j for j in range(size) if kinds[j] == kinds[i]] for i in range(size)]
    identity = list(range(size))
    found: list[list[int]] = []
    images: list[int] = []
    untried = [list(reversed(alike[0]))]
    for _ in range(MOST_WORK // size):
        if not untried or len(found) == MOST_SYMMETRIES:
            break
        if not untried[-1]:
            untried.pop()
            if images:
                images.pop()
            continue
        candidate = untried[-1].pop()
        i = len(images)
        if candidate in images:
            continue
        known = [*images, candidate]
        if (matrix[candidate, known] != matrix[i, : i + 1]).any() or (
            matrix[known, candidate] != matrix[: i + 1, i]
        ).any():
            continue
        if i + 1 == size:
            found.append(known)
            continue
        images.append(candidate)
        untried.append(list(reversed(alike[i + 1])))
    exchanges = list(islice(_exchanges(matrix, alike), MOST_SYMMETRIES))
    return [identity, *exchanges, *(known for known in found if known != identity and known not in exchanges)]


def _exchanges(matrix: npt.NDArray[np.int64], alike: list[list[int]]) -> Iterator[list[int]]:
    """Exchanges of two numbers that leave the matrix as it is, those closest to each other first."""
    size = len(matrix)
    later = [[j for j in others if j > i] for i, others in enumerate(alike)]
    for apart in range(max(map(len, later), default=0)):
        for i, others in enumerate(later):
            if apart < len(others) and _exchangeable(matrix, i, others[apart]):
                images = list(range(size))
                images[i], images[others[apart]] = others[apart], i
                yield images


def _exchangeable(matrix: npt.NDArray[np.int64], i: int, j: int) -> bool:
    rest = np.ones(len(matrix), dtype=np.bool_)
    rest[[i, j]] = False
    return bool(
        matrix[i, j] == matrix[j, i]
        and matrix[i, i] == matrix[j, j]
        and (matrix[i] == matrix[j])[rest].all()
        and (matrix[:, i] == matrix[:, j])[rest].all()
    )
