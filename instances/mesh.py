"""Geometry of a grid of dies: neighbours, directed links, routes and hops (spec section 3, rule ``link_fifo``).

A die is (row, column); a link is a directed pair of neighbouring dies. East is the next column, south the next row.
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

# East, west, south, north: the order in which a detour looks at neighbours.
_STEPS = ((0, 1), (0, -1), (1, 0), (-1, 0))


@dataclass(frozen=True)
class Mesh:
    """A rows x columns grid, made of wafers of wafer_rows x wafer_columns dies.

    Parameters
    ----------
    rows, columns
        Size of the whole grid, over all wafers.
    wafer_rows, wafer_columns
        Size of one wafer; None means that the whole grid is one wafer.
    disabled_dies
        Dies that are never used, and that nothing routes through.
    disabled_links
        Pairs of neighbours whose link is dead. One direction named disables both.

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

    def __post_init__(self) -> None:
        for name, total, wafer in (
            ("rows", self.rows, self.wafer_rows),
            ("columns", self.columns, self.wafer_columns),
        ):
            if total < 1:
                raise ValueError(f"a mesh needs at least one of {name}, got {total}")
            if wafer is not None and (wafer < 1 or total % wafer):
                raise ValueError(f"wafers of {wafer} {name} do not fill a mesh of {total} {name}")
        for die in self.disabled_dies:
            if not self.contains(die):
                raise ValueError(f"disabled die {die} is outside the {self.rows}x{self.columns} mesh")
        for a, b in self.disabled_links:
            if not (self.contains(a) and self.contains(b)) or abs(a[0] - b[0]) + abs(a[1] - b[1]) != 1:
                raise ValueError(f"disabled link {a} - {b} does not join two neighbours of the mesh")

    @cached_property
    def live_dies(self) -> tuple[Die, ...]:
        """Enabled dies, row by row."""
        grid = ((row, column) for row in range(self.rows) for column in range(self.columns))
        return tuple(die for die in grid if die not in self.disabled_dies)

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Enabled directed links, by source die row by row, each in the order east, west, south, north."""
        return tuple((die, other) for die in self.live_dies for other in self.neighbours(die))

    def contains(self, die: Die) -> bool:
        """Whether the position lies in the grid, enabled or not."""
        return 0 <= die[0] < self.rows and 0 <= die[1] < self.columns

    def neighbours(self, die: Die) -> tuple[Die, ...]:
        """Dies joined to ``die`` by an enabled link, in the order east, west, south, north."""
        candidates = ((die[0] + row, die[1] + column) for row, column in _STEPS)
        return tuple(other for other in candidates if self.contains(other) and self._joined(die, other))

    def crosses_wafers(self, link: Link) -> bool:
        """Whether the link joins dies of two wafers."""
        (row, column), (other_row, other_column) = link
        wafer_rows, wafer_columns = self.wafer_rows or self.rows, self.wafer_columns or self.columns
        return row // wafer_rows != other_row // wafer_rows or column // wafer_columns != other_column // wafer_columns

    def route(self, a: Die, b: Die, routing: Routing = "xy") -> list[Link]:
        """Links from ``a`` to ``b`` in travel order; empty if they are the same die.

        The dimension-ordered route ("xy": the column index changes first) or, if that touches anything disabled,
        the breadth-first shortest path from ``a`` with neighbours in the order east, west, south, north.

        Raises
        ------
        ValueError
            If either die is outside the grid or disabled, or no path joins them.
        """
        for die in (a, b):
            if not self.contains(die):
                raise ValueError(f"die {die} is outside the {self.rows}x{self.columns} mesh")
            if die in self.disabled_dies:
                raise ValueError(f"die {die} is disabled")
        straight = list(_dimension_ordered(a, b, routing))
        if not (self.disabled_dies or self.disabled_links) or all(self._joined(*link) for link in straight):
            return straight
        return self._detour(a, b)

    def hops(self, a: Die, b: Die) -> int:
        """Number of links on the route; the same for both routings, since both are shortest paths."""
        return len(self.route(a, b))

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


def _dimension_ordered(a: Die, b: Die, routing: Routing) -> Iterator[Link]:
    here = a
    for axis in (1, 0) if routing == "xy" else (0, 1):
        step = 1 if b[axis] > here[axis] else -1
        while here[axis] != b[axis]:
            there = (here[0], here[1] + step) if axis == 1 else (here[0] + step, here[1])
            yield here, there
            here = there
