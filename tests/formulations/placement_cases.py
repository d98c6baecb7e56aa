"""Placement problems for tests, and the answer by trying every placement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from formulations.placement.problem import Flow, Hops, PlacementProblem, stated

Cell = tuple[int, int]


def mesh(rows: int, columns: int, dead: Sequence[Cell] = ()) -> tuple[list[Cell], Hops]:
    """Live cells in row order and their hops along live cells."""
    cells = [(row, column) for row in range(rows) for column in range(columns) if (row, column) not in dead]
    size = len(cells)
    hops = np.full((size, size), size * size, dtype=np.int64)
    for d, (row, column) in enumerate(cells):
        hops[d, d] = 0
        for e, (other_row, other_column) in enumerate(cells):
            if abs(row - other_row) + abs(column - other_column) == 1:
                hops[d, e] = 1
    for middle in range(size):
        hops = np.minimum(hops, hops[:, [middle]] + hops[[middle], :])
    return cells, hops


def pipeline(stages: int, weight: float = 1.0) -> list[Flow]:
    """Flows from each stage to the next."""
    return [(s, s + 1, weight) for s in range(stages - 1)]


def cross_half(stages: int) -> list[tuple[int, int]]:
    """Pairs (i, i + N/2)."""
    return [(i, i + stages // 2) for i in range(stages // 2)]


def mocap_flows(stages: int, pair_weight: float = 1.0) -> list[Flow]:
    """Pipeline and pair flows."""
    return pipeline(stages) + [(i, j, pair_weight) for i, j in cross_half(stages)]


def random_problem(seed: int) -> PlacementProblem:
    """2x2 or 2x3 mesh, perhaps with a dead die or another metric, few stages, random flows, perhaps pairs."""
    rng = np.random.default_rng(seed)
    dead = [(0, 1)] if rng.random() < 0.3 else []
    cells, hops = mesh(2, int(rng.integers(2, 4)), dead)
    stages = int(rng.integers(2, len(cells) + 1))
    on_mesh = rng.random() < 0.7
    if not on_mesh:
        hops = rng.integers(1, 5, hops.shape)
    flows = [(int(s), int(t), float(rng.integers(0, 6))) for s, t in permutations(range(stages), 2)]
    pairs = cross_half(stages) if rng.random() < 0.4 else []
    return stated(hops, flows, stages, cells if on_mesh else None, pairs)


def brute_force(problem: PlacementProblem) -> float | None:
    """Least value over all placements; None where partners cannot all be adjacent."""
    values = [
        problem.value(placement)
        for placement in permutations(range(problem.dies), problem.stages)
        if not problem.violations(placement)
    ]
    return min(values, default=None)
