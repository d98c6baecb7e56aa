"""Pairing problems for tests, and the answer by trying every grouping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from formulations.pairing.problem import Group, PairingProblem, stated


def random_problem(seed: int, size: int | None = None) -> PairingProblem:
    """Up to 7 stages, whole amounts and hops, sometimes memories that differ; groups of any size unless given."""
    rng = np.random.default_rng(seed)
    stages = int(rng.integers(1 if size is None else size, 8))
    hops = rng.integers(1, 5, (stages, stages))
    return stated(
        rng.integers(0, 6, (stages, int(rng.integers(1, 6)))),
        int(rng.integers(1, stages + 1)) if size is None else size,
        hops=hops + hops.T,
        capacity=rng.integers(1, 4, stages) if rng.random() < 0.3 else 1.0,
    )


def groupings(stages: Sequence[int], sizes: Sequence[int]) -> Iterator[list[Group]]:
    """Every way to split stages into groups of these sizes."""
    if not stages:
        yield []
        return
    first, *others = stages
    for size in sorted(set(sizes)):
        left = list(sizes)
        left.remove(size)
        for partners in combinations(others, size - 1):
            group = (first, *partners)
            for rest in groupings([stage for stage in others if stage not in partners], left):
                yield [group, *rest]


def brute_force(problem: PairingProblem) -> tuple[float, float]:
    """Lowest worst peak, and least traffic of the groupings that have it."""
    values = [problem.value(groups) for groups in groupings(range(problem.stages), problem.sizes)]
    lowest = min(peak for peak, _ in values)
    return lowest, min(traffic for peak, traffic in values if peak <= lowest * (1 + 1e-9))
