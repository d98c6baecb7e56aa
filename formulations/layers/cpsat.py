"""The layer split as a CP-SAT model (twin of `milp`), one objective at a time, in ticks of `variables.LayerTicks`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ortools.sat.python import cp_model

from formulations.interface import EngineOutcome
from formulations.layers import variables
from formulations.layers.problem import LayerProblem, ranges
from formulations.layers.variables import At, LayerTicks, before_name, fixed, in_ticks


@dataclass
class LayerModel:
    """The model and its variables."""

    problem: LayerProblem
    ticks: LayerTicks
    model: cp_model.CpModel
    before: dict[At, cp_model.IntVar]
    slowest: cp_model.IntVar
    workspace: list[cp_model.IntVar] = field(default_factory=list)

    def on(self, stage: int, layer: int) -> cp_model.LinearExprT:
        """1 where the layer lies on the stage."""
        return self.before[stage + 1, layer] - self.before[stage, layer]


def build(problem: LayerProblem, start: Sequence[int] | None = None, slowest_ticks: int | None = None) -> LayerModel:
    """The model; ``start`` is a split to begin from.

    Without ``slowest_ticks`` the slowest stage is minimised; with it no stage is slower than that, and the memory is.
    """
    model = cp_model.CpModel()
    ticks = in_ticks(problem)
    before: dict[At, cp_model.IntVar] = {}
    for s in range(problem.stages + 1):
        for layer in range(problem.layers):
            value, name = fixed(problem, (s, layer)), before_name(s, layer)
            before[s, layer] = model.new_bool_var(name) if value is None else model.new_int_var(value, value, name)
    most = ticks.most_seconds if slowest_ticks is None else slowest_ticks
    layered = LayerModel(problem, ticks, model, before, model.new_int_var(0, most, "slowest"))
    layers_cover(layered)
    stage_nonempty(layered)
    attention_in_stage(layered)
    forbidden_cuts(layered)
    capacity_at_rest(layered)
    slowest_stage(layered)
    if slowest_ticks is None:
        model.minimize(layered.slowest)
    else:
        stage_workspace(layered)
        minimise_memory(layered)
    if start is not None:
        hint(layered, start)
    return layered


def layers_cover(layered: LayerModel) -> None:
    """Layers lie in order, and what lies before a stage lies before the next."""
    _imply(layered, variables.layers_cover(layered.problem))


def stage_nonempty(layered: LayerModel) -> None:
    """Every stage has a layer."""
    _imply(layered, variables.stage_nonempty(layered.problem))


def attention_in_stage(layered: LayerModel) -> None:
    """Every stage has one of the needed layers."""
    _imply(layered, variables.attention_in_stage(layered.problem))


def forbidden_cuts(layered: LayerModel) -> None:
    """No stage starts at a forbidden layer."""
    _imply(layered, variables.forbidden_cuts(layered.problem))


def capacity_at_rest(layered: LayerModel) -> None:
    """No stage holds more than fits."""
    _imply(layered, variables.capacity_at_rest(layered.problem))


def _imply(layered: LayerModel, implications: Iterable[tuple[At, At]]) -> None:
    for condition, conclusion in implications:
        layered.model.add_implication(layered.before[condition], layered.before[conclusion])


def slowest_stage(layered: LayerModel) -> None:
    """No stage is slower than the slowest."""
    ticks = layered.ticks
    for s in range(layered.problem.stages):
        each = [int(amount) * layered.on(s, layer) for layer, amount in enumerate(ticks.seconds[s])]
        layered.model.add(layered.slowest >= cp_model.LinearExpr.sum(each) + int(ticks.extra_seconds[s]))


def stage_workspace(layered: LayerModel) -> None:
    """A stage's buffer is as large as each of its layers asks for."""
    amounts = layered.ticks.workspace
    for s in range(layered.problem.stages):
        largest = layered.model.new_int_var(0, int(amounts.max()), f"workspace[s{s}]")
        layered.workspace.append(largest)
        for layer, amount in enumerate(amounts):
            if amount:
                layered.model.add(largest >= int(amount) * layered.on(s, layer))


def minimise_memory(layered: LayerModel) -> None:
    """The fullest stage against its capacity, or the sum of what is above capacities."""
    problem, ticks, model = layered.problem, layered.ticks, layered.model
    over: list[cp_model.LinearExprT] = []
    for s in range(problem.stages):
        each = [int(amount) * layered.on(s, layer) for layer, amount in enumerate(ticks.held)]
        over.append(cp_model.LinearExpr.sum(each) + layered.workspace[s] + int(ticks.extra_held[s] - ticks.capacity[s]))
    if problem.memory == "excess":
        excess = [model.new_int_var(0, ticks.most_held, f"excess[s{s}]") for s in range(problem.stages)]
        for amount, above in zip(excess, over, strict=True):
            model.add(amount >= above)
        model.minimize(sum(excess))
    else:
        fullest = model.new_int_var(-int(ticks.capacity.max()), ticks.most_held, "fullest")
        for above in over:
            model.add(fullest >= above)
        model.minimize(fullest)


def hint(layered: LayerModel, start: Sequence[int]) -> None:
    """Hint a split; the rest follows from it."""
    for s, (first, _) in enumerate(ranges(start)):
        for layer in range(layered.problem.layers):
            if fixed(layered.problem, (s, layer)) is None:
                layered.model.add_hint(layered.before[s, layer], layer < first)


def extract(layered: LayerModel, outcome: EngineOutcome) -> tuple[int, ...]:
    """Layers per stage."""
    problem = layered.problem
    starts = [
        sum(outcome.value_of(layered.before[s, layer]) > 0.5 for layer in range(problem.layers))
        for s in range(problem.stages + 1)
    ]
    return tuple(stop - start for start, stop in pairwise(starts))
