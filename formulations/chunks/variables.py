"""What the two chunk models share: costs in whole ticks, and names.

``chunk[p,e]``: a chunk covers quanta p..e-1. The chosen chunks form a path from position 0 to n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formulations.chunks.result import FloatTable, checked_counts, checked_pair, checked_weights
from instances.errors import InputError

LARGEST_SUM = 2**31
"""Coefficients stay below this sum, far from what overflows in an engine."""


@dataclass(frozen=True)
class ChunkTicks:
    """Chunk costs as whole numbers.

    Attributes
    ----------
    cost, crossing
        round(A*t/tick) and round(Z*u/tick), shape (n+1, n+1). Rounding moves the objective of m chunks by at most
        (m + 1)/2 ticks.
    arcs
        Chunks that are not forbidden, (start, end) in quanta.
    fewest, most
        Admitted number of chunks.
    tick
        Unit of the integer objective, in the unit of A*t.
    """

    cost: npt.NDArray[np.int64]
    crossing: npt.NDArray[np.int64]
    arcs: list[tuple[int, int]]
    fewest: int
    most: int
    tick: float

    @property
    def quanta(self) -> int:
        """n."""
        return len(self.cost) - 1

    @property
    def largest_crossing(self) -> int:
        """Upper bound of Z*max u in ticks."""
        return max((int(self.crossing[arc]) for arc in self.arcs), default=0)


def in_ticks(
    t: FloatTable, u: FloatTable, A: float, Z: float, tick: float, max_chunks: int | None = None, min_chunks: int = 1
) -> ChunkTicks:
    """Tables, weights and limits as for `exact.solve_chunks`, in whole ticks.

    Raises
    ------
    InputError
        If the tick is so small that the sum of all costs leaves the engines' safe range.
    """
    A, Z = checked_weights(A, Z)
    cost, crossing = checked_pair(t, u)
    quanta = cost.shape[0] - 1
    fewest, most = checked_counts(quanta, min_chunks, max_chunks)
    arcs = [
        (p, e)
        for p in range(quanta)
        for e in range(p + 1, quanta + 1)
        if np.isfinite(cost[p, e]) and np.isfinite(crossing[p, e])
    ]
    usable = np.zeros(cost.shape, dtype=bool)
    for arc in arcs:
        usable[arc] = True
    largest = LARGEST_SUM * tick
    costs = np.where(usable, cost, 0.0) * A
    crossings = np.where(usable, crossing, 0.0) * Z
    if not tick > 0 or costs.sum() + crossings.sum() >= largest:
        raise InputError("tick", tick, f"a positive tick with all costs below {LARGEST_SUM} ticks in sum")
    return ChunkTicks(
        np.rint(costs / tick).astype(np.int64),
        np.rint(crossings / tick).astype(np.int64),
        arcs,
        fewest,
        most,
        float(tick),
    )


def chunk_name(start: int, end: int) -> str:
    """Name of the variable "these quanta are one chunk"."""
    return f"chunk[{start},{end}]"
