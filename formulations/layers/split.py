"""Solves a layer problem with an engine: one run for the slowest stage, one for the memory beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

from formulations.interface import Engine, EngineLimits, EngineOutcome
from formulations.layers import cpsat, milp
from formulations.layers.problem import LayerProblem
from formulations.layers.result import LayerResult
from formulations.layers.variables import in_ticks

FORMS: dict[str, ModuleType] = {"cpsat": cpsat, "milp": milp}
ROUNDED = 1e-4
"""A proof in ticks, which are rounded down, is one where value and bound are that close."""


def split_layers(
    problem: LayerProblem,
    form: str,
    engine: Engine,
    limits: EngineLimits,
    start: Sequence[int] | None = None,
) -> LayerResult:
    """The best split that the engine finds.

    Parameters
    ----------
    form
        "cpsat" or "milp"; the engine must be one for that kind of model.
    limits
        Of each of the two runs.
    start
        A split to begin from; it is returned where the engine finds none that is better.
    """
    twin = FORMS[form]
    known = [] if start is None or problem.violations(start) else [tuple(start)]
    first_model = twin.build(problem, known[0] if known else None)
    first: EngineOutcome = engine(first_model.model, limits)
    if first.status == "infeasible":
        return LayerResult(None, None, None, None, None, "infeasible", "proved", first.native_status, (first,))
    if first.has_values:
        known.append(twin.extract(first_model, first))
    bound_s = None if first.bound is None else first.bound * in_ticks(problem).tick_s
    if not known:
        reason = first.stop_reason
        return LayerResult(None, None, bound_s, None, None, "unknown", reason, first.native_status, (first,))
    best = min(known, key=problem.slowest_s)
    slowest_s = problem.slowest_s(best)
    found = LayerResult(
        layers=best,
        slowest_s=slowest_s,
        bound_s=None if bound_s is None else min(bound_s, slowest_s),
        memory_bytes=problem.memory_bytes(best),
        memory_bound_bytes=None,
        status="feasible",
        stop_reason=first.stop_reason,
        native_status=first.native_status,
        outcomes=(first,),
    )
    if first.status != "optimal" or found.gap is None or found.gap > ROUNDED:
        return found
    return _emptier(problem, found, twin, engine, limits)


def _emptier(
    problem: LayerProblem, found: LayerResult, twin: ModuleType, engine: Engine, limits: EngineLimits
) -> LayerResult:
    """Less memory under the slowest stage that is proved."""
    assert found.layers is not None and found.slowest_s is not None and found.memory_bytes is not None
    ticks = in_ticks(problem)
    assert found.outcomes[0].value is not None
    # Without a start: the split at hand is kept anyway, and HiGHS 1.16 has called such a start optimal that was not.
    model = twin.build(problem, slowest_ticks=round(found.outcomes[0].value))
    second: EngineOutcome = engine(model.model, limits)
    layers, memory = found.layers, found.memory_bytes
    if second.has_values:
        split = twin.extract(model, second)
        # As fast in ticks may be slower in seconds.
        if problem.slowest_s(split) <= found.slowest_s and problem.memory_bytes(split) < memory:
            layers, memory = split, problem.memory_bytes(split)
    bound = None if second.bound is None else min(second.bound * ticks.tick_bytes, memory)
    scale = max(abs(memory), float(problem.capacity_bytes.max()), 1e-9)
    proved = second.status == "optimal" and bound is not None and memory - bound <= ROUNDED * scale
    return replace(
        found,
        layers=layers,
        memory_bytes=memory,
        memory_bound_bytes=bound,
        status="optimal" if proved else "feasible",
        stop_reason="proved" if proved else second.stop_reason,
        native_status=f"{found.native_status}, {second.native_status}",
        outcomes=(*found.outcomes, second),
    )
