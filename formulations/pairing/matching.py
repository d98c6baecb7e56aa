"""Pairs by graph matching: a third answer, independent of the two models.

A grouping into pairs is a perfect matching. The worst peak is the least threshold under which the pairs that stay below
it still contain one; the traffic is then a matching of least weight among them. A stage that stays alone is matched
with a stand-in.
"""

from __future__ import annotations

import networkx as nx

from formulations.pairing.problem import Group, PairingProblem
from formulations.pairing.variables import PairingTicks, in_ticks
from instances.errors import InputError

ALONE = -1
"""The stand-in for the partner of the stage that stays alone."""


def best_pairs(problem: PairingProblem) -> list[Group]:
    """Pairs, and a single stage where N is odd, with the lowest worst peak and then the least traffic.

    Raises
    ------
    InputError
        If the groups are not all pairs, but for one.
    """
    stages = problem.stages
    if problem.sizes != (2,) * (stages // 2) + (1,) * (stages % 2):
        raise InputError("sizes", list(problem.sizes), "pairs, and one single stage where their number is odd")
    ticks = in_ticks(problem)
    low, high = 0, len(ticks.peaks) - 1
    while low < high:
        middle = (low + high) // 2
        if len(nx.max_weight_matching(_graph(ticks, middle), maxcardinality=True)) == (stages + 1) // 2:
            high = middle
        else:
            low = middle + 1
    matched = nx.min_weight_matching(_graph(ticks, low))
    return sorted(tuple(sorted(stage for stage in pair if stage != ALONE)) for pair in matched)


def _graph(ticks: PairingTicks, most: int) -> nx.Graph[int]:
    """Stages, joined where their peak has at most this rank."""
    graph: nx.Graph[int] = nx.Graph()
    for group, rank, traffic in zip(ticks.groups, ticks.rank.tolist(), ticks.traffic.tolist(), strict=True):
        if rank <= most:
            first, second = group if len(group) == 2 else (ALONE, *group)
            graph.add_edge(first, second, weight=traffic)
    return graph
