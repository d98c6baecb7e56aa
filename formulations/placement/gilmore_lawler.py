"""Gilmore-Lawler bound of a placement problem (Gilmore 1962, Lawler 1963).

If stage s lies on die d, its flows to stages that are not placed yet cost at least the smallest scalar product of their
weights with the distances from d to free dies: the largest weight times the shortest distance, and so on. Together with
the flows to placed stages these costs make an assignment problem of stages to dies whose optimum no placement beats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from formulations.placement import assignment
from formulations.placement.assignment import Ints, assign
from formulations.placement.compiled import entry, part
from formulations.placement.problem import PlacementProblem

Flags = npt.NDArray[np.bool_]

MOST_TOTAL = 1 << 50
"""Values of a placement stay below this; FORBIDDEN above it still leaves room to add up a hundred of them."""
FORBIDDEN = 1 << 52
"""Cost of a stage on a die where a partner is not adjacent."""


class Matrices(NamedTuple):
    """A problem as square matrices; all values and bounds are `copies` times those in ticks.

    With symmetric distances each flow is entered both ways, half a copy each: that gives the better bound.
    """

    weights: Ints
    """Shape (N, N): ticks of the flow from one stage to the other."""
    hops: Ints
    """Shape (D, D)."""
    heaviest: Ints
    """Shape (N, N - 1): the other stages by falling weight of the flow to them."""
    nearest: Ints
    """Shape (D, D - 1): the other dies by rising distance."""
    beside: Ints
    """Shape (D, D): 1 where a partner may lie."""
    partners: Ints
    """Shape (N, N): 1 where the column's stage must lie beside the row's, in this direction."""
    copies: int
    step: int
    """Every value is a whole multiple of this."""


def matrices(problem: PlacementProblem, stages: list[int], empty: int = 0) -> Matrices:
    """The problem reduced to some stages; the others must have no flows and no partners.

    `empty`: so many stages without flows are added at the end.
    """
    weights = np.pad(problem.tick_matrix[np.ix_(stages, stages)], (0, empty))
    copies = 1
    if problem.symmetric:
        weights, copies = weights + weights.T, 2
    all_partners = np.zeros_like(problem.tick_matrix)
    for i, j in problem.pairs:
        all_partners[i, j] = 1
    partners = np.pad(all_partners[np.ix_(stages, stages)], (0, empty))
    return Matrices(
        weights=np.ascontiguousarray(weights),
        hops=problem.hops,
        heaviest=_others(np.argsort(-weights, axis=1, kind="stable")),
        nearest=_others(np.argsort(problem.hops, axis=1, kind="stable")),
        beside=(problem.hops == 1).astype(np.int64),
        partners=np.ascontiguousarray(partners),
        copies=copies,
        step=copies * max(1, int(np.gcd.reduce(weights, axis=None))),
    )


def _others(order: Ints) -> Ints:
    """The columns of each row but the row itself, in the order given."""
    size = len(order)
    others: Ints = order[order != np.arange(size)[:, None]].reshape(size, size - 1).astype(np.int64)
    return others


def fits(problem: PlacementProblem) -> bool:
    """True if no sum can come near the limits of whole numbers."""
    return 2 * sum(problem.ticks) * int(problem.hops.max()) < MOST_TOTAL and problem.stages <= 1024


def gilmore_lawler_bound(problem: PlacementProblem) -> int:
    """Lower bound on the sum of weight*hops, in ticks."""
    if not problem.flows or not fits(problem):
        return 0
    data = matrices(problem, list(range(problem.stages)))
    least = least_sum(data, np.arange(problem.stages), np.arange(problem.dies))
    return int(-(-least // data.step) * data.step // data.copies)


@entry(assignment)
def least_sum(data: Matrices, stages: Ints, dies: Ints) -> int:
    """Optimum of the assignment problem where nothing is placed yet, in copies."""
    costs = np.zeros((stages.shape[0], dies.shape[0]), dtype=np.int64)
    least_costs(data, stages, dies, np.zeros_like(costs), costs)
    of_rows, of_columns = np.empty(stages.shape[0], dtype=np.int64), np.empty(dies.shape[0] + 1, dtype=np.int64)
    total: int = assign(costs, stages.shape[0], dies.shape[0], of_rows, of_columns)
    return total


@part
def least_costs(data: Matrices, free_stages: Ints, free_dies: Ints, fixed: Ints, costs: Ints) -> None:
    """Fill the corner of `costs`, free stages by free dies, with the least cost of each stage on each die.

    `fixed`, shape (N, D), holds the flows to stages that are placed.
    """
    rows, columns = free_stages.shape[0], free_dies.shape[0]
    is_free_stage = np.zeros(data.weights.shape[0], dtype=np.bool_)
    is_free_die = np.zeros(data.hops.shape[0], dtype=np.bool_)
    is_free_stage[free_stages] = True
    is_free_die[free_dies] = True
    heavy = np.zeros((rows, rows), dtype=np.int64)
    near = np.zeros((columns, rows), dtype=np.int64)
    for row in range(rows):
        _picked(data.weights, data.heaviest, free_stages[row], is_free_stage, heavy[row, : rows - 1])
    for column in range(columns):
        _picked(data.hops, data.nearest, free_dies[column], is_free_die, near[column, : rows - 1])
    for row in range(rows):
        for column in range(columns):
            total = fixed[free_stages[row], free_dies[column]]
            for k in range(rows - 1):
                if heavy[row, k] == 0:
                    break
                total += heavy[row, k] * near[column, k]
            costs[row, column] = total


@part
def _picked(matrix: Ints, order: Ints, line: int, is_free: Flags, into: Ints) -> None:
    """The first entries of a line of `matrix` in a given order of columns, free ones only."""
    found = 0
    for other in order[line]:
        if found == into.shape[0]:
            return
        if is_free[other]:
            into[found] = matrix[line, other]
            found += 1
