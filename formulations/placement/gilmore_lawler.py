"""Gilmore-Lawler bound of a placement problem (Gilmore 1962, Lawler 1963).

If stage s lies on die d, its flows cost at least the smallest scalar product of its weights with the distances from d:
the largest weight times the shortest distance, and so on. These costs make an assignment problem of stages to dies
whose optimum no placement beats.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from formulations.placement.problem import PlacementProblem

Matrix = npt.NDArray[np.float64]


def gilmore_lawler_bound(problem: PlacementProblem) -> float:
    """Lower bound on the sum of weight*hops."""
    weights = np.zeros((problem.stages, problem.stages))
    for s, t, weight in problem.flows:
        weights[s, t] += weight
    if (problem.hops == problem.hops.T).all():
        # Direction does not matter then, and equal halves on both sides give the better bound.
        weights = (weights + weights.T) / 2
    costs = np.zeros((problem.dies, problem.dies))  # rows beyond the stages stand for empty dies
    costs[: problem.stages] = _least_costs(weights, problem.hops.astype(np.float64))
    return float(assignment_value(costs))


def _least_costs(weights: Matrix, hops: Matrix) -> Matrix:
    """Smallest scalar product per stage and die, shape (stages, dies)."""
    stages, dies = weights.shape[0], hops.shape[0]
    others = ~np.eye(stages, dtype=bool)
    largest_first = -np.sort(-weights[others].reshape(stages, stages - 1), axis=1)
    nearest_first = np.sort(hops[~np.eye(dies, dtype=bool)].reshape(dies, dies - 1), axis=1)[:, : stages - 1]
    products: Matrix = largest_first @ nearest_first.T
    return products


@numba.njit(cache=True)
def assignment_value(costs: Matrix) -> float:
    """Least sum of an assignment of rows to columns, square matrix: shortest augmenting paths with potentials."""
    size = costs.shape[0]
    row_potential = np.zeros(size + 1)
    column_potential = np.zeros(size + 1)
    row_of = np.full(size + 1, -1, dtype=np.int64)  # column `size` is where each search begins
    for row in range(size):
        row_of[size] = row
        column = size
        least = np.full(size + 1, np.inf)
        came_from = np.full(size + 1, size, dtype=np.int64)
        done = np.zeros(size + 1, dtype=np.bool_)
        while row_of[column] >= 0:
            done[column] = True
            here = row_of[column]
            step = np.inf
            following = size
            for other in range(size):
                if done[other]:
                    continue
                reduced = costs[here, other] - row_potential[here] - column_potential[other]
                if reduced < least[other]:
                    least[other] = reduced
                    came_from[other] = column
                if least[other] < step:
                    step = least[other]
                    following = other
            for other in range(size + 1):
                if done[other]:
                    row_potential[row_of[other]] += step
                    column_potential[other] -= step
                else:
                    least[other] -= step
            column = following
        while column != size:
            row_of[column] = row_of[came_from[column]]
            column = came_from[column]
    value = 0.0
    for column in range(size):
        value += costs[row_of[column], column]
    return value
