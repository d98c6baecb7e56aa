"""Placements by rule: good starts where the mesh is whole, usable ones where dies are dead."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from formulations.placement.problem import PlacementProblem, filled

Cell = tuple[int, int]
MOST_MATCHED_DIES = 128
"""Dies up to which a matching is worked out beside what the strips give: it takes long on many."""


def constructed(problem: PlacementProblem) -> list[list[int]]:
    """Candidate placements: all snakes, and two-wide strips that put stage i beside i + N/2 where N is even.

    With `pairs` only candidates whose partners are adjacent are kept; there may be none.
    """
    candidates = [order[: problem.stages] for order in _snakes(problem)]
    if problem.stages % 2 == 0:
        candidates += list(_strips(problem))
    if problem.pairs:
        candidates = [placement for placement in candidates if not problem.violations(placement)]
        if not candidates or problem.dies <= MOST_MATCHED_DIES:
            matched = matched_pairs(problem)
            candidates += [] if matched is None else [matched]
    return candidates


def matched_pairs(problem: PlacementProblem) -> list[int] | None:
    """Any placement with adjacent partners, from a largest matching of neighbouring dies.

    None if the matching has fewer edges than there are pairs (then no placement exists, if the pairs are disjoint) or
    if a stage has more than one partner.
    """
    partnered = [stage for pair in problem.pairs for stage in pair]
    if len(set(partnered)) < len(partnered):
        return None
    matching = largest_matching(problem)
    if len(matching) < len(problem.pairs):
        return None
    placement = [-1] * problem.stages
    for (i, j), (first, second) in zip(problem.pairs, matching, strict=False):
        placement[i], placement[j] = first, second
    return filled(placement, problem.dies)


def largest_matching(problem: PlacementProblem, *, one_way: bool = False) -> list[tuple[int, int]]:
    """As many disjoint couples of neighbouring dies as possible, neighbours one way or both ways."""
    graph: nx.Graph[int] = nx.Graph()
    for die, others in enumerate(problem.neighbours):
        graph.add_edges_from((die, other) for other in others if one_way or problem.hops[other, die] == 1)
    couples = nx.max_weight_matching(graph, maxcardinality=True)
    return sorted((min(couple), max(couple)) for couple in couples)


def _snakes(problem: PlacementProblem) -> Iterator[list[int]]:
    """Live dies in boustrophedon order, along rows and along columns; dies in index order off a mesh."""
    if problem.dies_rc is None:
        yield list(range(problem.dies))
        return
    for axis in (0, 1):
        first = min(cell[axis] for cell in problem.dies_rc)
        keys = [_snake_key(cell[axis] - first, cell[1 - axis]) for cell in problem.dies_rc]
        yield sorted(range(problem.dies), key=keys.__getitem__)


def _snake_key(line: int, along: int) -> Cell:
    return line, along if line % 2 == 0 else -along


def _strips(problem: PlacementProblem) -> Iterator[list[int]]:
    """Dominoes along two-wide strips that run back and forth; partner halves swapped per strip in both ways."""
    if problem.dies_rc is None:
        return
    die_at = {cell: die for die, cell in enumerate(problem.dies_rc)}
    rows = max(row for row, _ in die_at) + 1
    columns = max(column for _, column in die_at) + 1
    for transposed in (False, True):
        lines, length = (columns, rows) if transposed else (rows, columns)
        for swapped in (False, True):
            path = []
            for strip in range(lines // 2):
                for step in range(length):
                    along = step if strip % 2 == 0 else length - 1 - step
                    couple = [(2 * strip, along), (2 * strip + 1, along)]
                    if swapped and strip % 2:
                        couple.reverse()
                    cells = [(along, line) if transposed else (line, along) for line, along in couple]
                    if all(cell in die_at for cell in cells):
                        path.append((die_at[cells[0]], die_at[cells[1]]))
            half = problem.stages // 2
            if len(path) >= half:
                yield [first for first, _ in path[:half]] + [second for _, second in path[:half]]
