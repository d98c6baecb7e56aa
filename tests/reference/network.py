"""Routes and links: rule `link_fifo` of spec section 3."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

from tests.reference.program import Die, Place, Program, Task

# A directed link joins two places: two neighbouring dies, a die and its host memory, or a die and the switch.
Link = tuple[Place, Place]
SWITCH: Place = (2, 0, 0)


def die_place(die: Die) -> Place:
    return (0, *die)


def host_place(die: Die) -> Place:
    return (1, *die)


@dataclass(frozen=True)
class Transfer:
    """One transfer, with the time during which each of its links is held."""

    kind: str
    task: Task
    source: Place
    target: Place
    sent_bytes: Fraction
    links: tuple[Link, ...]
    held_ps: tuple[tuple[int, int], ...]
    ready_ps: int
    start_ps: int
    arrival_ps: int


class Network:
    """The mesh and the host links, with the moment from which each link and each sender is free."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.free_ps: dict[Link, int] = {}
        self.delivered_ps: dict[Place, int] = {}
        cells = [*program.die_of, *program.disabled_dies, *(die for link in program.disabled_links for die in link)]
        # Unless given: the smallest mesh from (0, 0) that contains every die named in the input.
        smallest = (1 + max(row for row, _ in cells), 1 + max(column for _, column in cells))
        self.rows, self.columns = program.mesh or smallest

    def route(self, source: Die, target: Die) -> list[Link]:
        """The dimension-ordered route, or a breadth-first shortest path where that route is broken."""
        if self.program.topology == "switch":
            return [(die_place(source), SWITCH), (SWITCH, die_place(target))]
        path = self._dimension_ordered(source, target)
        if not all(self._usable(one, other) for one, other in itertools.pairwise(path)):
            path = self._breadth_first(source, target)
        return [(die_place(one), die_place(other)) for one, other in itertools.pairwise(path)]

    def _dimension_ordered(self, source: Die, target: Die) -> list[Die]:
        row, column = source
        path = [source]
        for axis in ("column", "row") if self.program.routing == "xy" else ("row", "column"):
            if axis == "column":
                for _ in range(self._distance(column, target[1], self.columns)):
                    column = self._step(column, target[1], self.columns)
                    path.append((row, column))
            else:
                for _ in range(self._distance(row, target[0], self.rows)):
                    row = self._step(row, target[0], self.rows)
                    path.append((row, column))
        return path

    def _distance(self, here: int, there: int, length: int) -> int:
        """Steps from one index of a row or column to another; round the back where that is shorter on a torus."""
        inside = abs(here - there)
        return min(inside, length - inside) if self.program.topology == "torus" else inside

    def _step(self, here: int, there: int, length: int) -> int:
        """The next index on the way; a torus prefers the larger index where both ways are as long."""
        if self.program.topology != "torus":
            return here + 1 if there > here else here - 1
        after, before = (here + 1) % length, (here - 1) % length
        return min((after, before), key=lambda index: self._distance(index, there, length))

    def _breadth_first(self, source: Die, target: Die) -> list[Die]:
        came_from: dict[Die, Die] = {source: source}
        frontier = [source]
        while frontier:
            row, column = die = frontier.pop(0)
            east, west, south, north = (row, column + 1), (row, column - 1), (row + 1, column), (row - 1, column)
            if self.program.topology == "torus":
                east, west = (row, east[1] % self.columns), (row, west[1] % self.columns)
                south, north = (south[0] % self.rows, column), (north[0] % self.rows, column)
            for neighbour in (east, west, south, north):
                if neighbour not in came_from and self._usable(die, neighbour):
                    came_from[neighbour] = die
                    frontier.append(neighbour)
        if target not in came_from:
            raise ValueError(f"no route from die {source} to die {target}")
        path = [target]
        while path[0] != source:
            path.insert(0, came_from[path[0]])
        return path

    def _usable(self, one: Die, other: Die) -> bool:
        inside = 0 <= other[0] < self.rows and 0 <= other[1] < self.columns
        dead = one in self.program.disabled_dies or other in self.program.disabled_dies
        return inside and not dead and frozenset((one, other)) not in self.program.disabled_links

    def bandwidth(self, source: Place, target: Place) -> Fraction:
        """Bytes per second of every link between the two places (a host link, or the mesh's)."""
        if source[0] == 0 and target[0] == 0:
            return self.program.link_bytes_per_s
        assert self.program.host_bytes_per_s is not None, "a transfer to the host needs the host tier"
        return self.program.host_bytes_per_s

    def send(
        self, kind: str, task: Task, source: Place, target: Place, sent_bytes: Fraction, ready_ps: int
    ) -> Transfer:
        """Reserve the links for one transfer, now, in the order of the requests."""
        if source == target:
            return Transfer(kind, task, source, target, sent_bytes, (), (), ready_ps, ready_ps, ready_ps)
        on_mesh = source[0] == 0 and target[0] == 0
        links = self.route(source[1:], target[1:]) if on_mesh else [(source, target)]
        # The two links of a switch are one hop.
        hops = 0 if not on_mesh else 1 if self.program.topology == "switch" else len(links)
        duration_ps = self.program.duration_ps(sent_bytes / self.bandwidth(source, target))
        earliest_ps = ready_ps
        if self.program.one_send_per_die:
            earliest_ps = max(earliest_ps, self.delivered_ps.get(source, 0))
        held: list[tuple[int, int]] = []
        if self.program.store_and_forward:
            at_ps = earliest_ps
            for link in links:
                start_ps = max(at_ps, self.free_ps.get(link, 0))
                held.append((start_ps, start_ps + duration_ps))
                at_ps = start_ps + duration_ps + (self.program.hop_latency_ps if len(held) <= hops else 0)
            arrival_ps = at_ps
        else:
            start_ps = max(earliest_ps, *(self.free_ps.get(link, 0) for link in links))
            held = [(start_ps, start_ps + duration_ps) for _ in links]
            arrival_ps = start_ps + duration_ps + hops * self.program.hop_latency_ps
        for link, (_, until_ps) in zip(links, held, strict=True):
            self.free_ps[link] = until_ps
        self.delivered_ps[source] = arrival_ps
        return Transfer(
            kind, task, source, target, sent_bytes, tuple(links), tuple(held), ready_ps, held[0][0], arrival_ps
        )
