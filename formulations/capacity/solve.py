"""The longest request with an engine: one run a batch, the best of them the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType

from formulations.capacity import cpsat, milp
from formulations.capacity.variables import Latency, capacity_problem
from formulations.interface import Engine, EngineLimits, EngineOutcome, Status, StopReason
from formulations.joint.choices import choices_of
from instances.instance import Instance
from instances.plan import Plan

FORMS: dict[str, ModuleType] = {"cpsat": cpsat, "milp": milp}


@dataclass(frozen=True)
class CapacityResult:
    """What is known about the longest request.

    Attributes
    ----------
    tokens, plan
        The longest request for which the model has a plan, and that plan; the replay may refuse it. None if there is
        none or none was found.
    bound_tokens
        No longer request runs under the replay, up to the most quanta that were asked for; 0 if none runs at all, None
        if nothing is known.
    status, stop_reason, native_status
        As for the joint problem.
    """

    tokens: int | None
    plan: Plan | None
    bound_tokens: int | None
    status: Status
    stop_reason: StopReason
    native_status: str
    outcomes: dict[int, EngineOutcome] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """(bound - tokens) / tokens; None while one of them is unknown."""
        if self.tokens is None or self.bound_tokens is None:
            return None
        return max(0, self.bound_tokens - self.tokens) / self.tokens


def longest_request(
    instance: Instance,
    form: str,
    engine: Engine,
    limits: EngineLimits,
    most_quanta: int,
    *,
    latency_s: Latency | None = None,
    batches: Sequence[int] | None = None,
    start: Plan | None = None,
) -> CapacityResult:
    """The longest equal requests for which the model has a plan, the number of requests unchanged.

    Parameters
    ----------
    form
        "cpsat" or "milp"; the engine must be one for that kind of model.
    limits
        Of each run, of which there is one a batch.
    most_quanta
        Longest request looked at, behind the cached prefix.
    latency_s
        Most seconds of the objective of time (the mean latency for max_tokens), by tokens.

    Raises
    ------
    InputError
        For a trace, and for too many splits and placements.
    """
    twin, choices = FORMS[form], choices_of(instance)
    wanted = instance.batches if batches is None else batches
    outcomes: dict[int, EngineOutcome] = {}
    found: tuple[int, Plan] | None = None
    bound: int | None = 0
    for batch in wanted if choices.configurations else ():
        problem = capacity_problem(instance, batch, most_quanta, latency_s, choices)
        model = twin.build(problem, start if start is not None and start.batch == batch else None)
        outcome = outcomes[batch] = engine(model.model, limits)
        if outcome.has_values:
            candidate: tuple[int, Plan] = twin.extract(model, outcome)
            found = candidate if found is None or candidate[0] > found[0] else found
        if outcome.status == "infeasible":
            continue
        if outcome.bound is None or bound is None:
            bound = None
        else:
            bound = max(bound, problem.tokens(min(most_quanta, int(outcome.bound + 1e-6))))
    proved = all(outcome.status in ("optimal", "infeasible") for outcome in outcomes.values())
    reasons = [one.stop_reason for one in outcomes.values() if one.status not in ("optimal", "infeasible")]
    status: Status = "infeasible" if found is None else "optimal"
    if not proved:
        status = "unknown" if found is None else "feasible"
    return CapacityResult(
        tokens=None if found is None else found[0],
        plan=None if found is None else found[1],
        bound_tokens=bound,
        status=status,
        stop_reason=reasons[0] if reasons else "proved",
        native_status=", ".join(f"batch {batch}: {one.native_status}" for batch, one in outcomes.items()),
        outcomes=outcomes,
    )
