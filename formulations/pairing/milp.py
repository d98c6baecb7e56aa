"""Pairing as a MILP (twin of `cpsat`), one objective at a time: a set partition over all groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pulp

from formulations.interface import EngineOutcome
from formulations.pairing.problem import Group, PairingProblem
from formulations.pairing.variables import PairingTicks, in_ticks, together_name


@dataclass
class PairingModel:
    """The model and its variables; groups above the rank asked for have none."""

    problem: PairingProblem
    ticks: PairingTicks
    model: pulp.LpProblem
    together: dict[Group, pulp.LpVariable]
    worst: pulp.LpVariable


def build(problem: PairingProblem, start: Sequence[Group] | None = None, worst_rank: int | None = None) -> PairingModel:
    """The model; ``start`` is a grouping to begin from.

    Without ``worst_rank`` the rank of the worst peak is minimised; with it no group has a higher peak, and traffic is.
    """
    model = pulp.LpProblem("pairing", pulp.LpMinimize)
    ticks = in_ticks(problem)
    most = len(ticks.peaks) - 1 if worst_rank is None else worst_rank
    together = {
        group: model.add_variable(together_name(group), 0, 1, cat=pulp.LpInteger)
        for group, rank in zip(ticks.groups, ticks.rank, strict=True)
        if rank <= most
    }
    pairing = PairingModel(problem, ticks, model, together, model.add_variable("worst", 0, most))
    stage_in_one_group(pairing)
    group_sizes(pairing)
    worst_peak(pairing)
    if worst_rank is None:
        model.setObjective(pulp.lpSum([pairing.worst]))
    else:
        minimise_traffic(pairing)
    if start is not None:
        hint(pairing, start)
    return pairing


def stage_in_one_group(pairing: PairingModel) -> None:
    """Every stage is in exactly one group."""
    for stage in range(pairing.problem.stages):
        pairing.model += pulp.lpSum(binary for group, binary in pairing.together.items() if stage in group) == 1


def group_sizes(pairing: PairingModel) -> None:
    """As many groups of each size as asked for."""
    for size, count in Counter(pairing.problem.sizes).items():
        chosen = pulp.lpSum(binary for group, binary in pairing.together.items() if len(group) == size)
        pairing.model += chosen == count


def worst_peak(pairing: PairingModel) -> None:
    """The worst peak is that of every stage's group, or a higher one."""
    rank = dict(zip(pairing.ticks.groups, pairing.ticks.rank.tolist(), strict=True))
    for stage in range(pairing.problem.stages):
        own = pulp.lpSum(rank[group] * binary for group, binary in pairing.together.items() if stage in group)
        pairing.model += pairing.worst >= own


def minimise_traffic(pairing: PairingModel) -> None:
    """Traffic of all groups, in ticks."""
    traffic = dict(zip(pairing.ticks.groups, pairing.ticks.traffic.tolist(), strict=True))
    pairing.model.setObjective(pulp.lpSum(traffic[group] * binary for group, binary in pairing.together.items()))


def hint(pairing: PairingModel, start: Sequence[Group]) -> None:
    """Begin from a grouping."""
    chosen = set(start)
    for group, binary in pairing.together.items():
        binary.setInitialValue(int(group in chosen))


def extract(pairing: PairingModel, outcome: EngineOutcome) -> list[Group]:
    """The groups, by their first stages."""
    return sorted(group for group, binary in pairing.together.items() if outcome.value_of(binary) > 0.5)
