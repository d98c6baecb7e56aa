"""Variables of the joint CP-SAT model, and what can be read off them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from formulations.joint.problem import Arc, ArcNumbers, JointProblem, Lent, Task

Bool = cp_model.IntVar
Literal = cp_model.LiteralT
Sum = cp_model.LinearExpr


@dataclass
class JointModel:
    """The model and its variables; see ``variables`` for what they mean."""

    problem: JointProblem
    model: cp_model.CpModel
    place: list[Bool] = field(default_factory=list)
    chunk: dict[tuple[int, int, Arc], Bool] = field(default_factory=dict)
    used: dict[tuple[int, int], Bool] = field(default_factory=dict)
    last: dict[tuple[int, int], Bool] = field(default_factory=dict)
    load: dict[tuple[int, int, int, int, Arc], Bool] = field(default_factory=dict)
    crossing: dict[tuple[int, int, int, int, Arc], Bool] = field(default_factory=dict)
    start: dict[Task, cp_model.IntVar] = field(default_factory=dict)
    end: dict[Task, cp_model.IntVar] = field(default_factory=dict)
    arrive: dict[Task, cp_model.IntVar] = field(default_factory=dict)
    workspace: list[cp_model.IntVar] = field(default_factory=list)
    spill: dict[Lent, cp_model.IntVar] = field(default_factory=dict)
    out: dict[Lent, cp_model.IntVar] = field(default_factory=dict)
    fetched: dict[Lent, cp_model.IntVar] = field(default_factory=dict)
    first: dict[tuple[Task, Task], Bool] = field(default_factory=dict)
    left: dict[tuple[int, int, Task], Bool] = field(default_factory=dict)
    value: cp_model.IntVar | None = None

    def on(self, stage: int, choice: int) -> Sum:
        """1 where the stage has this choice."""
        problem = self.problem
        return total([place for g, place in enumerate(self.place) if problem.choice_of[g][stage] == choice])

    def duration(self, task: Task) -> Sum:
        """Compute of a task; 0 of an empty slot."""
        return self._loaded(task, lambda numbers: numbers.duration)

    def held(self, task: Task) -> Sum:
        """KV that the wave has on the stage once the task has started, were nothing lent."""
        return self._loaded(task, lambda numbers: numbers.held)

    def _loaded(self, task: Task, amount: Callable[[ArcNumbers], int]) -> Sum:
        problem, number = self.problem, self.problem.list_of(task.wave)
        kind = problem.waves[task.wave].kind
        return total(
            [
                amount(problem.numbers[kind, task.stage, o, arc]) * self.load[number, task.stage, o, task.slot, arc]
                for o in range(problem.choices[task.stage])
                for arc in self.arcs_at(number, task.slot)
            ]
        )

    def arcs_at(self, number: int, slot: int) -> list[Arc]:
        """Arcs that may be in a slot."""
        return [arc for arc, slots in self.problem.arcs[number].items() if slot in slots]


def total(terms: Sequence[Sum]) -> Sum:
    """Sum of expressions, 0 of none."""
    return cp_model.LinearExpr.sum(list(terms))


def add_if(joint: JointModel, at_least_zero: Sum, conditions: Sequence[Literal]) -> None:
    """The expression is not negative where all conditions are true."""
    joint.model.add(at_least_zero >= 0).only_enforce_if(list(conditions))
