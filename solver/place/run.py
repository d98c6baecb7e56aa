"""Places a flow graph on a mesh, or solves a quadratic assignment problem, and evaluates the answer anew."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from formulations.interface import EngineLimits, Status, StopReason
from formulations.placement.link_load import LoadedLink, largest_load, spread_out
from formulations.placement.place import Listener, PlacementResult, solve
from formulations.placement.problem import stated
from formulations.placement.seam_hops import seam_hops
from formulations.placement.warmup import warm_up
from instances.mesh import Die, Link, Mesh
from solver.backends.cpsat import solve_cpsat
from solver.place.graph import FlowGraph
from solver.place.qaplib import QuadraticAssignment

LAST_S, LAST_SHARE = 1.0, 0.1
"""Time kept back for spreading the loads of links."""


class UnconnectedError(ValueError):
    """Two enabled dies without a path between them."""


@dataclass(frozen=True)
class Placed:
    """An answer.

    Attributes
    ----------
    status, stop_reason, bound_by
        As in `PlacementResult`.
    value
        From the graph and the distances themselves; None without a placement.
    bound
        No placement has a smaller value.
    placement
        Die of each node by name; for a quadratic assignment problem the permutation, numbered from 1.
    cells
        Die of each stage on a grid, by name, for a picture; None off a grid.
    grid
        Rows and columns of the grid.
    largest_load
        The link with the largest load, on a mesh; None without flows.
    """

    status: Status
    stop_reason: StopReason
    value: float | None
    bound: float | None
    placement: dict[str, Die] | list[int] | None
    cells: dict[str, Die] | None
    grid: tuple[int, int] | None
    bound_by: str
    runtime_s: float
    largest_load: LoadedLink | None = None

    @property
    def gap(self) -> float | None:
        """(value - bound) / value; None where one of them is unknown."""
        if self.value is None or self.bound is None:
            return None
        return (self.value - self.bound) / self.value if self.value else 0.0


def place_graph(
    graph: FlowGraph, mesh: Mesh, seam: Fraction | int, limits: EngineLimits, listen: Listener | None = None
) -> Placed:
    """Least sum of weight*hops over the edges of a graph, each once; a hop over a seam counts as `seam` >= 1.

    Distances are whole numbers: with a seam of 5/2, links within wafers are 2 long and those between them 5.
    Among placements of the least value found, one with a small largest link load; that none has a smaller one is not
    proved.

    Raises
    ------
    UnconnectedError
        If no path joins two of the mesh's enabled dies.
    """
    dies = list(mesh.live_dies)
    try:
        hops = seam_hops(mesh, dies, seam.numerator, seam.denominator)
    except ValueError as error:
        raise UnconnectedError(str(error)) from None
    warm_up()
    started = time.monotonic()
    problem = stated(hops, graph.flows, len(graph.nodes), dies)
    rng = np.random.default_rng(limits.seed)
    inner = seam.denominator

    def hear(value: float | None, bound: float) -> None:
        if listen is not None:
            listen(None if value is None else value / inner, bound / inner)

    def length(link: Link) -> int:
        return seam.numerator if mesh.crosses_wafers(link) else inner

    found = solve(problem, _first_part(limits), solve_cpsat, rng, hear)
    found = replace(found, bound=None if found.bound is None else found.bound / inner)
    if found.placement is None:
        return _placed(found, started)
    chosen, stop_reason = found.placement, found.stop_reason
    if stop_reason != "interrupted":
        try:
            chosen = spread_out(problem, mesh, dies, chosen, length, rng)
        except KeyboardInterrupt:
            stop_reason = "interrupted"
    load = largest_load(problem, mesh, dies, chosen, length)
    value = problem.value(chosen) / inner
    at = {name: dies[die] for name, die in zip(graph.nodes, chosen, strict=True)}
    answer = _placed(found, started, value=value, placement=at, cells=at, grid=(mesh.rows, mesh.columns))
    scaled = None if load is None else replace(load, load=load.load / inner)
    return replace(answer, stop_reason=stop_reason, largest_load=scaled)


def _first_part(limits: EngineLimits) -> EngineLimits:
    """Limits of the search for the value."""
    if limits.time_s is None:
        return limits
    return replace(limits, time_s=limits.time_s - min(LAST_S, LAST_SHARE * limits.time_s))


def solve_assignment(problem: QuadraticAssignment, limits: EngineLimits, listen: Listener | None = None) -> Placed:
    """Least value of a quadratic assignment problem over ordered pairs, as in QAPLIB."""
    warm_up()
    started = time.monotonic()
    hops, flows, cells = problem.placement_problem()
    found = solve(
        stated(hops, flows, problem.size, cells), limits, solve_cpsat, np.random.default_rng(limits.seed), listen
    )
    if found.placement is None:
        return _placed(found, started)
    permutation = problem.permutation(found.placement)
    shown = None
    if cells is not None:
        shown = {str(index + 1): cells[place] for index, place in enumerate(found.placement)}
    grid = None if cells is None else (cells[-1][0] + 1, cells[-1][1] + 1)
    value = float(problem.value(permutation))
    return _placed(found, started, value=value, placement=permutation, cells=shown, grid=grid)


def _placed(
    found: PlacementResult,
    started: float,
    *,
    value: float | None = None,
    placement: dict[str, Die] | list[int] | None = None,
    cells: dict[str, Die] | None = None,
    grid: tuple[int, int] | None = None,
) -> Placed:
    return Placed(
        status=found.status,
        stop_reason=found.stop_reason,
        value=value,
        bound=found.bound,
        placement=placement,
        cells=cells,
        grid=grid,
        bound_by=found.bound_by,
        runtime_s=time.monotonic() - started,
    )
