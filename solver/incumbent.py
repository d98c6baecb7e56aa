"""The best plan so far: every plan is offered here, replayed, and kept if it is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from instances.plan import Plan
from solver.evaluate import Evaluator
from solver.limits import Deadline
from solver.result import TracePoint, relative_gap

Listener = Callable[["Incumbent"], None]


@dataclass
class Incumbent:
    """Best replayed plan, best proved bound, and how they came about.

    ``listener`` is told of every improvement; a command shows progress with it.
    """

    evaluator: Evaluator
    deadline: Deadline
    listener: Listener | None = None
    plan: Plan | None = None
    value: float | None = None
    bound: float | None = None
    trace: list[TracePoint] = field(default_factory=list)

    def offer(self, plan: Plan) -> float | None:
        """Replay a plan and keep it if it is the best; its value, or None if it does not run."""
        return self.offer_all([plan])[0]

    def offer_all(self, plans: Sequence[Plan]) -> list[float | None]:
        """As ``offer``, for plans that differ little, in one call."""
        values = self.evaluator.values(plans)
        for plan, value in zip(plans, values, strict=True):
            if value is not None and (self.value is None or value < self.value):
                self.plan, self.value = plan, value
                self._note()
        return values

    def raise_bound(self, bound: float | None) -> None:
        """Take note of a proved bound; the largest counts."""
        if bound is not None and (self.bound is None or bound > self.bound):
            self.bound = bound
            self._note()

    @property
    def gap(self) -> float | None:
        """Relative gap between the two, None while one is unknown."""
        return relative_gap(self.value, self.bound)

    def _note(self) -> None:
        self.trace.append(TracePoint(t_s=round(self.deadline.elapsed_s, 3), value=self.value, bound=self.bound))
        if self.listener is not None:
            self.listener(self)
