"""Placement problems for tests, and the answer by trying every placement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

import numpy as np
import numpy.typing as npt

from formulations.placement.ladder_floor import structural_bound
from formulations.placement.problem import Flow, Hops, PlacementProblem, stated

Cell = tuple[int, int]


def mesh(rows: int, columns: int, dead: Sequence[Cell] = ()) -> tuple[list[Cell], Hops]:
    """Live cells in row order and their hops along live cells."""
    cells = [(row, column) for row in range(rows) for column in range(columns) if (row, column) not in dead]
    return cells, _shortest(cells, [(a, b, 1) for a in cells for b in cells if _apart(a, b) == 1])


def mesh_hops(rows: int, columns: int) -> Hops:
    """Hops on a whole mesh of any size."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    hops: Hops = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
    return hops


def seamed(rows: int, columns: int, seam: int) -> tuple[list[Cell], Hops]:
    """Two wafers of rows x columns side by side; a hop from one to the other counts as `seam`."""
    cells, _ = mesh(rows, 2 * columns)
    steps = [
        (a, b, seam if (a[1] < columns) != (b[1] < columns) else 1) for a in cells for b in cells if _apart(a, b) == 1
    ]
    return cells, _shortest(cells, steps)


def _apart(a: Cell, b: Cell) -> int:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def _shortest(cells: Sequence[Cell], steps: Sequence[tuple[Cell, Cell, int]]) -> Hops:
    size = len(cells)
    hops = np.full((size, size), 10_000, dtype=np.int64)
    np.fill_diagonal(hops, 0)
    for a, b, length in steps:
        hops[cells.index(a), cells.index(b)] = length
    for middle in range(size):
        hops = np.minimum(hops, hops[:, [middle]] + hops[[middle], :])
    return hops


def pipeline(stages: int, weight: float = 1.0) -> list[Flow]:
    """Flows from each stage to the next."""
    return [(s, s + 1, weight) for s in range(stages - 1)]


def cross_half(stages: int) -> list[tuple[int, int]]:
    """Pairs (i, i + N/2)."""
    return [(i, i + stages // 2) for i in range(stages // 2)]


def mocap_flows(stages: int, pair_weight: float = 1.0) -> list[Flow]:
    """Pipeline and pair flows."""
    return pipeline(stages) + [(i, j, pair_weight) for i, j in cross_half(stages)]


def ladder_problem(
    cells: Sequence[Cell], hops: Hops, stages: int | None = None, forced: bool = False
) -> PlacementProblem:
    """Pipeline and pair flows of weight 1, on all dies unless said otherwise."""
    number = len(cells) if stages is None else stages
    return stated(hops, mocap_flows(number), number, cells, cross_half(number) if forced else ())


def random_problem(seed: int, most_dies: int = 6) -> PlacementProblem:
    """A tiny mesh, perhaps with a dead die, a seam or another metric; a ladder, a chain or any flows; perhaps pairs."""
    rng = np.random.default_rng(seed)
    cells, hops = _random_metric(rng, most_dies)
    on_mesh = rng.random() < 0.75
    if not on_mesh:
        hops = rng.integers(int(rng.integers(0, 2)), 5, hops.shape)
        hops = np.minimum(hops, hops.T) if rng.random() < 0.5 else hops
    stages = int(rng.integers(2, len(cells) + 1))
    shape = rng.random()
    if shape < 0.4:
        flows = [(s, t, float(rng.choice([1.0, 1.0, 0.25, 3.0]))) for s, t, _ in mocap_flows(stages)]
    elif shape < 0.5:
        flows = pipeline(stages)
    else:
        flows = [(s, t, float(rng.integers(0, 6))) for s, t in permutations(range(stages), 2)]
    pairs = cross_half(stages) if rng.random() < 0.4 else []
    return stated(hops, flows, stages, cells if on_mesh else None, pairs)


def _random_metric(rng: np.random.Generator, most_dies: int) -> tuple[list[Cell], Hops]:
    shapes = [shape for shape in ((1, 4), (2, 2), (2, 3), (3, 2), (2, 4), (3, 3)) if shape[0] * shape[1] <= most_dies]
    rows, columns = shapes[int(rng.integers(len(shapes)))]
    kind = rng.random()
    if kind < 0.25 and columns % 2 == 0:
        return seamed(rows, columns // 2, int(rng.integers(2, 6)))
    if kind < 0.5 and rows > 1:
        return mesh(rows, columns, [(0, columns // 2)])
    cells, hops = mesh(rows, columns)
    return cells, hops * int(rng.integers(1, 4)) if kind > 0.9 else hops


@lru_cache(maxsize=16)
def every_placement(dies: int, stages: int) -> npt.NDArray[np.int8]:
    """Shape (placements, N): all ways to put the stages on different dies."""
    return np.array(list(permutations(range(dies), stages)), dtype=np.int8)


def brute_force(problem: PlacementProblem) -> float | None:
    """Least value over all placements; None where partners cannot all be adjacent."""
    tried = every_placement(problem.dies, problem.stages)
    possible = np.ones(len(tried), dtype=np.bool_)
    for i, j in problem.pairs:
        possible &= problem.hops[tried[:, i], tried[:, j]] == 1
    tried = tried[possible]
    # Weights here are multiples of 1/4, so sums are exact.
    values = sum(
        (weight * problem.hops[tried[:, s], tried[:, t]] for s, t, weight in problem.flows), np.zeros(len(tried))
    )
    return float(values.min()) if len(tried) else None


def shape_bound(problem: PlacementProblem) -> int:
    """The structural bound of a problem that has placements, in ticks."""
    bound = structural_bound(problem)
    assert bound is not None
    return bound
