"""The longest request as a CP-SAT model (twin of `milp`): the rules are those of ``joint.cpsat``."""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model

from formulations.capacity.variables import CapacityProblem
from formulations.interface import EngineOutcome
from formulations.joint import cpsat as joint_cpsat
from formulations.joint.cpsat_model import JointModel, Sum, total
from instances.plan import Plan


@dataclass
class CapacityModel:
    """The model, and how many quanta the request has."""

    problem: CapacityProblem
    joint: JointModel
    quanta: cp_model.IntVar

    @property
    def model(self) -> cp_model.CpModel:
        """What an engine takes."""
        return self.joint.model


def build(problem: CapacityProblem, start: Plan | None = None) -> CapacityModel:
    """The model that maximises the quanta of a request; ``start`` is a plan for requests of any length."""
    joint = joint_cpsat.parts(problem.joint)
    quanta = joint.model.new_int_var(0, problem.joint.quanta[0], "quanta")
    capacity = CapacityModel(problem, joint, quanta)
    request_length(capacity)
    latency_budget(capacity)
    joint.model.maximize(quanta)
    if start is not None:
        joint_cpsat.hint(joint, start)
    return capacity


def request_length(capacity: CapacityModel) -> None:
    """The last chunk ends the request."""
    ends = [arc.end * chunk for (_, _, arc), chunk in capacity.joint.chunk.items() if arc.last]
    capacity.model.add(total(ends) == capacity.quanta)


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
    capacity.model.add(value <= total(allowed))


def extract(capacity: CapacityModel, outcome: EngineOutcome) -> tuple[int, Plan]:
    """Tokens of a request, and the plan, of the instance with requests of that length."""
    problem = capacity.problem
    tokens = problem.tokens(round(outcome.value_of(capacity.quanta)))
    plan = joint_cpsat.extract(capacity.joint, outcome)
    return tokens, plan.model_copy(update={"instance": problem.joint.instance.with_tokens(tokens).fingerprint})
