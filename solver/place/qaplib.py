"""Reads quadratic assignment problems in the format of QAPLIB: n, then two n x n matrices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from formulations.placement.problem import Flow, Hops
from instances.base import read_text
from instances.errors import InputError

Matrix = npt.NDArray[np.int64]

MOST_DIGITS = 9
MOST_SIZE = 256


@dataclass(frozen=True)
class QuadraticAssignment:
    """Minimise the sum over all i, j of first[i, j] * second[p(i), p(j)].

    Attributes
    ----------
    first, second
        Shape (n, n), whole numbers >= 0, in the order of the file.
    """

    first: Matrix
    second: Matrix

    @property
    def size(self) -> int:
        """n."""
        return len(self.first)

    def value(self, permutation: list[int]) -> int:
        """Objective of a permutation p, numbered from 1 as in QAPLIB."""
        at = np.array(permutation) - 1
        # In Python's whole numbers: products of the largest entries add up to more than 64 bits hold.
        return int((self.first.astype(object) * self.second[np.ix_(at, at)]).sum())

    def distances_first(self) -> bool:
        """Whether the first matrix is the one to take as distances.

        A grid is one, in row order; else the only metric of the two; else the one with more entries, since flows are
        often sparse.
        """
        for test in (lambda matrix: grid_of(matrix) is not None, is_metric):
            first, second = test(self.first), test(self.second)
            if first != second:
                return bool(first)
        return int((self.first > 0).sum()) > int((self.second > 0).sum())

    def placement_problem(self) -> tuple[Hops, list[Flow], list[tuple[int, int]] | None]:
        """Distances, flows over ordered pairs, and (row, column) of each place where the distances are a grid's."""
        hops, weights = (self.first, self.second) if self.distances_first() else (self.second, self.first)
        flows = [(int(i), int(j), float(weights[i, j])) for i, j in np.argwhere(weights > 0) if i != j]
        grid = grid_of(hops)
        cells = None if grid is None else [(row, column) for row in range(grid[0]) for column in range(grid[1])]
        return hops, flows, cells

    def permutation(self, placement: list[int]) -> list[int]:
        """p of a placement of the flows' indices on the distances' indices, numbered from 1."""
        if not self.distances_first():
            return [place + 1 for place in placement]
        inverse = np.argsort(placement)
        return [int(index) + 1 for index in inverse]


def read_qaplib(path: Path) -> QuadraticAssignment:
    """Read a .dat file.

    Raises
    ------
    InputError
        Names the file, and the line of a number that cannot be used.
    """
    file = str(path)
    try:
        numbers = _numbers(read_text(path))
    except InputError as error:
        raise error.in_file(file) from None
    size = numbers[0] if numbers else 0
    if not 1 <= size <= MOST_SIZE:
        raise InputError("n", size, f"the size first, a whole number from 1 to {MOST_SIZE}", file=file)
    if len(numbers) != 1 + 2 * size * size:
        raise InputError(
            "numbers after n", len(numbers) - 1, f"two matrices of {size} x {size}, {2 * size * size} in all", file=file
        )
    first, second = np.array(numbers[1:], dtype=np.int64).reshape(2, size, size)
    if np.diagonal(first).any() and np.diagonal(second).any():
        raise InputError("diagonals", "entries in both", "zeros on the diagonal of one matrix at least", file=file)
    return QuadraticAssignment(first, second)


def grid_of(matrix: Matrix) -> tuple[int, int] | None:
    """(rows, columns) if the matrix holds the Manhattan distances of a grid in row order."""
    size = len(matrix)
    for rows in range(1, size + 1):
        if size % rows == 0:
            columns = size // rows
            row, column = np.divmod(np.arange(size), columns)
            apart = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
            if (apart == matrix).all():
                return rows, columns
    return None


def is_metric(matrix: Matrix) -> bool:
    """Whether entries are symmetric, zero on the diagonal alone, and no detour is shorter."""
    off = ~np.eye(len(matrix), dtype=np.bool_)
    if (matrix != matrix.T).any() or np.diagonal(matrix).any() or not matrix[off].all():
        return False
    return all((matrix[:, [via]] + matrix[[via], :] >= matrix).all() for via in range(len(matrix)))


def _numbers(text: str) -> list[int]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        for token in line.replace(",", " ").split():
            digits = token.removesuffix(".0")
            if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
                allowed = f"whole numbers of at least 0 with at most {MOST_DIGITS} digits"
                raise InputError(f"line {number}", token, allowed)
            found.append(int(digits))
    return found
