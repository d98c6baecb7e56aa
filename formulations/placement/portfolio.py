"""Runs the project's own searches side by side, in slices, until one of them has a proof or the time is up."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from formulations.placement.branch import BranchAndBound
from formulations.placement.deepening import Deepening
from formulations.placement.gilmore_lawler import fits
from formulations.placement.local_search import KickSearch
from formulations.placement.problem import PlacementProblem
from formulations.placement.tabu import TabuSearch

MOST_DIES = 256
"""Dies up to which these searches are worth their tables."""
FIRST_SLICE_S = 0.02
LONGEST_SLICE_S = 0.5
MOST_FLOWS_PER_STAGE = 3
"""Flows over stages up to which a graph counts as sparse."""


class ExactSearch(Protocol):
    """A search that proves, and goes on from where it stopped."""

    finished: bool

    def run(self, nodes: int) -> None:
        """Search so many nodes further."""
        ...

    def tell(self, reached: int) -> None:
        """Only values below this are of interest."""
        ...

    @property
    def nodes_per_second(self) -> int:
        """A rough rate."""
        ...

    @property
    def bound(self) -> int | None:
        """A proved bound in ticks; None: no placement."""
        ...

    @property
    def placement(self) -> list[int] | None:
        """The best placement found."""
        ...


class HeuristicSearch(Protocol):
    """A search that only improves placements."""

    def run(self, steps: int) -> None:
        """Make so many steps further."""
        ...

    @property
    def steps_per_second(self) -> float:
        """A rough rate."""
        ...

    @property
    def placement(self) -> list[int]:
        """The best placement found."""
        ...


@dataclass
class Portfolio:
    """Best placement and bound so far, in ticks.

    Attributes
    ----------
    best
        None if no placement is known.
    bound
        No placement has a smaller value.
    infeasible
        True if it is proved that partners cannot all be adjacent.
    proved_by
        The search that closed the gap; empty while none has.
    """

    problem: PlacementProblem
    best: list[int] | None
    bound: int
    infeasible: bool = False
    proved_by: str = ""
    exact: dict[str, ExactSearch] = field(default_factory=dict)
    heuristic: HeuristicSearch | None = None

    @property
    def value(self) -> int | None:
        """Ticks of the best placement."""
        return None if self.best is None else self.problem.ticks_of(self.best)

    @property
    def closed(self) -> bool:
        """True if nothing is left to do."""
        return self.infeasible or (self.value is not None and self.value <= self.bound)

    def run(
        self, seconds: float | None, deterministic: bool, rng: np.random.Generator, relative_gap: float = 0.0
    ) -> None:
        """Search until the gap is closed, or as small as asked, or the time is up.

        Deterministic seconds count work instead. A keyboard interrupt passes through between two slices; what was
        found until then is kept.
        """
        if self.closed or not suits(self.problem):
            return
        self._start(rng)
        clock = _Clock(seconds, deterministic)
        slice_s = FIRST_SLICE_S
        while not self.closed and not self.is_near(relative_gap) and not clock.is_past():
            share_s = slice_s / (len(self.exact) + (self.heuristic is not None))
            for name, search in self.exact.items():
                search.run(int(share_s * search.nodes_per_second) + 1)
                self._hear(name, search)
                if self.closed:
                    return
            if self.heuristic is not None:
                self.heuristic.run(int(share_s * self.heuristic.steps_per_second) + 1)
                self._offer(self.heuristic.placement)
            clock.count(slice_s)
            slice_s = min(LONGEST_SLICE_S, 2 * slice_s)

    def _start(self, rng: np.random.Generator) -> None:
        problem, value = self.problem, self.value
        if problem.symmetric and len(problem.flows) <= MOST_FLOWS_PER_STAGE * problem.stages:
            self.exact["iterative deepening"] = Deepening(problem, value)
        self.exact["branch and bound"] = BranchAndBound(problem, value)
        if not problem.pairs:
            start = list(range(problem.stages)) if self.best is None else self.best
            self.heuristic = TabuSearch(problem, start, rng)
        elif self.best is not None:
            self.heuristic = KickSearch(problem, self.best, rng)

    def _hear(self, name: str, search: ExactSearch) -> None:
        """Take over what an exact search knows."""
        if search.placement is not None:
            self._offer(search.placement)
        if search.bound is None:
            self.infeasible = self.best is None
        else:
            self.bound = max(self.bound, search.bound)
        if search.finished and self.value is not None:
            self.bound = self.value
        if self.closed:
            self.proved_by = name

    def _offer(self, placement: list[int]) -> None:
        value = self.problem.ticks_of(placement)
        if self.value is None or value < self.value:
            self.best = placement
            for search in self.exact.values():
                search.tell(value)

    def is_near(self, relative_gap: float) -> bool:
        """True if the gap is as small as asked."""
        return self.value is not None and self.value - self.bound <= relative_gap * self.value


@dataclass
class _Clock:
    """Time, or work in place of it."""

    seconds: float | None
    deterministic: bool
    spent_s: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def count(self, slice_s: float) -> None:
        """A slice of work is done."""
        self.spent_s = self.spent_s + slice_s if self.deterministic else time.monotonic() - self.started

    def is_past(self) -> bool:
        """True once the time is up."""
        return self.seconds is not None and self.spent_s >= self.seconds


def suits(problem: PlacementProblem) -> bool:
    """True if the searches can work on the problem at all."""
    return bool(problem.flows or problem.pairs) and problem.dies <= MOST_DIES and problem.stages > 1 and fits(problem)
