"""Loads of links, and placements of the same value that spread them (second objective: the largest link load).

A flow loads every link of its route with its weight, and a link that counts as several hops as many times as much: the
loads of all links add up to the sum of weight*hops. Each direction of a link is counted by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from formulations.placement.assignment import Ints
from formulations.placement.compiled import entry, part
from formulations.placement.gilmore_lawler import fits
from formulations.placement.problem import PlacementProblem
from instances.mesh import Die, Link, Mesh

MOST_DIES = 144
"""Dies up to which the routes between all of them are listed."""
MOST_STEPS = 200_000
MOST_WORK = 5e7
"""Flows of all steps together, about a fifth of a second."""


class Routes(NamedTuple):
    """Links between any two dies."""

    pointers: Ints
    """Shape (D * D + 1,): where the links from die d to die e begin in `links`, at d * D + e."""
    links: Ints
    hops: Ints
    """Shape (links,): hops that each link counts as."""


@dataclass(frozen=True)
class LoadedLink:
    """The link with the largest load.

    Attributes
    ----------
    load
        In the flows' own unit.
    link
        Its two dies, in the direction of the load.
    """

    load: float
    link: Link


def largest_load(
    problem: PlacementProblem, mesh: Mesh, dies: Sequence[Die], placement: Sequence[int], length: Callable[[Link], int]
) -> LoadedLink | None:
    """The largest link load of a placement; None without flows."""
    loads: dict[Link, int] = {}
    for (s, t, _), ticks in zip(problem.flows, problem.ticks, strict=True):
        for link in mesh.route(dies[placement[s]], dies[placement[t]]):
            loads[link] = loads.get(link, 0) + ticks * length(link)
    if not loads:
        return None
    link = max(loads, key=lambda link: (loads[link], link))
    return LoadedLink(problem.weighed(loads[link]), link)


def spread_out(
    problem: PlacementProblem,
    mesh: Mesh,
    dies: Sequence[Die],
    placement: Sequence[int],
    length: Callable[[Link], int],
    rng: np.random.Generator,
) -> list[int]:
    """A placement of no larger value with a smaller largest link load, where a short search finds one."""
    if problem.dies > MOST_DIES or not problem.flows or not fits(problem):
        return list(placement)
    search = LoadSearch(problem, routes_of(mesh, dies, length), placement, rng)
    search.run(int(min(MOST_STEPS, MOST_WORK / len(problem.flows))))
    return search.placement


def routes_of(mesh: Mesh, dies: Sequence[Die], length: Callable[[Link], int]) -> Routes:
    """Routes between the dies, as transfers take them (column index first, around what is disabled)."""
    number = {link: i for i, link in enumerate(mesh.links)}
    links: list[int] = []
    pointers = [0]
    for source in dies:
        for target in dies:
            links.extend(number[link] for link in mesh.route(source, target))
            pointers.append(len(links))
    hops = np.array([length(link) for link in mesh.links], dtype=np.int64)
    return Routes(np.array(pointers, dtype=np.int64), np.array(links, dtype=np.int64), hops)


class LoadSearch:
    """A walk over placements of one value towards a smaller largest load, then a smaller sum of squared loads."""

    def __init__(
        self, problem: PlacementProblem, routes: Routes, start: Sequence[int], rng: np.random.Generator
    ) -> None:
        self._problem, self._routes, self._rng = problem, routes, rng
        self._ends = np.array([(s, t) for s, t, _ in problem.flows], dtype=np.int64).reshape(-1, 2)
        self._ticks = np.array(problem.ticks, dtype=np.int64)
        self._pairs = np.array(problem.pairs, dtype=np.int64).reshape(-1, 2)
        rest = [die for die in range(problem.dies) if die not in set(start)]
        self._best = np.array([*start, *rest], dtype=np.int64)
        self._rank = self._ranked(self._best)

    def run(self, steps: int) -> None:
        """Begin from each mirror image of the best placement, and make so many steps in all."""
        images = [np.array(image, dtype=np.int64)[self._best] for image in self._problem.symmetries]
        images = sorted(images, key=self._ranked)[: max(1, steps // 100)]
        for image in images:
            self._walk(image, steps // len(images))

    @property
    def placement(self) -> list[int]:
        """The best placement so far; its value is that of the start or better."""
        return [int(die) for die in self._best[: self._problem.stages]]

    def _walk(self, order: Ints, steps: int) -> None:
        spread(self._ends, self._ticks, self._problem.hops, self._pairs, self._routes, order, self._rng, steps)
        rank = self._ranked(order)
        if rank < self._rank:
            self._best, self._rank = order, rank

    def _ranked(self, order: Ints) -> tuple[int, int, float]:
        value = int(value_of(self._ends, self._ticks, self._problem.hops, order))
        largest, squares = loads_of(self._ends, self._ticks, self._routes, order)
        return value, int(largest), float(squares)


@entry()
def value_of(ends: Ints, ticks: Ints, hops: Ints, order: Ints) -> int:
    """Sum of weight*hops, in ticks."""
    value = 0
    for flow in range(ticks.shape[0]):
        value += ticks[flow] * hops[order[ends[flow, 0]], order[ends[flow, 1]]]
    return value


@entry()
def loads_of(ends: Ints, ticks: Ints, routes: Routes, order: Ints) -> tuple[int, float]:
    """Largest load, and sum of squared loads."""
    loads = np.zeros(routes.hops.shape[0], dtype=np.int64)
    for flow in range(ticks.shape[0]):
        pair = order[ends[flow, 0]] * order.shape[0] + order[ends[flow, 1]]
        for k in range(routes.pointers[pair], routes.pointers[pair + 1]):
            loads[routes.links[k]] += ticks[flow] * routes.hops[routes.links[k]]
    largest: int = loads.max()
    squares: float = (loads.astype(np.float64) ** 2).sum()
    return largest, squares


@entry()
def spread(
    ends: Ints,
    ticks: Ints,
    hops: Ints,
    pairs: Ints,
    routes: Routes,
    order: Ints,
    rng: np.random.Generator,
    steps: int,
) -> None:
    """Exchange the stages of two dies at random, so many times, where that makes nothing worse; in place."""
    value = value_of(ends, ticks, hops, order)
    largest, squares = loads_of(ends, ticks, routes, order)
    for _ in range(steps):
        i, j = rng.integers(0, order.shape[0]), rng.integers(0, order.shape[0])
        order[i], order[j] = order[j], order[i]
        new_value = value_of(ends, ticks, hops, order)
        if new_value <= value and _adjacent(hops, pairs, order):
            new_largest, new_squares = loads_of(ends, ticks, routes, order)
            is_no_worse = new_largest < largest or (new_largest == largest and new_squares <= squares)
            if new_value < value or is_no_worse:
                value, largest, squares = new_value, new_largest, new_squares
                continue
        order[i], order[j] = order[j], order[i]


@part
def _adjacent(hops: Ints, pairs: Ints, order: Ints) -> bool:
    apart = 0
    for k in range(pairs.shape[0]):
        if hops[order[pairs[k, 0]], order[pairs[k, 1]]] != 1:
            apart += 1
    return apart == 0
