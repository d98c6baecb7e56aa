"""Routes between many dies at once, those that ``Mesh.route`` finds one by one (spec section 3, ``link_fifo``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from instances.grid import neighbour_table
from instances.mesh import Die, Mesh, Routing
from solver.simulation.compiled import compiled_entry

Ints = npt.NDArray[np.int64]


def all_routes(mesh: Mesh, dies: Sequence[Die], routing: Routing) -> tuple[Ints, Ints]:
    """Routes of a mesh or torus from each die to each: pointers, shape (D*D + 1,), and links in travel order.

    A link is the number of its first position times the number of positions, plus that of its second.

    Raises
    ------
    ValueError
        If a die is outside the grid or disabled, or two dies are not connected.
    """
    for die in dies:
        mesh.route(die, die)  # refuses what is no enabled die
    beside, positions = neighbour_table(mesh), np.array([row * mesh.columns + column for row, column in dies])
    size = np.array([mesh.rows, mesh.columns])
    torus, rows_first = mesh.topology == "torus", routing == "yx"
    pointers = np.zeros(len(dies) ** 2 + 1, dtype=np.int64)
    # Once to count the links, once to note them.
    links = np.empty(0, dtype=np.int64)
    for _ in range(2):
        links = np.empty(pointers[-1], dtype=np.int64)
        stuck = walk(beside, positions, size, torus, rows_first, pointers, links)
        if stuck >= 0:
            mesh.route(dies[stuck // len(dies)], dies[stuck % len(dies)], routing)  # says which dies, and why
    return pointers, links


@compiled_entry()
def walk(beside: Ints, dies: Ints, size: Ints, torus: bool, rows_first: bool, pointers: Ints, links: Ints) -> int:
    """Fill in the pointers, and the links if there is room for them; the pair without a path, or -1."""
    count, positions, columns = dies.shape[0], beside.shape[0], size[1]
    came_from = np.empty(positions, dtype=np.int64)
    queue = np.empty(positions, dtype=np.int64)
    noted = links.shape[0] > 0
    total = 0
    for source in range(count):
        searched = False
        for target in range(count):
            start, goal = dies[source], dies[target]
            here, length = start, 0
            for turn in range(2):
                along_rows = (turn == 0) == rows_first
                axis = 0 if along_rows else 1
                at, to = (here // columns, goal // columns) if along_rows else (here % columns, goal % columns)
                ahead = (to - at) % size[axis]
                up = 2 * ahead <= size[axis] if torus else to > at
                side = (2 if up else 3) if along_rows else (0 if up else 1)
                steps = (ahead if up else (at - to) % size[axis]) if at != to else 0
                for _ in range(steps):
                    if here >= 0:
                        there = beside[here, side]
                        if noted and there >= 0:
                            links[total + length] = here * positions + there
                        length += 1
                        here = there
                if here < 0:
                    break
            if here < 0:
                # Something on the straight way is disabled: the first shortest path that a search meets.
                if not searched:
                    searched = True
                    came_from[:] = -1
                    came_from[start] = start
                    queue[0] = start
                    head, tail = 0, 1
                    while head < tail:
                        for side in range(4):
                            there = beside[queue[head], side]
                            if there >= 0 and came_from[there] < 0:
                                came_from[there] = queue[head]
                                queue[tail] = there
                                tail += 1
                        head += 1
                if came_from[goal] < 0:
                    stuck: int = source * count + target
                    return stuck
                length, here = 0, goal
                while here != start:
                    length += 1
                    here = came_from[here]
                here = goal
                for back in range(length if noted else 0):
                    links[total + length - 1 - back] = came_from[here] * positions + here
                    here = came_from[here]
            total += length
            pointers[source * count + target + 1] = total
    return -1
