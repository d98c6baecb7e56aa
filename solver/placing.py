"""Placements for a search: pipeline neighbours close together, partners side by side where the mesh admits it."""

from __future__ import annotations

import numpy as np

from formulations.interface import EngineLimits
from formulations.placement.place import PlacementResult, place
from formulations.placement.problem import Flow
from formulations.structure import islands
from solver.backends.cpsat import solve_cpsat
from solver.search import Placement, Search

MOST_ENGINE_S = 5.0
"""Seconds for one placement at most; it is proved optimal in less on a 4x4 mesh."""


def pipeline_placement(search: Search) -> Placement:
    """Fewest hops between successive stages."""
    return _remembered(search, ())


def paired_placement(search: Search) -> Placement:
    """Fewest hops between successive stages and between cross-half partners i and i + N/2, partners on neighbours.

    Where partners cannot all be neighbours (dead dies, an odd mesh), their hops count as much as the pipeline's.
    """
    half = search.stages // 2
    return _remembered(search, tuple((stage, stage + half) for stage in range(half)))


def _remembered(search: Search, pairs: tuple[tuple[int, int], ...]) -> Placement:
    """Placements are looked for once a search; those that it starts share them."""
    if pairs not in search.placements:
        search.placements[pairs] = _placed(search, pairs)
    return search.placements[pairs]


def _placed(search: Search, pairs: tuple[tuple[int, int], ...]) -> Placement:
    mesh = search.instance.hardware.mesh()
    dies = islands(search.instance)[0]
    hops = np.array([[mesh.hops(a, b) for b in dies] for a in dies])
    flows: list[Flow] = [(stage, stage + 1, 1.0) for stage in range(search.stages - 1)]
    flows += [(i, j, 1.0) for i, j in pairs]

    def attempt(adjacent: bool) -> PlacementResult:
        limits = EngineLimits(
            time_s=search.deadline.share(0.15, MOST_ENGINE_S),
            workers=search.limits.workers,
            seed=search.seed,
            deterministic=search.limits.deterministic,
        )
        found = place(
            hops,
            flows,
            search.stages,
            dies_rc=dies,
            pairs=pairs,
            pair_adjacent=adjacent,
            limits=limits,
            engine=solve_cpsat,
            rng=np.random.default_rng(search.seed),
        )
        if found.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return found

    found = attempt(adjacent=bool(pairs))
    if found.placement is None:
        found = attempt(adjacent=False)
    assert found.placement is not None  # constructed placements always exist without adjacency
    return tuple(dies[die] for die in found.placement)
