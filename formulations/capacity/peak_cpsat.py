"""The cumulative relaxation of ``peak`` as a CP-SAT model without objective (twin of `peak_milp`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from ortools.sat.python import cp_model

from formulations.capacity.peak import PeakProblem, Place
from formulations.joint.variables import name


@dataclass
class PeakModel:
    """The model and its variables."""

    problem: PeakProblem
    model: cp_model.CpModel
    late: dict[tuple[Place, int], cp_model.IntVar] = field(default_factory=dict)

    def at_most(self, at: Place, steps: int) -> cp_model.IntVar | int:
        """Whether a task is at most so many steps late."""
        if steps < 0 or steps >= self.problem.latest[at]:
            return int(steps >= 0)
        return self.late[at, steps]


def build(problem: PeakProblem) -> PeakModel:
    """The model; infeasible where no plan with these cuts keeps the budget."""
    peak = PeakModel(problem, cp_model.CpModel())
    delays(peak)
    latency_budget(peak)
    memory_admission(peak)
    return peak


def delays(peak: PeakModel) -> None:
    """Delays are handed on, along a die and along a chunk (``die_serial``, ``activation_ready``)."""
    problem, model = peak.problem, peak.model
    for at in problem.places:
        for steps in range(int(problem.latest[at])):
            peak.late[at, steps] = model.new_bool_var(name("late", *at, steps))
    for (at, steps), late in peak.late.items():
        longer = peak.at_most(at, steps + 1)
        if not isinstance(longer, int):
            model.add_implication(late, longer)
    for at in problem.places:
        for other, less in problem.followers(at):
            for steps in range(int(problem.latest[other])):
                before = peak.at_most(at, steps + less)
                if not isinstance(before, int):
                    model.add_implication(peak.late[other, steps], before)


def latency_budget(peak: PeakModel) -> None:
    """The weighted sum of the delays of all last tasks is within the budget."""
    problem = peak.problem
    _, stages, chunks = problem.shape
    terms: list[cp_model.LinearExpr] = []
    most = 0
    for w, weight in enumerate(problem.weight):
        last = (w, stages - 1, chunks - 1)
        if weight:
            terms += [weight * peak.late[last, steps] for steps in range(int(problem.latest[last]))]
            most += weight * int(problem.latest[last])
    peak.model.add(most - cp_model.LinearExpr.sum(terms) <= problem.budget)


def memory_admission(peak: PeakModel) -> None:
    """At every moment all memory together holds what has surely started and can not have left."""
    problem = peak.problem
    for moment in problem.moments:
        variables: list[cp_model.IntVar] = []
        amounts: list[int] = []
        known = 0
        for amount, literal in held(peak, moment):
            if isinstance(literal, int):
                known += amount * literal
            else:
                variables.append(literal)
                amounts.append(amount)
        if variables or known > problem.room:
            peak.model.add(cp_model.LinearExpr.weighted_sum(variables, amounts) <= problem.room - known)


def held(peak: PeakModel, moment: int) -> list[tuple[int, cp_model.IntVar | int]]:
    """Amounts, and whether they are in memory; negative where a wave has left."""
    problem = peak.problem
    waves, stages, chunks = problem.shape
    found: list[tuple[int, cp_model.IntVar | int]] = []
    for w, s in product(range(waves), range(stages)):
        for i in range(chunks):
            at = (w, s, i)
            found.append((int(problem.kv[at]), peak.at_most(*problem.surely_started(at, moment))))
        left = peak.at_most((w, s, chunks - 1), problem.maybe_left(w, s, moment))
        found.append((-int(problem.kv[w, s].sum()), left))
    return found
