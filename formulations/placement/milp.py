"""Placement as a MILP (twin of `cpsat`), in ticks of `PlacementProblem.tick` as there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pulp

from formulations.interface import EngineOutcome
from formulations.placement.problem import PlacementProblem
from formulations.placement.symmetry import moved_to_representative, representatives
from formulations.placement.variables import distance_name, on_name, row_and_column_spans, shortest_and_longest


@dataclass
class PlacementModel:
    """The model and its variables."""

    problem: PlacementProblem
    model: pulp.LpProblem
    on: list[list[pulp.LpVariable]]
    distance: dict[tuple[int, int], pulp.LpAffineExpression] = field(default_factory=dict)


def build(problem: PlacementProblem, start: Sequence[int] | None = None, at_least: int = 0) -> PlacementModel:
    """The model; `start` is a placement to begin from, `at_least` a proved bound in ticks."""
    model = pulp.LpProblem("placement", pulp.LpMinimize)
    on = [
        [model.add_variable(on_name(s, d), 0, 1, cat=pulp.LpInteger) for d in range(problem.dies)]
        for s in range(problem.stages)
    ]
    placing = PlacementModel(problem, model, on)
    stage_on_one_die(placing)
    placement_injective(placing)
    flow_distance(placing)
    pair_adjacent(placing)
    break_symmetry(placing)
    minimise_traffic(placing, at_least)
    if start is not None:
        hint(placing, start)
    return placing


def stage_on_one_die(placing: PlacementModel) -> None:
    """Every stage lies on exactly one die."""
    for row in placing.on:
        placing.model += pulp.lpSum(row) == 1


def placement_injective(placing: PlacementModel) -> None:
    """No die holds two stages."""
    for die in range(placing.problem.dies):
        holders = pulp.lpSum(row[die] for row in placing.on)
        if placing.problem.stages == placing.problem.dies:
            placing.model += holders == 1
        else:
            placing.model += holders <= 1


def flow_distance(placing: PlacementModel) -> None:
    """Distance of every flow: rows plus columns on a mesh, and a row of the matrix where there are detours."""
    problem, model = placing.problem, placing.model
    shortest, longest = shortest_and_longest(problem)
    for s, t, _ in problem.flows:
        distance = model.add_variable(distance_name("hops", s, t), shortest, longest)
        placing.distance[s, t] = distance
        if problem.mesh_hops is not None:
            model += distance >= _mesh_distance(placing, s, t)
        for die in problem.detours:
            reached = pulp.lpSum(int(problem.hops[die, e]) * placing.on[t][e] for e in range(problem.dies) if e != die)
            furthest = int(problem.hops[die].max())
            model += distance >= reached - furthest * (1 - placing.on[s][die])


def _mesh_distance(placing: PlacementModel, s: int, t: int) -> pulp.LpAffineExpression:
    model, cells = placing.model, placing.problem.dies_rc or ()
    parts = []
    for axis, (kind, span) in enumerate(zip(("rows", "columns"), row_and_column_spans(placing.problem), strict=True)):
        part = model.add_variable(distance_name(kind, s, t), 0, span)
        difference = pulp.lpSum(
            cell[axis] * (here - there) for cell, here, there in zip(cells, placing.on[s], placing.on[t], strict=True)
        )
        model += part >= difference
        model += part >= -difference
        parts.append(part)
    return parts[0] + parts[1]


def pair_adjacent(placing: PlacementModel) -> None:
    """Partners lie one hop apart."""
    problem = placing.problem
    for i, j in problem.pairs:
        for die in range(problem.dies):
            placing.model += placing.on[i][die] <= pulp.lpSum(placing.on[j][e] for e in problem.neighbours[die])
        for die in range(problem.dies):
            near = [d for d in range(problem.dies) if die in problem.neighbours[d]]
            placing.model += placing.on[j][die] <= pulp.lpSum(placing.on[i][d] for d in near)


def break_symmetry(placing: PlacementModel) -> None:
    """Stage 0 lies on the first die of an orbit of the mesh's symmetries."""
    placing.model += pulp.lpSum(placing.on[0][die] for die in sorted(set(representatives(placing.problem)))) == 1


def minimise_traffic(placing: PlacementModel, at_least: int) -> None:
    """Sum of weight*hops, in ticks, which is known to be `at_least` so much."""
    problem = placing.problem
    total = pulp.lpSum(
        ticks * placing.distance[s, t] for (s, t, _), ticks in zip(problem.flows, problem.ticks, strict=True)
    )
    if problem.flows and at_least > 0:
        placing.model += total >= at_least
    placing.model += total


def hint(placing: PlacementModel, start: Sequence[int]) -> None:
    """Begin from a placement, moved so that it keeps `break_symmetry`; the distances follow from it."""
    for stage, die in enumerate(moved_to_representative(placing.problem, start)):
        for other, variable in enumerate(placing.on[stage]):
            variable.setInitialValue(int(other == die))


def extract(placing: PlacementModel, outcome: EngineOutcome) -> list[int]:
    """Die of each stage."""
    return [next(d for d, binary in enumerate(row) if outcome.value_of(binary) > 0.5) for row in placing.on]
