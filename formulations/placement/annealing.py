"""Simulated annealing for sparse flows on many dies, where a change of value is worked out from a stage's own flows.

Each step exchanges a stage with what lies on another die, often one close to a stage that it has a flow with. The
temperature falls by a constant factor from the size of a usual change to a fraction of the smallest one (Kirkpatrick,
Gelatt and Vecchi 1983). Each run is twice as long as the one before, and begins anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from formulations.placement.assignment import Ints
from formulations.placement.compiled import entry, part
from formulations.placement.problem import PlacementProblem

Floats = npt.NDArray[np.float64]

STEPS_PER_SECOND = 4e6
FIRST_STEPS_PER_DIE = 2_000
NEAR = 8
"""So many of the nearest dies count as close."""
SAMPLES = 1_000
COLD = 0.1
"""Last temperature over the smallest weight."""

# Places in `Run.scalars`.
VALUE, BEST, STEP, STEPS = range(4)


class Graph(NamedTuple):
    """Flows by stage: those of stage s with others, both ways, are at first[s] to first[s + 1] - 1."""

    first: Ints
    other: Ints
    forth: Ints
    back: Ints


class Run(NamedTuple):
    """Where the search is."""

    die_of: Ints
    """Shape (D,): dies of the stages, then those without one."""
    holder: Ints
    """Shape (D,): who lies on each die, as a place in `die_of`."""
    best: Ints
    scalars: Ints


class Annealing:
    """A search that goes on from where it stopped; partners that must be adjacent are not for it."""

    def __init__(self, problem: PlacementProblem, start: list[int], rng: np.random.Generator) -> None:
        size = problem.dies
        self._problem, self._rng, self._graph = problem, rng, _graph(problem)
        near = min(NEAR, size - 1)
        nearest = np.argsort(problem.hops + np.eye(size, dtype=np.int64) * (-1 - problem.hops), axis=1, kind="stable")
        self._near = np.ascontiguousarray(nearest[:, 1 : near + 1])
        rest = sorted(set(range(size)) - set(start))
        die_of = np.array([*start, *rest], dtype=np.int64)
        value = problem.ticks_of(start)
        steps = FIRST_STEPS_PER_DIE * size
        self._run = Run(die_of, np.argsort(die_of), die_of.copy(), np.array([value, value, 0, steps], dtype=np.int64))
        changes = sampled(self._graph, problem.hops, die_of, rng, problem.stages, SAMPLES)
        cold = COLD * max(1, min((ticks for ticks in problem.ticks if ticks), default=1))
        self._hot, self._cold = max(float(changes), 2 * cold), cold

    @property
    def steps_per_second(self) -> float:
        """A rough rate."""
        return STEPS_PER_SECOND

    def run(self, steps: int) -> None:
        """Make so many steps, starting anew where a run is over."""
        scalars = self._run.scalars
        while steps > 0:
            now = min(steps, int(scalars[STEPS] - scalars[STEP]))
            anneal(
                self._graph,
                self._problem.hops,
                self._near,
                self._run,
                self._rng,
                self._problem.stages,
                self._hot,
                self._cold,
                now,
            )
            steps -= now
            if scalars[STEP] >= scalars[STEPS]:
                scalars[STEP] = 0
                scalars[STEPS] *= 2

    @property
    def best_ticks(self) -> int:
        """Value of the best placement, as the search keeps it."""
        return int(self._run.scalars[BEST])

    @property
    def placement(self) -> list[int]:
        """The best placement met at the end of a call of `run`, or the start."""
        return [int(die) for die in self._run.best[: self._problem.stages]]


def _graph(problem: PlacementProblem) -> Graph:
    matrix = problem.tick_matrix
    touching = (matrix > 0) | (matrix.T > 0)
    source, target = np.nonzero(touching)
    first = np.searchsorted(source, np.arange(problem.stages + 1)).astype(np.int64)
    return Graph(first, target.astype(np.int64), matrix[source, target], matrix[target, source])


@entry()
def sampled(graph: Graph, hops: Ints, die_of: Ints, rng: np.random.Generator, stages: int, samples: int) -> float:
    """Mean size of the change of value by a random exchange."""
    total = 0.0
    for _ in range(samples):
        i, j = int(rng.integers(0, stages)), int(rng.integers(0, die_of.shape[0]))
        total += abs(_change(graph, hops, die_of, i, j, stages))
    return total / samples


@entry()
def anneal(
    graph: Graph,
    hops: Ints,
    near: Ints,
    run: Run,
    rng: np.random.Generator,
    stages: int,
    hot: float,
    cold: float,
    steps: int,
) -> None:
    """Make so many steps of a run."""
    die_of, holder, scalars = run.die_of, run.holder, run.scalars
    size = die_of.shape[0]
    factor = (cold / hot) ** (1.0 / scalars[STEPS])
    temperature = hot * factor ** scalars[STEP]
    for _ in range(steps):
        temperature *= factor
        i = int(rng.integers(0, stages))
        flows = graph.first[i + 1] - graph.first[i]
        if flows > 0 and rng.random() < 0.7:
            other = graph.other[graph.first[i] + rng.integers(0, flows)]
            j = int(holder[near[die_of[other], rng.integers(0, near.shape[1])]])
        else:
            j = int(rng.integers(0, size))
        if i == j:
            continue
        change = _change(graph, hops, die_of, i, j, stages)
        if change <= 0 or rng.random() < np.exp(-change / temperature):
            die_of[i], die_of[j] = die_of[j], die_of[i]
            holder[die_of[i]], holder[die_of[j]] = i, j
            scalars[VALUE] += change
    scalars[STEP] += steps
    if scalars[VALUE] < scalars[BEST]:
        scalars[BEST] = scalars[VALUE]
        run.best[:] = die_of


@part
def _change(graph: Graph, hops: Ints, die_of: Ints, i: int, j: int, stages: int) -> int:
    """Change of value if i and j change places."""
    change: int = _moved(graph, hops, die_of, i, j)
    if j < stages:
        change += _moved(graph, hops, die_of, j, i)
        # Flows between the two only turn round.
        here, there = die_of[i], die_of[j]
        for k in range(graph.first[i], graph.first[i + 1]):
            if graph.other[k] == j:
                change += (graph.forth[k] - graph.back[k]) * (hops[there, here] - hops[here, there])
    return change


@part
def _moved(graph: Graph, hops: Ints, die_of: Ints, i: int, j: int) -> int:
    """Change of the flows between i and all but j if i goes to the die of j."""
    here, there = die_of[i], die_of[j]
    change = 0
    for k in range(graph.first[i], graph.first[i + 1]):
        if graph.other[k] != j:
            o = die_of[graph.other[k]]
            change += graph.forth[k] * (hops[there, o] - hops[here, o]) + graph.back[k] * (
                hops[o, there] - hops[o, here]
            )
    return change
