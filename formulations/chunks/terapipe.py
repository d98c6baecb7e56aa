"""TeraPipe's chunk search: scan caps on the slowest chunk, one shortest path for each.

Follows equations (5) to (8) of the paper (arXiv 2102.07988) and its public program: caps are the sorted distinct chunk
times; the scan stops when cap*K exceeds the best value; a cap closer than `gap` to the last one tried is skipped. The
value of a scheme uses its true maximum, so caps act as filters only. The skip rule makes the program inexact: a skipped
cap may be followed by a much larger one. Generalised here from sum + (K-1)*max to A*sum t + Z*max u and to limits on
the number of chunks.
"""

from collections.abc import Callable

import numpy as np

from formulations.chunks.paths import NO_CAP, CappedPaths
from formulations.chunks.result import (
    ChunkResult,
    FloatTable,
    checked_counts,
    checked_pair,
    checked_weights,
    chunk_value,
)
from instances.errors import InputError

PUBLIC_GAP_S = 1e-5


def terapipe_chunks(
    t: FloatTable,
    u: FloatTable,
    A: float,
    Z: float,
    max_chunks: int | None = None,
    gap: float = PUBLIC_GAP_S,
    max_caps: int = 2000,
    min_chunks: int = 1,
    over: Callable[[], bool] = lambda: False,
) -> ChunkResult:
    """Cut n quanta into chunks by TeraPipe's cap scan.

    Parameters
    ----------
    t, u, A, Z, max_chunks, min_chunks
        As for `exact.solve_chunks`; TeraPipe itself has u = t, A = batch slices, Z = K-1 and no limits on chunks.
    gap
        Smallest step between two caps tried, in the unit of u (seconds for the public value 1e-5).
    max_caps
        The public program tries every cap that survives `gap`, thousands on long tables. Where the range between
        the smallest cap and the one at which the scan must stop would take more than `max_caps` steps of `gap`, the
        step is widened to that range / max_caps: the same rule with a larger gap.
    over
        Whether time is up: then the scan ends with the best scheme so far.

    Returns
    -------
    ChunkResult
        Best scheme met; no bound (the skip rule gives none). `paths` counts the shortest paths.
    """
    A, Z = checked_weights(A, Z)
    cost, crossing = checked_pair(t, u)
    if not (gap >= 0 and max_caps >= 1):
        raise InputError("gap, max_caps", (gap, max_caps), "a gap >= 0 and at least one cap")
    fewest, most = checked_counts(cost.shape[0] - 1, min_chunks, max_chunks)
    paths = CappedPaths(cost, crossing, fewest, most)
    caps = _caps(crossing)
    # A scheme first admitted by a cap has max u = cap; with u = t its sum is at least the cap as well.
    weight = A + Z if np.array_equal(cost, crossing) else Z
    step = max(gap, _widened_step(paths, caps, weight, A, Z, max_caps))
    best: list[int] = []
    best_value = np.inf
    index = 0
    while index < len(caps) and float(caps[index]) * weight <= best_value and not over():
        cap = float(caps[index])
        found = paths.under(cap)
        if found is not None and found.cuts is not None:
            value = chunk_value(cost, crossing, A, Z, found.cuts)
            if value < best_value:
                best, best_value = found.cuts, value
        index = max(index + 1, int(np.searchsorted(caps, cap + step, side="left")))
    return ChunkResult(best, best_value if best else None, None, False, paths.paths)


def _caps(u: FloatTable) -> FloatTable:
    values = u[np.triu_indices(u.shape[0], 1)]
    return np.unique(values[values <= NO_CAP])


def _widened_step(paths: CappedPaths, caps: FloatTable, weight: float, A: float, Z: float, max_caps: int) -> float:
    """Step that crosses the caps worth trying in `max_caps` steps.

    The scan stops at cap = best value / weight; the best value is estimated with caps halved from the largest down.
    """
    if len(caps) <= max_caps or weight == 0:
        return 0.0 if len(caps) <= max_caps else float(caps[-1] - caps[0]) / max_caps
    cap, estimate = float(caps[-1]), weight * float(caps[-1])
    while cap >= caps[0] and (found := paths.under(cap)) is not None and found.cuts is not None:
        estimate = min(estimate, chunk_value(paths.t, paths.u, A, Z, found.cuts))
        cap /= 2
    return max(0.0, estimate / weight - float(caps[0])) / max_caps
