"""The cumulative relaxation of ``peak`` as a MILP with the objective 0 (twin of `peak_cpsat`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import pulp

from formulations.capacity.peak import PeakProblem, Place
from formulations.joint.variables import name


@dataclass
class PeakModel:
    """The model and its variables."""

    problem: PeakProblem
    model: pulp.LpProblem
    late: dict[tuple[Place, int], pulp.LpVariable] = field(default_factory=dict)

    def at_most(self, at: Place, steps: int) -> pulp.LpVariable | int:
        """Whether a task is at most so many steps late."""
        if steps < 0 or steps >= self.problem.latest[at]:
            return int(steps >= 0)
        return self.late[at, steps]


def build(problem: PeakProblem) -> PeakModel:
    """The model; infeasible where no plan with these cuts keeps the budget."""
    peak = PeakModel(problem, pulp.LpProblem("peak", pulp.LpMinimize))
    peak.model.setObjective(pulp.lpSum([]))
    delays(peak)
    latency_budget(peak)
    memory_admission(peak)
    return peak


def delays(peak: PeakModel) -> None:
    """Delays are handed on, along a die and along a chunk (``die_serial``, ``activation_ready``)."""
    problem, model = peak.problem, peak.model
    for at in problem.places:
        for steps in range(int(problem.latest[at])):
            peak.late[at, steps] = model.add_variable(name("late", *at, steps), 0, 1, cat=pulp.LpInteger)
    for (at, steps), late in peak.late.items():
        longer = peak.at_most(at, steps + 1)
        if not isinstance(longer, int):
            peak.model += longer - late >= 0
    for at in problem.places:
        for other, less in problem.followers(at):
            for steps in range(int(problem.latest[other])):
                before = peak.at_most(at, steps + less)
                if not isinstance(before, int):
                    peak.model += before - peak.late[other, steps] >= 0


def latency_budget(peak: PeakModel) -> None:
    """The weighted sum of the delays of all last tasks is within the budget."""
    problem = peak.problem
    _, stages, chunks = problem.shape
    terms: list[pulp.LpAffineExpression] = []
    most = 0
    for w, weight in enumerate(problem.weight):
        last = (w, stages - 1, chunks - 1)
        if weight:
            terms += [weight * peak.late[last, steps] for steps in range(int(problem.latest[last]))]
            most += weight * int(problem.latest[last])
    if terms or most > problem.budget:
        peak.model += most - pulp.lpSum(terms) <= problem.budget


def memory_admission(peak: PeakModel) -> None:
    """At every moment all memory together holds what has surely started and can not have left."""
    problem = peak.problem
    for moment in problem.moments:
        variables: list[pulp.LpVariable] = []
        amounts: list[int] = []
        known = 0
        for amount, literal in held(peak, moment):
            if isinstance(literal, int):
                known += amount * literal
            else:
                variables.append(literal)
                amounts.append(amount)
        if variables or known > problem.room:
            row = pulp.LpAffineExpression(zip(variables, amounts, strict=True))
            peak.model += row <= problem.room - known


def held(peak: PeakModel, moment: int) -> list[tuple[int, pulp.LpVariable | int]]:
    """Amounts, and whether they are in memory; negative where a wave has left."""
    problem = peak.problem
    waves, stages, chunks = problem.shape
    found: list[tuple[int, pulp.LpVariable | int]] = []
    for w, s in product(range(waves), range(stages)):
        for i in range(chunks):
            at = (w, s, i)
            found.append((int(problem.kv[at]), peak.at_most(*problem.surely_started(at, moment))))
        left = peak.at_most((w, s, chunks - 1), problem.maybe_left(w, s, moment))
        found.append((-int(problem.kv[w, s].sum()), left))
    return found
