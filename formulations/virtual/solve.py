"""The best V-shaped plan of a small instance by either model, cell by cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import ModuleType

from formulations.interface import Engine, EngineLimits
from formulations.virtual.split import virtual_reason
from formulations.virtual.variables import Cell, cells, state
from instances.instance import Instance
from instances.workload import Shape


@dataclass(frozen=True)
class VirtualResult:
    """The best plan that the models of all cells found, and what no V-shaped plan is below.

    Attributes
    ----------
    value_s
        Objective in the model; None where no cell has a plan.
    bound_s
        Least bound of all cells; None where one is unknown, or where nothing is admitted.
    cell, cuts, layers
        Where the value was found: ends of the chunks in quanta for each request shape, layers of the 2N parts.
    """

    value_s: float | None
    bound_s: float | None
    cell: Cell | None
    cuts: dict[Shape, list[int]]
    layers: tuple[int, ...]


def solve_virtual(
    instance: Instance, twin: ModuleType, engine: Engine, limits: EngineLimits, tick_s: float | None = None
) -> VirtualResult:
    """Solve the model of each cell; for small instances, of which there is one model for each number of chunks.

    Parameters
    ----------
    twin
        `cpsat` or `milp`, with an engine for it.
    tick_s
        See `state`.
    """
    best, bound_s = VirtualResult(None, None, None, {}, ()), math.inf
    if virtual_reason(instance) is not None:
        return best
    for cell in cells(instance):
        problem = state(instance, cell, tick_s)
        if not all(problem.arcs.values()):
            continue  # memory, or a measured table, admits no such chunks
        model = twin.build(problem)
        outcome = engine(model.model, limits)
        if outcome.status == "infeasible":
            continue
        bound_s = min(bound_s, -math.inf if outcome.bound is None else problem.seconds(outcome.bound))
        if not outcome.has_values or outcome.value is None:
            continue
        value_s = problem.seconds(outcome.value)
        if best.value_s is None or value_s < best.value_s:
            cuts, layers = twin.extract(model, outcome)
            best = VirtualResult(value_s, None, cell, dict(zip(instance.workload.shapes, cuts, strict=True)), layers)
    known = bound_s if math.isfinite(bound_s) else None
    return VirtualResult(best.value_s, known, best.cell, best.cuts, best.layers)
