"""The compiled part of `branch`: a depth-first tree whose whole state lies in arrays, so that it can stop anywhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formulations.placement import assignment, gilmore_lawler, symmetry_kernel
from formulations.placement.assignment import Ints, assign
from formulations.placement.compiled import entry, part
from formulations.placement.gilmore_lawler import FORBIDDEN, Matrices, least_costs
from formulations.placement.symmetry_kernel import NEVER, Symmetry, break_symmetry, mend_symmetry

# Places in `Tree.scalars`.
DEPTH, IS_NEW, PARENT, REACHED, NODES = range(5)


class Tree(NamedTuple):
    """State of the search. At depth k, k stages are placed; the children of the node there place one more."""

    stage_at: Ints
    die_at: Ints
    fixed: Ints
    """Shape (N + 1, N, D): per depth, the cost of each free stage on each free die towards the placed stages."""
    paid: Ints
    """Shape (N + 1,): value of the placed stages."""
    child_stage: Ints
    child_die: Ints
    child_bound: Ints
    """Shape (N + 1, D), by rising bound."""
    child_count: Ints
    child_next: Ints
    best: Ints
    """Shape (N,): dies of the best placement found, -1 while there is none."""
    scalars: Ints


def new_tree(data: Matrices, reached: int) -> Tree:
    """Nothing is placed yet; only values below `reached` are of interest."""
    stages, dies = data.weights.shape[0], data.hops.shape[0]
    shape = (stages + 1, dies)
    scalars = np.array([0, 1, 0, reached, 0], dtype=np.int64)
    zeros = np.zeros
    return Tree(
        zeros(stages, np.int64),
        zeros(stages, np.int64),
        zeros((stages + 1, stages, dies), np.int64),
        zeros(stages + 1, np.int64),
        zeros(shape, np.int64),
        zeros(shape, np.int64),
        zeros(shape, np.int64),
        zeros(stages + 1, np.int64),
        zeros(stages + 1, np.int64),
        np.full(stages, -1, dtype=np.int64),
        scalars,
    )


@entry(assignment, gilmore_lawler, symmetry_kernel)
def advance(data: Matrices, tree: Tree, of_dies: Symmetry, of_stages: Symmetry, nodes: int) -> bool:
    """Search so many nodes further; True if the tree is exhausted."""
    scalars = tree.scalars
    last = scalars[NODES] + nodes
    while True:
        depth = scalars[DEPTH]
        if scalars[IS_NEW]:
            scalars[IS_NEW] = 0
            scalars[NODES] += 1
            _examine(data, tree, of_dies, of_stages)
            if scalars[NODES] >= last:
                return False
        elif tree.child_next[depth] < tree.child_count[depth]:
            child = tree.child_next[depth]
            tree.child_next[depth] += 1
            if rounded_up(data, tree.child_bound[depth, child]) < scalars[REACHED]:
                _step_down(data, tree, of_dies, of_stages, child)
        elif depth == 0:
            return True
        else:
            scalars[DEPTH] = depth - 1
            mend_symmetry(of_dies.broken_at, depth - 1)
            mend_symmetry(of_stages.broken_at, depth - 1)


@entry()
def proved(data: Matrices, tree: Tree) -> int:
    """No placement has a smaller value: the least bound of a child that is still open, or the best value."""
    least: int = tree.scalars[REACHED]
    for depth in range(tree.scalars[DEPTH] + 1):
        for child in range(tree.child_next[depth], tree.child_count[depth]):
            least = min(least, rounded_up(data, tree.child_bound[depth, child]))
    return least


@part
def rounded_up(data: Matrices, bound: int) -> int:
    """The next value that a placement can have."""
    return -(-bound // data.step) * data.step


@part
def _examine(data: Matrices, tree: Tree, of_dies: Symmetry, of_stages: Symmetry) -> None:
    """Bound the node, then list its children, or note the placement if it is complete."""
    depth = tree.scalars[DEPTH]
    stages, dies = data.weights.shape[0], data.hops.shape[0]
    tree.child_count[depth] = 0
    tree.child_next[depth] = 0
    if depth == stages:
        if tree.paid[depth] < tree.scalars[REACHED]:
            tree.scalars[REACHED] = tree.paid[depth]
            tree.best[tree.stage_at] = tree.die_at
        return
    free_stages = _missing(tree.stage_at[:depth], stages)
    free_dies = _missing(tree.die_at[:depth], dies)
    rows, columns = free_stages.shape[0], free_dies.shape[0]
    costs = np.empty((rows, columns), dtype=np.int64)
    least_costs(data, free_stages, free_dies, tree.fixed[depth], costs)
    row_potential = np.empty(rows, dtype=np.int64)
    column_potential = np.empty(columns + 1, dtype=np.int64)
    assigned = tree.paid[depth] + assign(costs, rows, columns, row_potential, column_potential)
    parent = tree.scalars[PARENT]
    if rounded_up(data, max(assigned, parent)) >= tree.scalars[REACHED]:
        return
    # From here on `costs` holds the bound of each child.
    for row in range(rows):
        for column in range(columns):
            reduced = costs[row, column] - row_potential[row] - column_potential[column]
            costs[row, column] = max(parent, assigned + reduced)
    die_is_first = _firsts(of_dies, free_dies)
    stage_is_first = _firsts(of_stages, free_stages)
    by_row, line = _fewest_children(data, costs, tree.scalars[REACHED], stages == dies, die_is_first)
    for other in range(columns if by_row else rows):
        row, column = (line, other) if by_row else (other, line)
        open_ = die_is_first[column] if by_row else stage_is_first[row]
        if open_ and rounded_up(data, costs[row, column]) < tree.scalars[REACHED]:
            _add_child(tree, depth, free_stages[row], free_dies[column], costs[row, column])


@part
def _fewest_children(data: Matrices, bounds: Ints, reached: int, full: bool, die_is_first: Ints) -> tuple[bool, int]:
    """The stage (True, row) or, if all dies are needed, the die (False, column) with the fewest ways to go on.

    Of those with as few, the one whose children have the larger bounds. Symmetries of the stages do not count here:
    they would lead to dies with few children that decide little.
    """
    rows, columns = bounds.shape
    row_count, row_sum = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    column_count, column_sum = np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    for row in range(rows):
        for column in range(columns):
            if rounded_up(data, bounds[row, column]) < reached:
                row_count[row] += die_is_first[column]
                row_sum[row] += die_is_first[column] * bounds[row, column]
                column_count[column] += 1
                column_sum[column] += bounds[row, column]
    by_row, line = True, 0
    fewest, largest = row_count[0], row_sum[0]
    for row in range(1, rows):
        if row_count[row] < fewest or (row_count[row] == fewest and row_sum[row] > largest):
            fewest, largest, line = row_count[row], row_sum[row], row
    if full:
        for column in range(columns):
            if column_count[column] < fewest or (column_count[column] == fewest and column_sum[column] > largest):
                fewest, largest, line, by_row = column_count[column], column_sum[column], column, False
    return by_row, line


@part
def _add_child(tree: Tree, depth: int, stage: int, die: int, bound: int) -> None:
    """Insert a child by its bound."""
    place = tree.child_count[depth]
    tree.child_count[depth] += 1
    while place > 0 and tree.child_bound[depth, place - 1] > bound:
        tree.child_stage[depth, place] = tree.child_stage[depth, place - 1]
        tree.child_die[depth, place] = tree.child_die[depth, place - 1]
        tree.child_bound[depth, place] = tree.child_bound[depth, place - 1]
        place -= 1
    tree.child_stage[depth, place] = stage
    tree.child_die[depth, place] = die
    tree.child_bound[depth, place] = bound


@part
def _step_down(data: Matrices, tree: Tree, of_dies: Symmetry, of_stages: Symmetry, child: int) -> None:
    """Place the stage of a child and enter its node."""
    depth = tree.scalars[DEPTH]
    stage, die = tree.child_stage[depth, child], tree.child_die[depth, child]
    tree.stage_at[depth], tree.die_at[depth] = stage, die
    tree.paid[depth + 1] = tree.paid[depth] + tree.fixed[depth, stage, die]
    here, there = tree.fixed[depth], tree.fixed[depth + 1]
    for other in range(data.weights.shape[0]):
        forth, back = data.weights[stage, other], data.weights[other, stage]
        partner, follower = data.partners[stage, other], data.partners[other, stage]
        for place in range(data.hops.shape[0]):
            there[other, place] = here[other, place] + forth * data.hops[die, place] + back * data.hops[place, die]
            if (partner and not data.beside[die, place]) or (follower and not data.beside[place, die]):
                there[other, place] = FORBIDDEN
    break_symmetry(of_dies.images, of_dies.broken_at, die, depth)
    break_symmetry(of_stages.images, of_stages.broken_at, stage, depth)
    tree.scalars[PARENT] = tree.child_bound[depth, child]
    tree.scalars[DEPTH] = depth + 1
    tree.scalars[IS_NEW] = 1


@part
def _missing(taken: Ints, size: int) -> Ints:
    """Numbers below `size` that are not taken."""
    is_free = np.ones(size, dtype=np.bool_)
    is_free[taken] = False
    return np.flatnonzero(is_free)


@part
def _firsts(symmetry: Symmetry, free: Ints) -> Ints:
    """1 for each that no unbroken permutation moves to a smaller one: the others need not be tried."""
    first = np.ones(free.shape[0], dtype=np.int64)
    for number in range(symmetry.images.shape[0]):
        if symmetry.broken_at[number] == NEVER:
            for k in range(free.shape[0]):
                if symmetry.images[number, free[k]] < free[k]:
                    first[k] = 0
    return first
