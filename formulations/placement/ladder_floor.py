"""A structural bound for ladders on meshes.

Call the hops of a flow beyond the first its excess, and the cycle of rungs k, k+1 and the rails between them square k.

1. On a mesh, whole or with dead dies, every cycle has an even number of hops (each hop changes the colour of the
   chessboard). A square has four flows, so the sum of its excesses is even: 0, or at least 2.
2. If it is 0, rungs k and k+1 are parallel dominoes side by side. If square k+1 has no excess either, rung k+2 lies
   beside rung k+1 and, as its dies are free, on the other side of it. So squares without excess in a row form a
   straight strip, two dies wide, with at most as many dominoes as the longest strip that the mesh holds, L.
3. A placement therefore has a pattern of excesses in which a square's sum is 0 or even and positive, and at most L - 1
   squares in a row have the sum 0. The least cost of such a pattern is a bound. The excess of a rung counts in the
   squares on both of its sides; with adjacent partners it is 0, and a square that ends a strip costs 2 on its rails.
4. On a chessboard a rung with even excess takes a die of each colour. Where dead dies leave more of one colour, some
   rungs must have an odd excess.

Only three kinds of rung need to be told apart, by their excess: none, odd, even and positive. Larger excesses of the
same kind cost more and admit the same continuations. `least_cost` goes through the ladder from its end, rung by rung.

On other metrics of distances >= 1, where cycles need not be even, step 1 reads: the sum is 0 or positive. L is in any
case the largest number of dominoes (couples of dies one hop apart) that are joined by squares without excess.
"""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np

from formulations.placement.assignment import Ints
from formulations.placement.ladder import Ladder, ladder_of
from formulations.placement.problem import Hops, PlacementProblem
from formulations.placement.seam import structure_of
from formulations.placement.variables import shortest_and_longest

NONE, ODD, EVEN = range(3)
"""Kinds of rung excess; with uneven cycles ODD stands for any."""

UNREACHABLE = 1 << 52
MOST_COUPLES = 100_000
"""Couples of dominoes that are looked at."""


def is_even(hops: Hops) -> bool:
    """True if every cycle has an even number of hops."""
    through = hops[0][:, None] + hops[0][None, :] + hops
    return bool((through % 2 == 0).all())


def longest_strip(hops: Hops) -> int:
    """L: the most dominoes in a chain of squares without excess, or more where dies have many neighbours."""
    dominoes = [(int(a), int(b)) for a, b in np.argwhere(hops == 1) if a < b]
    degree = (hops == 1).sum(axis=1)
    if sum(int(degree[a] * degree[b]) for a, b in dominoes) > MOST_COUPLES:
        return max(1, len(hops) // 2)  # dominoes of a chain are disjoint
    number = {domino: i for i, domino in enumerate(dominoes)}
    beside = [np.flatnonzero(row == 1).tolist() for row in hops]
    joined: nx.Graph[int] = nx.Graph()
    joined.add_nodes_from(range(len(dominoes)))
    for i, (a, b) in enumerate(dominoes):
        for c, d in product(beside[a], beside[b]):
            other = number.get((min(c, d), max(c, d)))
            if other is not None and len({a, b, c, d}) == 4:
                joined.add_edge(i, other)
    return max((len(component) for component in nx.connected_components(joined)), default=1)


def odd_rungs(hops: Hops, even: bool, stages: int) -> int:
    """How many rungs at least have an odd excess, so that both ends lie on one colour of the chessboard.

    Other rungs take a die of each colour. `stages` are those on rungs; dies that these leave over may be of any colour.
    """
    if not even:
        return 0
    white = int((hops[0] % 2).sum())
    return max(0, -(-(abs(len(hops) - 2 * white) - (len(hops) - stages)) // 2))


def least_cost(ladder: Ladder, longest: int, even: bool, most_odd: int = 0) -> Ints:
    """Least cost of the excesses after each rung.

    Returns
    -------
    Shape (h, 3, longest, most_odd + 1): after rung k of a kind (NONE, ODD, EVEN), if at most so many squares without
    excess follow at once and at least so many later rungs are odd; ticks, UNREACHABLE where there are too few.
    """
    floor = np.full((ladder.rungs, 3, longest, most_odd + 1), UNREACHABLE, dtype=np.int64)
    floor[-1, :, :, 0] = 0
    kinds = (NONE,) if ladder.forced else (NONE, ODD, EVEN)
    for k in range(ladder.rungs - 2, -1, -1):
        cheaper_rail = int(ladder.rails[k].min())
        rung = int(ladder.rung[k + 1])
        for kind, ahead, following, rail in product((NONE, ODD, EVEN), range(longest), kinds, range(3)):
            total = kind + following + rail
            if even and total % 2:
                continue
            # After a square with excess a strip may begin, at its full length.
            left = ahead - 1 if total == 0 else longest - 1
            if left < 0:
                continue
            later = floor[k + 1, following, left]
            if following == ODD:
                later = later[[0, *range(most_odd)]]
            reached = np.minimum(UNREACHABLE, following * rung + rail * cheaper_rail + later)
            np.minimum(floor[k, kind, ahead], reached, out=floor[k, kind, ahead])
    return floor


def all_shortest(problem: PlacementProblem) -> int:
    """A bound in ticks: every flow has the shortest distance at least."""
    return shortest_and_longest(problem)[0] * sum(problem.ticks)


def structural_bound(problem: PlacementProblem) -> int | None:
    """A bound in ticks from the shape alone: shortest distances everywhere, and a ladder bends.

    None where adjacent partners cannot all be placed, for want of dies of one colour.
    """
    ladder = ladder_of(problem) if shortest_and_longest(problem)[0] == 1 else None
    bent = 0 if ladder is None else ladder_bound(ladder, structure_of(problem)[0])
    return None if bent >= UNREACHABLE else all_shortest(problem) + bent


def ladder_bound(ladder: Ladder, hops: Hops) -> int:
    """The least cost of the excesses of a whole ladder, in ticks; distances must be >= 1."""
    even = is_even(hops)
    odd = odd_rungs(hops, even, 2 * ladder.rungs)
    floor = least_cost(ladder, longest_strip(hops), even, odd)[0, :, -1]
    if ladder.forced:
        return int(floor[NONE, odd])
    first = int(ladder.rung[0])
    return min(int(floor[NONE, odd]), first + int(floor[ODD, max(0, odd - 1)]), 2 * first + int(floor[EVEN, odd]))
