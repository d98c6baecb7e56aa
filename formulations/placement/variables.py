"""Names and index sets that the two placement models share.

``on[s,d]``: stage s lies on die d. ``rows[s,t]``, ``columns[s,t]``: row and column distance of a flow; ``hops[s,t]``:
its distance where that is not their sum.
"""

from __future__ import annotations

import numpy as np

from formulations.placement.problem import PlacementProblem


def on_name(stage: int, die: int) -> str:
    """Name of the variable "stage lies on die"."""
    return f"on[s{stage},d{die}]"


def distance_name(kind: str, source: int, target: int) -> str:
    """Name of a distance variable; `kind` is rows, columns or hops."""
    return f"{kind}[s{source},s{target}]"


def row_and_column_spans(problem: PlacementProblem) -> tuple[int, int]:
    """Largest difference of rows and of columns."""
    cells = problem.dies_rc or ((0, 0),)
    rows = [row for row, _ in cells]
    columns = [column for _, column in cells]
    return max(rows) - min(rows), max(columns) - min(columns)


def shortest_and_longest(problem: PlacementProblem) -> tuple[int, int]:
    """Smallest and largest distance between two different dies."""
    different = problem.hops[~np.eye(problem.dies, dtype=np.bool_)]
    return (int(different.min()), int(different.max())) if different.size else (0, 0)
