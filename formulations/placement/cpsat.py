"""Placement as a CP-SAT model (twin of `milp`).

Objective in ticks of `PlacementProblem.tick` (weights rounded down), so value and bound times the tick are lower
estimates of the true ones; the value of a placement is recomputed from its distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from formulations.interface import EngineOutcome
from formulations.placement.problem import PlacementProblem
from formulations.placement.symmetry import moved_to_representative, representatives
from formulations.placement.variables import distance_name, on_name, row_and_column_spans, shortest_and_longest


@dataclass
class PlacementModel:
    """The model and its variables."""

    problem: PlacementProblem
    model: cp_model.CpModel
    on: list[list[cp_model.IntVar]]
    distance: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)


def build(problem: PlacementProblem, start: Sequence[int] | None = None, at_least: int = 0) -> PlacementModel:
    """The model; `start` is a placement to begin from, `at_least` a proved bound in ticks."""
    model = cp_model.CpModel()
    on = [[model.new_bool_var(on_name(s, d)) for d in range(problem.dies)] for s in range(problem.stages)]
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
        placing.model.add_exactly_one(row)


def placement_injective(placing: PlacementModel) -> None:
    """No die holds two stages."""
    for die in range(placing.problem.dies):
        holders = [row[die] for row in placing.on]
        if placing.problem.stages == placing.problem.dies:
            placing.model.add_exactly_one(holders)
        else:
            placing.model.add_at_most_one(holders)


def flow_distance(placing: PlacementModel) -> None:
    """Distance of every flow: rows plus columns on a mesh, and a row of the matrix where there are detours.

    Weights are positive, so a distance need only be bounded from below. It is a variable of its own, with the
    shortest distance as lower bound: without that the engine's bound stays near zero.
    """
    problem, model = placing.problem, placing.model
    shortest, longest = shortest_and_longest(problem)
    for s, t, _ in problem.flows:
        distance = model.new_int_var(shortest, longest, distance_name("hops", s, t))
        placing.distance[s, t] = distance
        if problem.mesh_hops is not None:
            model.add(distance >= _mesh_distance(placing, s, t))
        for die in problem.detours:
            reached = sum(int(problem.hops[die, e]) * placing.on[t][e] for e in range(problem.dies) if e != die)
            model.add(distance >= reached).only_enforce_if(placing.on[s][die])


def _mesh_distance(placing: PlacementModel, s: int, t: int) -> cp_model.LinearExprT:
    model, cells = placing.model, placing.problem.dies_rc or ()
    parts = []
    for axis, (kind, span) in enumerate(zip(("rows", "columns"), row_and_column_spans(placing.problem), strict=True)):
        difference = sum(
            cell[axis] * (here - there) for cell, here, there in zip(cells, placing.on[s], placing.on[t], strict=True)
        )
        part = model.new_int_var(0, span, distance_name(kind, s, t))
        model.add(part >= difference)
        model.add(part >= -difference)
        parts.append(part)
    return parts[0] + parts[1]


def pair_adjacent(placing: PlacementModel) -> None:
    """Partners lie one hop apart."""
    problem = placing.problem
    for i, j in problem.pairs:
        for die in range(problem.dies):
            placing.model.add_bool_or(
                [placing.on[j][e] for e in problem.neighbours[die]] + [placing.on[i][die].negated()]
            )
        for die in range(problem.dies):
            near = [d for d in range(problem.dies) if die in problem.neighbours[d]]
            placing.model.add_bool_or([placing.on[i][d] for d in near] + [placing.on[j][die].negated()])


def break_symmetry(placing: PlacementModel) -> None:
    """Stage 0 lies on the first die of an orbit of the mesh's symmetries."""
    placing.model.add_bool_or([placing.on[0][die] for die in sorted(set(representatives(placing.problem)))])


def minimise_traffic(placing: PlacementModel, at_least: int) -> None:
    """Sum of weight*hops, in ticks, which is known to be `at_least` so much."""
    problem = placing.problem
    total = sum(ticks * placing.distance[s, t] for (s, t, _), ticks in zip(problem.flows, problem.ticks, strict=True))
    if problem.flows and at_least > 0:
        placing.model.add(total >= at_least)
    placing.model.minimize(total)


def hint(placing: PlacementModel, start: Sequence[int]) -> None:
    """Hint a placement, moved so that it keeps `break_symmetry`; the distances follow from it."""
    for stage, die in enumerate(moved_to_representative(placing.problem, start)):
        for other, variable in enumerate(placing.on[stage]):
            placing.model.add_hint(variable, other == die)


def extract(placing: PlacementModel, outcome: EngineOutcome) -> list[int]:
    """Die of each stage."""
    return [next(d for d, literal in enumerate(row) if outcome.value_of(literal) > 0.5) for row in placing.on]
