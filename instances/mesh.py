"""Geometry of a grid of dies: neighbours, directed links, routes and hops (spec section 3, rule ``link_fifo``).

A die is (row, column); a link is a directed pair of neighbouring dies. East is the next column, south the next row.
Besides the mesh there are two further topologies over the same grid of positions:

- "torus": the last die of a row or column is joined to its first too. A dimension-ordered route goes the shorter way
  round, towards the larger index where both ways are as long. In a row or column of two dies the way round is the link
  that is there already.
- "switch": every die has one link into and one out of a switch that never blocks. A transfer holds the sender's link
  in and the receiver's link out; both together count as one hop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

Die = tuple[int, int]
Link = tuple[Die, Die]
Routing = Literal["xy", "yx"]
Topology = Literal["mesh", "torus", "switch"]

SWITCH: Die = (-2, -2)
"""Row and column that stand for the switch as an end of a link."""

# East, west, south, north: the order in which a detour looks at neighbours.
_STEPS = ((0, 1), (0, -1), (1, 0), (-1, 0))


@dataclass(frozen=True)
class Mesh:
    """A rows x columns grid, made of wafers of wafer_rows x wafer_columns dies, joined as the topology says.

    Parameters
    ----------
    rows, columns
        Size of the whole grid, over all wafers.
    wafer_rows, wafer_columns
        Size of one wafer; None means that the whole grid is one wafer.
    disabled_dies
        Dies that are never used, and that nothing routes through.
    disabled_links
        Pairs of neighbours whose link is dead. One direction named disables both. A switch has none.
    topology
        How the dies are joined: "mesh", "torus" or "switch".

    Raises
    ------
    ValueError
        If a size is below 1, wafers do not fill the grid, or something disabled is outside the grid.
    """

    rows: int
    columns: int
    wafer_rows: int | None = None
    wafer_columns: int | None = None
    disabled_dies: frozenset[Die] = frozenset()
    disabled_links: frozenset[Link] = frozenset()
    topology: Topology = "mesh"

    def __post_init__(self) -> None:
        for name, total, wafer in (
            ("rows", self.rows, self.wafer_rows),
            ("columns", self.columns, self.wafer_columns),
        ):
            if total < 1:
                raise ValueError(f"a {self.topology} needs at least one of {name}, got {total}")
            if wafer is not None and (wafer < 1 or total % wafer):
                raise ValueError(f"wafers of {wafer} {name} do not fill a {self.topology} of {total} {name}")
        for die in self.disabled_dies:
            if not self.contains(die):
                raise ValueError(f"disabled die {die} is outside the {self}")
        for a, b in self.disabled_links:
            if not (self.contains(a) and self.contains(b) and self.adjacent(a, b)):
                raise ValueError(f"disabled link {a} - {b} does not join two neighbours of the {self.topology}")

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns} {self.topology}"

    @cached_property
    def live_dies(self) -> tuple[Die, ...]:
        """Enabled dies, row by row."""
        grid = ((row, column) for row in range(self.rows) for column in range(self.columns))
        return tuple(die for die in grid if die not in self.disabled_dies)

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Enabled directed links, by source die row by row, each in the order east, west, south, north.

        With a switch: every die's link into it, then every die's link out of it.
        """
        if self.topology == "switch":
            return (*((die, SWITCH) for die in self.live_dies), *((SWITCH, die) for die in self.live_dies))
        return tuple((die, other) for die in self.live_dies for other in self.neighbours(die))

    def contains(self, die: Die) -> bool:
        """Whether the position lies in the grid, enabled or not."""
        return 0 <= die[0] < self.rows and 0 <= die[1] < self.columns

    def adjacent(self, a: Die, b: Die) -> bool:
        """Whether a link of the topology, enabled or not, joins two positions of the grid; never with a switch."""
        return self.topology != "switch" and b in self._beside(a)

    def neighbours(self, die: Die) -> tuple[Die, ...]:
        """Enabled dies one hop away: in the order east, west, south, north; with a switch all others, row by row."""
        if self.topology == "switch":
            return tuple(other for other in self.live_dies if other != die)
        return tuple(other for other in self._beside(die) if self._joined(die, other))

    def crosses_wafers(self, link: Link) -> bool:
        """Whether the link joins dies of two wafers; a link to a switch does not."""
        if SWITCH in link:
            return False
        (row, column), (other_row, other_column) = link
        wafer_rows, wafer_columns = self.wafer_rows or self.rows, self.wafer_columns or self.columns
        return row // wafer_rows != other_row // wafer_rows or column // wafer_columns != other_column // wafer_columns

    def route(self, a: Die, b: Die, routing: Routing = "xy") -> list[Link]:
        """Links from ``a`` to ``b`` in travel order; empty if they are the same die.

        The dimension-ordered route ("xy": the column index changes first) or, if that touches anything disabled,
        the breadth-first shortest path from ``a`` with neighbours in the order east, west, south, north. With a switch
        the two links to and from it.

        Raises
        ------
        ValueError
            If either die is outside the grid or disabled, or no path joins them.
        """
        for die in (a, b):
            if not self.contains(die):
                raise ValueError(f"die {die} is outside the {self}")
            if die in self.disabled_dies:
                raise ValueError(f"die {die} is disabled")
        if self.topology == "switch":
            return [(a, SWITCH), (SWITCH, b)] if a != b else []
        straight = list(self._dimension_ordered(a, b, routing))
        if not (self.disabled_dies or self.disabled_links) or all(self._joined(*link) for link in straight):
            return straight
        return self._detour(a, b)

    def hops(self, a: Die, b: Die) -> int:
        """Hops from ``a`` to ``b``: the links on the route, or one by way of a switch.

        The same for both routings, since both are shortest paths.
        """
        return min(1, len(self.route(a, b))) if self.topology == "switch" else len(self.route(a, b))

    def _beside(self, die: Die) -> tuple[Die, ...]:
        """Positions beside ``die``, enabled or not, each once, in the order east, west, south, north."""
        candidates = [(die[0] + row, die[1] + column) for row, column in _STEPS]
        if self.topology == "torus":
            candidates = [(row % self.rows, column % self.columns) for row, column in candidates]
            return tuple(dict.fromkeys(other for other in candidates if other != die))
        return tuple(other for other in candidates if self.contains(other))

    def _joined(self, a: Die, b: Die) -> bool:
        dead = self.disabled_dies
        return a not in dead and b not in dead and not {(a, b), (b, a)} & self.disabled_links

    def _detour(self, a: Die, b: Die) -> list[Link]:
        came_from = {a: a}
        queue = deque([a])
        while queue and b not in came_from:
            die = queue.popleft()
            for other in self.neighbours(die):
                if other not in came_from:
                    came_from[other] = die
                    queue.append(other)
        if b not in came_from:
            raise ValueError(f"no path from die {a} to die {b} around the disabled dies and links")
        path = [b]
        while path[-1] != a:
            path.append(came_from[path[-1]])
        path.reverse()
        return list(pairwise(path))

    def _dimension_ordered(self, a: Die, b: Die, routing: Routing) -> Iterator[Link]:
        here = a
        for axis in (1, 0) if routing == "xy" else (0, 1):
            size = self.columns if axis == 1 else self.rows
            ahead = (b[axis] - here[axis]) % size
            up = 2 * ahead <= size if self.topology == "torus" else b[axis] > here[axis]
            while here[axis] != b[axis]:
                moved = (here[axis] + (1 if up else -1)) % size
                there = (here[0], moved) if axis == 1 else (moved, here[1])
                yield here, there
                here = there
