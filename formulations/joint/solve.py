"""Solves the joint problem with an engine: one run a batch, the best of them the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType

from formulations.interface import Engine, EngineLimits, EngineOutcome, Status, StopReason, relative_gap
from formulations.joint import cpsat, milp
from formulations.joint.choices import Choices, choices_of
from formulations.joint.problem import JointProblem
from formulations.joint.variables import stated
from formulations.scope import BoundScope, plain_scope
from instances.errors import InputError
from instances.instance import Instance
from instances.plan import Plan

FORMS: dict[str, ModuleType] = {"cpsat": cpsat, "milp": milp}


@dataclass(frozen=True)
class JointResult:
    """What is known about the best plan.

    Attributes
    ----------
    plan, value_s
        The plan that the model finds best, and its objective there, which the replay's may exceed: the model leaves out
        waits for links and the like. None if there is none or none was found.
    bound_s
        What no plan in the scope is below under the replay.
    status, stop_reason
        As for engines, of all batches together; "optimal" of the model, "infeasible" of the replay too.
    native_status
        The engine's word for each batch.
    plans
        The best plan of each batch that has one.
    """

    plan: Plan | None
    value_s: float | None
    bound_s: float | None
    status: Status
    stop_reason: StopReason
    native_status: str
    scope: BoundScope
    plans: dict[int, Plan] = field(default_factory=dict)
    outcomes: dict[int, EngineOutcome] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """(value - bound) / value in the model; 0 when equal, None while one of them is unknown."""
        gap = relative_gap(self.value_s, self.bound_s)
        return None if gap is None else max(0.0, gap)  # the bound goes over whole ticks


def solve_joint(
    instance: Instance,
    form: str,
    engine: Engine,
    limits: EngineLimits,
    *,
    start: Plan | None = None,
    below_s: float | None = None,
    batches: Sequence[int] | None = None,
    chunk_counts: tuple[int, int] | None = None,
    choices: Choices | None = None,
) -> JointResult:
    """The best plan of the model, over all decisions; for instances of a few stages, quanta and waves.

    Parameters
    ----------
    form
        "cpsat" or "milp"; the engine must be one for that kind of model.
    limits
        Of each run, of which there is one a batch.
    start
        A plan to begin from.
    below_s
        Value of a plan at hand: only better ones are looked for, and the bound is at most that.
    chunk_counts
        Fewest and most chunks of a request.
    choices
        Layer splits and placements; default all.

    Raises
    ------
    InputError
        For the objective max_tokens (see ``capacity``), and for too many splits and placements.
    """
    if instance.objective == "max_tokens":
        raise InputError("objective", instance.objective, "an objective of time; longest requests are for capacity")
    twin, given = FORMS[form], choices_of(instance) if choices is None else choices
    scope = plain_scope(instance)
    wanted = instance.batches if batches is None else batches
    scope = scope.model_copy(update={"batch": (min(wanted), max(wanted)), "chunks": chunk_counts or scope.chunks})
    outcomes: dict[int, EngineOutcome] = {}
    plans: dict[int, Plan] = {}
    values: dict[int, float] = {}
    bounds: list[float | None] = []
    for batch in wanted:
        if not given.configurations:
            break
        problem = stated(instance, batch, chunk_counts=chunk_counts, choices=given)
        if below_s is not None:
            problem = replace(problem, value_limit=problem.ticks(below_s))
        model = twin.build(problem, start if start is not None and start.batch == batch else None)
        outcome = outcomes[batch] = engine(model.model, limits)
        bounds.append(_bound_s(problem, outcome, below_s))
        if outcome.has_values:
            assert outcome.value is not None
            plans[batch], values[batch] = twin.extract(model, outcome), problem.seconds(outcome.value)
    best = min(values, key=lambda batch: values[batch], default=None)
    known = [bound for bound in bounds if bound is not None]
    proved = all(outcome.status in ("optimal", "infeasible") for outcome in outcomes.values())
    nothing: Status = "infeasible" if proved and below_s is None else "unknown"
    status: Status = nothing if best is None else "optimal" if proved else "feasible"
    reasons = [one.stop_reason for one in outcomes.values() if one.status not in ("optimal", "infeasible")]
    finite = [bound for bound in known if bound != float("inf")]
    return JointResult(
        plan=None if best is None else plans[best],
        value_s=None if best is None else values[best],
        bound_s=min(finite) if finite and len(known) == len(bounds) else None,
        status=status,
        stop_reason=reasons[0] if reasons else "proved",
        native_status=", ".join(f"batch {batch}: {one.native_status}" for batch, one in outcomes.items()),
        scope=scope,
        plans=plans,
        outcomes=outcomes,
    )


def _bound_s(problem: JointProblem, outcome: EngineOutcome, below_s: float | None) -> float | None:
    """Bound of a batch, infinite where it has no plan; None where nothing is known."""
    if outcome.status == "infeasible":
        return float("inf") if below_s is None else below_s
    if outcome.bound is None:
        return None
    found = problem.bound_s(outcome.bound)
    return found if below_s is None else min(found, below_s)
