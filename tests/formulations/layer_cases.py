"""Layer problems for tests, and the answer by trying every split."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from formulations.layers.problem import LayerProblem, stated


def random_problem(seed: int) -> LayerProblem:
    """Up to 7 layers on up to 4 stages, whole numbers, every rule now and then."""
    rng = np.random.default_rng(seed)
    layers = int(rng.integers(1, 8))
    stages = int(rng.integers(1, min(4, layers) + 1))
    parts: dict[str, Any] = {
        "extra_s": rng.integers(0, 4, stages),
        "weight_bytes": rng.integers(0, 4, layers),
        "kv_bytes_per_token": rng.integers(0, 2, layers),
        "held_tokens": rng.integers(0, 3, layers),
        "workspace_bytes": rng.integers(0, 4, layers),
        "extra_bytes": rng.integers(0, 4, stages),
        "forbidden_cuts": [cut for cut in range(1, layers) if rng.random() < 0.15],
        "needed": (rng.random(layers) < 0.7).tolist() if rng.random() < 0.4 else None,
        "capacity_bytes": rng.integers(5, 25, stages) if rng.random() < 0.7 else None,
    }
    if rng.random() < 0.4:
        parts.update(memory="excess", capacity_bytes=rng.integers(3, 15, stages))
    by_stage = rng.random() < 0.3
    return stated(rng.integers(0, 6, (stages, layers) if by_stage else layers), stages, **parts)


def every_split(layers: int, stages: int) -> Iterator[tuple[int, ...]]:
    """Layers per stage, at least one each."""
    for cuts in combinations(range(1, layers), stages - 1):
        yield tuple(stop - start for start, stop in pairwise((0, *cuts, layers)))


def brute_force(problem: LayerProblem) -> tuple[float, float] | None:
    """Slowest stage and then memory of the best split; None where no split keeps the rules."""
    splits = [split for split in every_split(problem.layers, problem.stages) if not problem.violations(split)]
    return min(((problem.slowest_s(split), problem.memory_bytes(split)) for split in splits), default=None)
