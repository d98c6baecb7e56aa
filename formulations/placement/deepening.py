"""Exact search for placements with little excess: pipelines, ladders and other sparse flows on a mesh.

Excess counts hops beyond the shortest distance. Stages are placed one after the other, each near the placed stages that
it has flows with, while the excess stays within a limit; each time the search below a limit is exhausted the limit
rises to the least excess that was cut off (iterative deepening, Korf 1985). So the limit is a proved bound at any time,
and the first placement that is found within a limit that small is optimal. What cuts: the flows still open around
placed stages, free dies with too few free neighbours, and on ladders `ladder_floor` and `seam`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from formulations.placement.assignment import Ints
from formulations.placement.deepening_kernel import (
    BEYOND,
    LIMIT,
    NODES,
    NOTHING,
    POSITION,
    REACHED,
    Order,
    Path,
    Rungs,
    advance,
)
from formulations.placement.ladder import Ladder, both_ways, ladder_of
from formulations.placement.ladder_floor import is_even, ladder_bound, least_cost, longest_strip, odd_rungs
from formulations.placement.problem import PlacementProblem, filled
from formulations.placement.seam import crossing_cost, structure_of
from formulations.placement.symmetry_kernel import NEVER, Symmetry
from formulations.placement.variables import shortest_and_longest

NODES_PER_SECOND = 4_000_000
STEPS_TO_REACHED = 8


class Deepening:
    """A search that goes on from where it stopped.

    Parameters
    ----------
    problem
        Symmetric distances; `gilmore_lawler.fits` must hold.
    reached
        Value in ticks of a placement that is known; only better ones are looked for.
    """

    nodes_per_second = NODES_PER_SECOND

    def __init__(self, problem: PlacementProblem, reached: int | None) -> None:
        self._problem = problem
        shortest = shortest_and_longest(problem)[0]
        self._base = shortest * sum(problem.ticks)
        ladder = ladder_of(problem) if shortest == 1 else None
        self._stages = _sequence(problem, ladder)
        self._order = _order(problem, self._stages, shortest)
        self._rungs = _rungs(problem, ladder)
        images = np.array(problem.symmetries[1:], dtype=np.int64).reshape(-1, problem.dies)
        self._symmetry = Symmetry(images, np.full(len(images), NEVER, dtype=np.int64))
        self._proved = 0 if ladder is None else ladder_bound(ladder, self._rungs.structure)
        self._path = self._new_path()
        self._limit_at(self._proved)
        self.finished = self._proved >= NOTHING
        if reached is not None:
            self.tell(reached)

    def run(self, nodes: int) -> None:
        """Search so many nodes further, or to the end."""
        stop = self.nodes + nodes
        while not self.finished and self.nodes < stop:
            if advance(self._order, self._rungs, self._symmetry, self._path, stop - self.nodes):
                self._raise_limit()

    def tell(self, reached: int) -> None:
        """Another search knows a placement of this value; only better ones are looked for."""
        scalars = self._path.scalars
        scalars[REACHED] = min(scalars[REACHED], reached - self._base)
        scalars[LIMIT] = min(scalars[LIMIT], scalars[REACHED] - 1)
        self.finished = self.finished or self._proved >= scalars[REACHED]

    @property
    def nodes(self) -> int:
        """Dies tried so far."""
        return int(self._path.scalars[NODES])

    @property
    def bound(self) -> int | None:
        """No placement has a smaller value, in ticks; None if the search has shown that there is none."""
        return None if self._proved >= NOTHING else self._base + self._proved

    @property
    def placement(self) -> list[int] | None:
        """The best placement that the search found itself."""
        if self._path.best[0] < 0:
            return None
        placement = [-1] * self._problem.stages
        for stage, die in zip(self._stages, self._path.best, strict=True):
            placement[stage] = int(die)
        return filled(placement, self._problem.dies)

    def _raise_limit(self) -> None:
        """The search within the limit is over: all that was cut off, and so all that is left, costs BEYOND at least."""
        reached = int(self._path.scalars[REACHED])
        self._proved = min(reached, int(self._path.scalars[BEYOND]))
        if self._proved == reached or self._proved >= NOTHING:
            self.finished = True
            return
        # Where weights differ much the next limit may be hardly higher; a few steps must do.
        step = (min(reached, 3 * self._proved) - self._proved) // STEPS_TO_REACHED
        self._limit_at(min(self._proved + step, reached - 1))

    def _limit_at(self, limit: int) -> None:
        self._path.scalars[LIMIT] = limit
        self._path.scalars[BEYOND] = NOTHING
        self._path.scalars[POSITION] = 0
        self._path.pointer[0] = 0

    def _new_path(self) -> Path:
        stages, dies = len(self._stages), self._problem.dies
        zeros = np.zeros
        scalars = zeros(5, np.int64)
        scalars[REACHED] = NOTHING
        return Path(
            die=zeros(stages, np.int64),
            paid=zeros(stages + 1, np.int64),
            pointer=zeros(stages, np.int64),
            used=zeros(dies, np.int64),
            free_on=np.bincount(self._rungs.island, minlength=self._rungs.islands).astype(np.int64),
            best=np.full(stages, -1, dtype=np.int64),
            scalars=scalars,
        )


def _sequence(problem: PlacementProblem, ladder: Ladder | None) -> list[int]:
    """The order of the stages: along the rungs, else always the one with most weight towards those before it.

    Stages without flows and partners are left out. Chains begin at an end, other graphs at their heaviest stage.
    """
    between = both_ways(problem)
    weight = np.zeros((problem.stages, problem.stages), dtype=np.int64)
    for (s, t), ticks in between.items():
        # A partner that must lie beside comes before all others.
        weight[s, t] = weight[t, s] = ticks + 1
    for i, j in problem.pairs:
        weight[i, j] = weight[j, i] = weight[i, j] + sum(problem.ticks)
    count = (weight > 0).sum(axis=1)
    order = [] if ladder is None else ladder.order
    left = [stage for stage in range(problem.stages) if count[stage] and stage not in order]
    while left:
        towards = weight[left][:, order].sum(axis=1)
        total = weight[left].sum(axis=1)
        first = [
            (-int(pull), int(count[stage]) if count.max() <= 2 else -int(pulls), stage)
            for stage, pull, pulls in zip(left, towards, total, strict=True)
        ]
        chosen = min(first)[2]
        order.append(chosen)
        left.remove(chosen)
    return order


def _order(problem: PlacementProblem, stages: Sequence[int], shortest: int) -> Order:
    size, dies = len(stages), problem.dies
    at = {stage: position for position, stage in enumerate(stages)}
    flows = sorted((max(at[s], at[t]), min(at[s], at[t]), ticks) for (s, t), ticks in both_ways(problem).items())
    pairs = {(max(at[i], at[j]), min(at[i], at[j])) for i, j in problem.pairs}
    excess = np.maximum(problem.hops - shortest, 0)
    nearest = np.argsort(problem.hops + np.eye(dies, dtype=np.int64) * (-1 - problem.hops), axis=1, kind="stable")[
        :, 1:
    ]
    counted = [(later, earlier, ticks) for later, earlier, ticks in flows if ticks > 0]
    open_at = [_open_positions(counted, position) for position in range(size + 1)]
    degree = np.bincount([end for later, earlier, _ in counted for end in (later, earlier)], minlength=size)
    most = int(degree.max(initial=0))
    full = size == dies
    anchors = [_anchor(flows, pairs, position) for position in range(size)]
    is_chain = [(later, earlier) for later, earlier, _ in counted] == [(p, p - 1) for p in range(1, size)]
    # Only odd distances change the colour.
    chessboard = full and is_chain and shortest % 2 == 1 and is_even(problem.hops)
    return Order(
        excess=excess,
        nearest=np.ascontiguousarray(nearest),
        touching=_neighbours(excess + np.eye(dies, dtype=np.int64), 0),
        adjacent=(problem.hops == 1).astype(np.int64),
        earlier_from=np.searchsorted([later for later, *_ in flows], np.arange(size + 1)).astype(np.int64),
        earlier=_ints(earlier for _, earlier, _ in flows),
        earlier_weight=_ints(ticks for *_, ticks in flows),
        earlier_adjacent=_ints((later, earlier) in pairs for later, earlier, _ in flows),
        anchor=_ints(anchor for anchor, _ in anchors),
        anchor_weight=_ints(ticks for _, ticks in anchors),
        open_from=np.cumsum([0, *(len(entries) for entries in open_at)]).astype(np.int64),
        open=_ints(position for entries in open_at for position, *_ in entries),
        open_count=_ints(count for entries in open_at for _, count, _ in entries),
        open_weight=_ints(least for entries in open_at for *_, least in entries),
        least_weight=_ints(
            min((ticks for later, _, ticks in counted if later >= position), default=0) for position in range(size + 1)
        ),
        missing_flows=_ints((most - degree[position:]).sum() for position in range(size + 1)),
        most_flows=most,
        full=full,
        colour=problem.hops[0] % 2 if chessboard else np.zeros(0, dtype=np.int64),
    )


def _anchor(flows: Sequence[tuple[int, int, int]], pairs: set[tuple[int, int]], position: int) -> tuple[int, int]:
    """The earlier position around which to look, and the weight of the flow to it: a partner, or the heaviest flow."""
    options = [((position, e) in pairs, ticks, e) for later, e, ticks in flows if later == position]
    _, ticks, earlier = max(options, default=(False, 0, -1))
    return earlier, ticks


def _open_positions(flows: Sequence[tuple[int, int, int]], position: int) -> list[tuple[int, int, int]]:
    """(position, number of flows, least weight) of those before `position` with flows to it or later ones."""
    left: dict[int, list[int]] = {}
    for later, earlier, ticks in flows:
        if earlier < position <= later:
            left.setdefault(earlier, []).append(ticks)
    return [(earlier, len(weights), min(weights)) for earlier, weights in sorted(left.items())]


def _rungs(problem: PlacementProblem, ladder: Ladder | None) -> Rungs:
    structure, island, surplus = structure_of(problem)
    beside = _neighbours(structure, 1)
    even = is_even(structure)
    floor: Ints = np.zeros((1, 3, 1, 1), dtype=np.int64)
    weight: Ints = np.zeros(1, dtype=np.int64)
    crossing: Ints = np.zeros((1, 2, 2, 2, 1), dtype=np.int64)
    if ladder is not None:
        odd = odd_rungs(structure, even, 2 * ladder.rungs)
        floor = least_cost(ladder, longest_strip(structure), even, odd + 1 if odd else 0)
        weight, crossing = ladder.rung, crossing_cost(ladder)
    return Rungs(
        number=0 if ladder is None else ladder.rungs,
        even=even,
        floor=floor,
        weight=weight,
        beside=beside,
        colour=structure[0] % 2,
        structure=structure,
        straight=problem.mesh_hops is not None and beside.shape[1] <= 4,
        island=np.array(island, dtype=np.int64),
        islands=max(island) + 1,
        surplus=surplus,
        crossing=crossing,
    )


def _neighbours(matrix: Ints, distance: int) -> Ints:
    """Columns that hold `distance` in each row, padded with -1."""
    rows = [np.flatnonzero(row == distance) for row in matrix]
    width = max(1, *(len(row) for row in rows))
    return np.array([np.pad(row, (0, width - len(row)), constant_values=-1) for row in rows], dtype=np.int64)


def _ints(values: Iterable[int | np.integer[Any]]) -> Ints:
    return np.array([int(value) for value in values], dtype=np.int64)
