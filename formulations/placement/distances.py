"""Hops between many dies at once, and which part of a large grid is worth looking at."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from formulations.placement.problem import Hops
from instances.grid import Ints, neighbour_table
from instances.mesh import Die, Mesh


def hop_table(mesh: Mesh, dies: Sequence[Die]) -> Hops:
    """Hops from each of the dies to each other one, as ``mesh.hops`` counts them. Shape (D, D).

    Raises
    ------
    ValueError
        If no path joins two of the dies.
    """
    cells = np.array(dies, dtype=np.int64).reshape(-1, 2)
    if mesh.topology == "switch":
        apart: Hops = (cells[:, None] != cells[None]).any(axis=2).astype(np.int64)
        return apart
    if mesh.disabled_dies or mesh.disabled_links:
        hops = hops_from_each(neighbour_table(mesh), cells @ (mesh.columns, 1))
        if (hops < 0).any():
            first, second = np.argwhere(hops < 0)[0].tolist()
            raise ValueError(f"no path from die {dies[first]} to die {dies[second]} around the disabled dies and links")
        return hops
    apart = np.abs(cells[:, None] - cells[None])
    if mesh.topology == "torus":
        apart = np.minimum(apart, (mesh.rows, mesh.columns) - apart)
    total: Hops = apart.sum(axis=2)
    return total


def compact(dies: Sequence[Die], stages: int) -> list[Die]:
    """Dies in the smallest, squarest window of the grid that holds enough of them for all stages, in row order.

    Lines of a window are even in number, so that two-wide strips cover it. All dies where no window is smaller.
    """
    cells = np.array(dies, dtype=np.int64)
    rows, columns = (cells.max(axis=0) + 1).tolist()
    # Dies above and to the left of each corner.
    before = np.zeros((rows + 1, columns + 1), dtype=np.int64)
    before[cells[:, 0] + 1, cells[:, 1] + 1] = 1
    before = before.cumsum(axis=0).cumsum(axis=1)
    side = 2
    while side < max(rows, columns):
        for height, width in ((side, side), (side, side + 2)):
            h, w = min(height, rows), min(width, columns)
            inside = before[h:, w:] - before[:-h, w:] - before[h:, :-w] + before[:-h, :-w]
            row, column = np.unravel_index(int(inside.argmax()), inside.shape)
            if inside[row, column] >= stages:
                return [die for die in dies if row <= die[0] < row + h and column <= die[1] < column + w]
        side += 2
    return list(dies)


@numba.njit(cache=True)
def hops_from_each(neighbours: Ints, dies: Ints) -> Ints:
    """Breadth-first distances from each of the dies to each; -1 where there is no path. Shape (D, D)."""
    count, positions = dies.shape[0], neighbours.shape[0]
    hops = np.full((count, count), -1, dtype=np.int64)
    wanted = np.zeros(positions, dtype=np.bool_)
    for die in dies:
        wanted[die] = True
    distance = np.empty(positions, dtype=np.int64)
    queue = np.empty(positions, dtype=np.int64)
    for source in range(count):
        distance[:] = -1
        distance[dies[source]] = 0
        queue[0] = dies[source]
        head, tail, left = 0, 1, count - 1
        while head < tail and left > 0:
            here = queue[head]
            head += 1
            for side in range(neighbours.shape[1]):
                there = neighbours[here, side]
                if there >= 0 and distance[there] < 0:
                    distance[there] = distance[here] + 1
                    queue[tail] = there
                    tail += 1
                    left -= wanted[there]
        for target in range(count):
            hops[source, target] = distance[dies[target]]
    return hops
