"""The longest request as a MILP (twin of `cpsat`): the rules are those of ``joint.milp``."""

from __future__ import annotations

from dataclasses import dataclass

import pulp

from formulations.capacity.variables import CapacityProblem
from formulations.interface import EngineOutcome
from formulations.joint import milp as joint_milp
from formulations.joint.milp_model import JointModel, Sum, total, whole
from instances.plan import Plan


@dataclass
class CapacityModel:
    """The model, and how many quanta the request has."""

    problem: CapacityProblem
    joint: JointModel
    quanta: pulp.LpVariable

    @property
    def model(self) -> pulp.LpProblem:
        """What an engine takes."""
        return self.joint.model


def build(problem: CapacityProblem, start: Plan | None = None) -> CapacityModel:
    """The model that maximises the quanta of a request; ``start`` is a plan for requests of any length."""
    joint = joint_milp.parts(problem.joint)
    quanta = whole(joint, "quanta", problem.joint.quanta[0])
    capacity = CapacityModel(problem, joint, quanta)
    request_length(capacity)
    latency_budget(capacity)
    joint.model.sense = pulp.LpMaximize
    joint.model.setObjective(total([quanta]))
    if start is not None:
        joint_milp.hint(joint, start)
    return capacity


def request_length(capacity: CapacityModel) -> None:
    """The last chunk ends the request."""
    ends = [arc.end * chunk for (_, _, arc), chunk in capacity.joint.chunk.items() if arc.last]
    joint = capacity.joint
    joint.model += total(ends) == capacity.quanta


def latency_budget(capacity: CapacityModel) -> None:
    """The objective of time is within the budget of the length."""
    budget, value = capacity.problem.budget, capacity.joint.value
    if budget is None:
        return
    assert value is not None
    allowed: list[Sum] = []
    for (_, _, arc), chunk in capacity.joint.chunk.items():
        if arc.last:
            allowed.append(min(budget[arc.end], capacity.problem.joint.most_value) * chunk)
    joint = capacity.joint
    joint.model += value <= total(allowed)


def extract(capacity: CapacityModel, outcome: EngineOutcome) -> tuple[int, Plan]:
    """Tokens of a request, and the plan, of the instance with requests of that length."""
    problem = capacity.problem
    tokens = problem.tokens(round(outcome.value_of(capacity.quanta)))
    plan = joint_milp.extract(capacity.joint, outcome)
    return tokens, plan.model_copy(update={"instance": problem.joint.instance.with_tokens(tokens).fingerprint})
