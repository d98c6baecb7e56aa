"""What it costs a ladder to cross the seams between wafers.

Where hops over a seam count more than others, dies fall into islands whose inner steps are one hop, and every distance
between islands is longer than rows and columns say by some least surplus. The flows that cross then cost at least that
surplus each, beside what their rows and columns cost. How many flows must cross follows from how many stages lie on
each island: a ladder cut in the middle loses two rails, and the closing flow.
"""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np

from formulations.placement.assignment import Ints
from formulations.placement.ladder import Ladder
from formulations.placement.problem import Hops, PlacementProblem

IMPOSSIBLE = 1 << 52


def islands(problem: PlacementProblem) -> list[int]:
    """The island of each die, numbered from 0; all 0 where distances are no mesh."""
    if problem.mesh_hops is None:
        return [0] * problem.dies
    steps: nx.Graph[int] = nx.Graph()
    steps.add_nodes_from(range(problem.dies))
    steps.add_edges_from((int(a), int(b)) for a, b in np.argwhere(problem.hops == 1))
    found = [0] * problem.dies
    for number, island in enumerate(nx.connected_components(steps)):
        for die in island:
            found[die] = number
    return found


def surplus(hops: Hops, mesh_hops: Hops, island: list[int]) -> int:
    """The least by which a distance between islands is longer than rows and columns say; 0 with one island."""
    numbers = np.array(island)
    between = (hops - mesh_hops)[numbers[:, None] != numbers[None, :]]
    return int(between.min()) if between.size else 0


def structure_of(problem: PlacementProblem) -> tuple[Hops, list[int], int]:
    """Distances that a ladder's shape is held against, the island of each die, and the surplus between islands.

    With seams the distances are rows plus columns, and what hops over seams cost beyond that comes on top.
    """
    island = islands(problem)
    if max(island) == 0 or problem.mesh_hops is None:
        return problem.hops, [0] * problem.dies, 0
    return problem.mesh_hops, island, surplus(problem.hops, problem.mesh_hops, island)


def crossing_cost(ladder: Ladder) -> Ints:
    """Least weight of the flows that cross between an island and the rest, after each rung.

    Returns
    -------
    Shape (h, 2, 2, 2, 2h + 1): after rung k, with its ends and the second end of rung 0 inside (1) or outside (0), and
    so many stages of later rungs inside; ticks, IMPOSSIBLE where there are not so many.
    """
    ends = [(0, 0), (1, 1)] if ladder.forced else list(product((0, 1), repeat=2))
    least = np.full((ladder.rungs, 2, 2, 2, 2 * ladder.rungs + 1), IMPOSSIBLE, dtype=np.int64)
    for first, second, home in product((0, 1), repeat=3):
        least[-1, first, second, home, 0] = ladder.closing * (first != home)
    for k in range(ladder.rungs - 2, -1, -1):
        first_rail, second_rail = (int(weight) for weight in ladder.rails[k])
        for first, second, home in product((0, 1), repeat=3):
            for a, b in ends:
                crossing = first_rail * (first != a) + second_rail * (second != b) + int(ladder.rung[k + 1]) * (a != b)
                inside = a + b
                options = crossing + np.roll(least[k + 1, a, b, home], inside)
                options[:inside] = IMPOSSIBLE
                row = least[k, first, second, home]
                np.minimum(row, options, out=row)
    return least
