"""The best plan so far: every plan is offered here, replayed, and kept if it is better."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from formulations.interface import relative_gap
from formulations.scope import BoundScope
from instances.plan import Plan
from solver.evaluate import Evaluator
from solver.limits import Deadline
from solver.result import TracePoint

Listener = Callable[["Incumbent"], None]


@dataclass
class Incumbent:
    """Best replayed plan, best proved bound, and how they came about.

    ``listener`` is told of every improvement; a command shows progress with it. ``skipped`` is the last plan for whose
    replay time was too short, ``too_long_s`` the shortest that was. Plans outside ``scope`` are replayed, never kept.
    """

    evaluator: Evaluator
    deadline: Deadline
    listener: Listener | None = None
    plan: Plan | None = None
    value: float | None = None
    bound: float | None = None
    trace: list[TracePoint] = field(default_factory=list)
    skipped: Plan | None = None
    too_long_s: float = math.inf
    scope: BoundScope | None = None

    def offer(self, plan: Plan) -> float | None:
        """Replay a plan and keep it if it is the best; its value, or None if it does not run."""
        return self.offer_all([plan])[0]

    def offer_all(self, plans: Sequence[Plan]) -> list[float | None]:
        """As ``offer``, for plans that differ little, in one call; None too where time is too short for a replay."""
        fit = sum(1 for _ in takewhile(lambda entry: self.affords(entry[1], entry[0]), enumerate(plans, start=1)))
        if fit < len(plans):
            self.skipped = plans[fit]
            self.skip(self.evaluator.replay_s(plans[fit]))
        values = [*self.evaluator.values(plans[:fit]), *[None] * (len(plans) - fit)]
        for plan, value in zip(plans, values, strict=True):
            if value is not None:
                self.keep(plan, value)
        return values

    def keep(self, plan: Plan, value: float) -> None:
        """Keep a plan that was replayed already if it is the best and in scope."""
        better = self.value is None or value < self.value
        if better and (self.scope is None or self.scope.contains(plan)):
            self.plan, self.value = plan, value
            self._note()

    def skip(self, replay_s: float) -> None:
        """Note that time was too short for a replay of so many seconds."""
        self.too_long_s = min(self.too_long_s, replay_s)

    def affords(self, plan: Plan, replays: int = 1) -> bool:
        """Whether time is left for so many replays of such a plan, and for the last one of the answer."""
        return self.affords_s((replays + 1) * self.evaluator.replay_s(plan))

    def affords_s(self, seconds: float) -> bool:
        """Whether so much time is left."""
        return self.deadline.left_s is None or seconds <= self.deadline.left_s

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
