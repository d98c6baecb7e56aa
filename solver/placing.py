"""Placements for a search: pipeline neighbours close together, partners side by side where the mesh admits it."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from formulations.interface import EngineLimits
from formulations.placement.distances import compact, hop_table
from formulations.placement.place import PlacementResult, place
from formulations.placement.problem import Flow
from formulations.structure import islands
from instances.mesh import Die
from solver.backends.cpsat import solve_cpsat
from solver.search import Placement, Search

MOST_ENGINE_S = 5.0
"""Seconds for one placement at most; it is proved optimal in less on a 4x4 mesh."""
MOST_ENGINE_CHOICES = 64 * 64
"""Stages times dies up to which an engine is asked: for more, building the model alone takes seconds."""
MOST_DIES = 64
"""Dies up to which all are looked at, or twice as many as there are stages; of more, those in a compact window."""


def pipeline_placement(search: Search) -> Placement:
    """Fewest hops between successive stages."""
    return _remembered(search, ())


def paired_placement(search: Search) -> Placement:
    """As ``partner_placement`` for the cross-half partners i and i + N/2."""
    half = search.stages // 2
    return partner_placement(search, tuple((stage, stage + half) for stage in range(half)))


def partner_placement(search: Search, pairs: tuple[tuple[int, int], ...]) -> Placement:
    """Fewest hops between successive stages and between partners, partners on neighbours.

    Where partners cannot all be neighbours (dead dies, an odd mesh), their hops count as much as the pipeline's.
    """
    return _remembered(search, pairs)


def _remembered(search: Search, pairs: tuple[tuple[int, int], ...]) -> Placement:
    """Placements are looked for once a search; those that it starts share them."""
    if pairs not in search.placements:
        search.placements[pairs] = _placed(search, pairs)
    return search.placements[pairs]


def _placed(search: Search, pairs: tuple[tuple[int, int], ...]) -> Placement:
    dies = _candidates(search)
    hops = hop_table(search.instance.hardware.mesh(), dies)
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
            engine=solve_cpsat if len(dies) * search.stages <= MOST_ENGINE_CHOICES else None,
            rng=np.random.default_rng(search.seed),
        )
        if found.stop_reason == "interrupted":
            raise KeyboardInterrupt
        if found.stop_reason == "time_limit":
            search.deadline.cut_short()
        return found

    found = attempt(adjacent=bool(pairs))
    if found.placement is None:
        found = attempt(adjacent=False)
    assert found.placement is not None  # constructed placements always exist without adjacency
    return tuple(dies[die] for die in found.placement)


def _candidates(search: Search) -> list[Die]:
    """Dies to choose among: joined, large enough for every stage if enough are, and close together if they are many."""
    hardware, cost, layers = search.instance.hardware, search.instance.stage_cost, search.instance.model.layer_count
    dies = islands(search.instance)[0]
    split = search.instance.fixed_layers
    if split is not None and hardware.largest_memories[-1] < hardware.largest_memories[0]:
        parts = zip(accumulate(split), split, strict=True)
        heaviest = max(cost.weight_bytes(stop - n, stop, stop == n, stop == layers) for stop, n in parts)
        roomy = [die for die in dies if hardware.die_at(die).hbm_bytes > heaviest]
        dies = roomy if len(roomy) >= search.stages else dies
    if len(dies) <= max(MOST_DIES, 2 * search.stages) or hardware.topology == "switch":
        return dies
    return compact(dies, search.stages)
