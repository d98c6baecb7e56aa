"""The assignment problem in whole numbers, for bounds that must not lose a unit to rounding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from formulations.placement.compiled import part

Ints = npt.NDArray[np.int64]

UNREACHED = np.int64(1) << 62


@part
def assign(costs: Ints, rows: int, columns: int, row_potential: Ints, column_potential: Ints) -> int:
    """Least sum of an assignment of all rows to different columns, rows <= columns.

    Shortest augmenting paths with potentials (Kuhn 1955; Jonker and Volgenant 1987). Only the upper left corner of
    `costs` is read. On return ``costs[i, j] - row_potential[i] - column_potential[j] >= 0`` everywhere: by so much the
    sum rises at least if row i goes to column j.
    """
    row_of = np.full(columns + 1, -1, dtype=np.int64)  # the last column is where each search begins
    came_from = np.empty(columns + 1, dtype=np.int64)
    least = np.empty(columns + 1, dtype=np.int64)
    done = np.empty(columns + 1, dtype=np.bool_)
    row_potential[:rows] = 0
    column_potential[: columns + 1] = 0
    for row in range(rows):
        row_of[columns] = row
        column = columns
        least[:] = UNREACHED
        done[:] = False
        while row_of[column] >= 0:
            done[column] = True
            here = row_of[column]
            step = UNREACHED
            following = columns
            for other in range(columns):
                if done[other]:
                    continue
                reduced = costs[here, other] - row_potential[here] - column_potential[other]
                if reduced < least[other]:
                    least[other] = reduced
                    came_from[other] = column
                if least[other] < step:
                    step = least[other]
                    following = other
            for other in range(columns + 1):
                if done[other]:
                    row_potential[row_of[other]] += step
                    column_potential[other] -= step
                else:
                    least[other] -= step
            column = following
        while column != columns:
            row_of[column] = row_of[came_from[column]]
            column = came_from[column]
    total = 0
    for column in range(columns):
        if row_of[column] >= 0:
            total += costs[row_of[column], column]
    return total
