"""Runs the project's own searches side by side, in slices, until one of them has a proof or the time is up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from formulations.placement.annealing import Annealing
from formulations.placement.branch import BranchAndBound
from formulations.placement.deepening import Deepening
from formulations.placement.gilmore_lawler import fits
from formulations.placement.local_search import KickSearch
from formulations.placement.problem import PlacementProblem
from formulations.placement.tabu import TabuSearch

MOST_DIES = 1024
"""Dies up to which there is a search at all."""
MOST_BRANCHED_DIES, MOST_DEEPENED_DIES, MOST_TABU_DIES = 144, 256, 144
"""Dies up to which each search is worth its tables."""
FEWEST_ANNEALED_DIES = 48
FIRST_SLICE_S = 0.005
LONGEST_SLICE_S = 0.1
SLICES_LEFT = 20
"""Slices are so much shorter than the time left, so that they end in time."""
LEADER_WEIGHT = 4
"""Slices for the exact search with the best bound while the others get one each."""
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
    bound_by
        Where the bound is from.
    listen
        Called after each round of searches.
    """

    problem: PlacementProblem
    best: list[int] | None
    bound: int
    infeasible: bool = False
    bound_by: str = "structure or assignment"
    exact: dict[str, ExactSearch] = field(default_factory=dict)
    heuristics: list[HeuristicSearch] = field(default_factory=list)
    listen: Callable[[Portfolio], None] | None = None

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
        clock = _Clock(seconds, deterministic)
        self._start(rng)
        if not (self.exact or self.heuristics):
            return
        clock.count(0.0)
        slices = len(self.heuristics) + (LEADER_WEIGHT + len(self.exact) - 1 if self.exact else 0)
        slice_s = FIRST_SLICE_S
        while not self.closed and not self.is_near(relative_gap) and not clock.is_past():
            for name, search in self.exact.items():
                weight = LEADER_WEIGHT if name == self.bound_by or len(self.exact) == 1 else 1
                search.run(int(weight * slice_s * search.nodes_per_second) + 1)
                self._hear(name, search)
                if self.closed:
                    return
            for heuristic in self.heuristics:
                heuristic.run(int(slice_s * heuristic.steps_per_second) + 1)
                self._offer(heuristic.placement)
            clock.count(slice_s * slices)
            if self.listen is not None:
                self.listen(self)
            slice_s = min(LONGEST_SLICE_S, 2 * slice_s, max(FIRST_SLICE_S, clock.left_s / SLICES_LEFT))

    def _start(self, rng: np.random.Generator) -> None:
        problem, value = self.problem, self.value
        sparse = problem.symmetric and len(problem.flows) <= MOST_FLOWS_PER_STAGE * problem.stages
        if sparse and problem.dies <= MOST_DEEPENED_DIES:
            self.exact["iterative deepening"] = Deepening(problem, value)
        if problem.dies <= MOST_BRANCHED_DIES:
            self.exact["branch and bound"] = BranchAndBound(problem, value)
        if problem.pairs:
            if self.best is not None and problem.dies <= MOST_DEEPENED_DIES:
                self.heuristics.append(KickSearch(problem, self.best, rng))
            return
        start = list(range(problem.stages)) if self.best is None else self.best
        if problem.dies <= MOST_TABU_DIES:
            self.heuristics.append(TabuSearch(problem, start, rng))
        if problem.dies >= FEWEST_ANNEALED_DIES:
            self.heuristics.append(Annealing(problem, start, rng))

    def _hear(self, name: str, search: ExactSearch) -> None:
        """Take over what an exact search knows."""
        if search.placement is not None:
            self._offer(search.placement)
        if search.bound is None:
            self.infeasible = self.best is None
            self.bound_by = name
        elif search.bound > self.bound:
            self.bound, self.bound_by = search.bound, name

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

    @property
    def left_s(self) -> float:
        """Seconds until the time is up."""
        return math.inf if self.seconds is None else self.seconds - self.spent_s

    def is_past(self) -> bool:
        """True once the time is up."""
        return self.left_s <= 0


def suits(problem: PlacementProblem) -> bool:
    """True if the searches can work on the problem at all."""
    return bool(problem.flows or problem.pairs) and problem.dies <= MOST_DIES and problem.stages > 1 and fits(problem)
