"""Compiled shortest paths over cut positions.

Nodes are the positions 0..n (in quanta); the arc p -> e is the chunk of quanta p..e-1 and costs t[p, e]; arcs with
u[p, e] > cap are closed. Arcs into n have their own costs (output head, shorter tail), so they are kept apart from the
rule "the longest open chunk that starts at p", which lets a path under a small cap look at few arcs.
"""

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@numba.njit(cache=True)
def suffix_minimum(u: Floats) -> Floats:
    """Least u[p, e'] over e <= e' < n, shape as u: increasing in e, so a binary search finds the last open arc."""
    n = u.shape[0] - 1
    least = np.full((n + 1, n + 1), np.inf)
    for p in range(n):
        running = np.inf
        for e in range(n - 1, p, -1):
            if u[p, e] < running:
                running = u[p, e]
            least[p, e] = running
    return least


@numba.njit(cache=True)
def last_open(least: Floats, cap: float) -> Ints:
    """For every p the largest e < n with u[p, e] <= cap, or p where there is none; shape (n,)."""
    n = least.shape[0] - 1
    reach = np.empty(n, dtype=np.int64)
    for p in range(n):
        low, high = p, n - 1
        while low < high:
            middle = (low + high + 1) // 2
            if least[p, middle] <= cap:
                low = middle
            else:
                high = middle - 1
        reach[p] = low
    return reach


@numba.njit(cache=True)
def shortest_path(t: Floats, u: Floats, reach: Ints, cap: float, chunk_price: float) -> tuple[Floats, Ints]:
    """Least sum of t + chunk_price to every position, and the position before it (-1: not reached)."""
    n = t.shape[0] - 1
    distance = np.full(n + 1, np.inf)
    before = np.full(n + 1, -1, dtype=np.int64)
    distance[0] = 0.0
    for p in range(n):
        here = distance[p] + chunk_price
        if not here < np.inf:
            continue
        for e in range(p + 1, reach[p] + 1):
            if u[p, e] <= cap:
                cost = here + t[p, e]
                if cost < distance[e]:
                    distance[e] = cost
                    before[e] = p
        if u[p, n] <= cap:
            cost = here + t[p, n]
            if cost < distance[n]:
                distance[n] = cost
                before[n] = p
    return distance, before


@numba.njit(cache=True)
def extreme_count_path(t: Floats, u: Floats, reach: Ints, cap: float, sign: int) -> Ints:
    """Path with the fewest (sign = 1) or the most (sign = -1) chunks, the cheaper one among equals; `before` array."""
    n = t.shape[0] - 1
    unreached = 4 * n + 4
    count = np.full(n + 1, unreached, dtype=np.int64)
    distance = np.full(n + 1, np.inf)
    before = np.full(n + 1, -1, dtype=np.int64)
    count[0] = 0
    distance[0] = 0.0
    for p in range(n):
        if count[p] == unreached:
            continue
        for step in range(p + 1, reach[p] + 2):
            e = step if step <= reach[p] else n
            if not (u[p, e] <= cap and t[p, e] < np.inf):
                continue
            chunks = count[p] + sign
            cost = distance[p] + t[p, e]
            if chunks < count[e] or (chunks == count[e] and cost < distance[e]):
                count[e] = chunks
                distance[e] = cost
                before[e] = p
    return before


@numba.njit(cache=True)
def fewest_to_go(t: Floats, u: Floats, reach: Ints, cap: float) -> Ints:
    """Fewest open chunks from every position to n (2n+2 where n cannot be reached); shape (n+1,)."""
    n = t.shape[0] - 1
    need = np.full(n + 1, 2 * n + 2, dtype=np.int64)
    need[n] = 0
    for p in range(n - 1, -1, -1):
        if u[p, n] <= cap and t[p, n] < np.inf:
            need[p] = 1
            continue
        for e in range(p + 1, reach[p] + 1):
            if u[p, e] <= cap and t[p, e] < np.inf and need[e] + 1 < need[p]:
                need[p] = need[e] + 1
    return need


@numba.njit(cache=True)
def layered_path(
    t: Floats, u: Floats, reach: Ints, need: Ints, cap: float, fewest: int, most: int
) -> tuple[float, int, npt.NDArray[np.int32]]:
    """Least sum of t with fewest <= chunks <= most: one layer per number of chunks.

    `need` (from `fewest_to_go`) keeps each layer to the positions from which n is still in reach, which makes the
    band narrow exactly when the limit binds. Returns (value, chunks, before[layer, position]); value is inf if none.
    """
    n = t.shape[0] - 1
    before = np.full((most + 1, n + 1), -1, dtype=np.int32)
    layer = np.full(n + 1, np.inf)
    layer[0] = 0.0
    best = np.inf
    best_chunks = 0
    low, high = 0, 0
    for chunks in range(1, most + 1):
        following = np.full(n + 1, np.inf)
        next_low, next_high = n, 0
        for p in range(low, min(high, n - 1) + 1):
            here = layer[p]
            if not here < np.inf:
                continue
            for e in range(p + 1, reach[p] + 1):
                if u[p, e] <= cap and need[e] <= most - chunks:
                    cost = here + t[p, e]
                    if cost < following[e]:
                        following[e] = cost
                        before[chunks, e] = p
                        next_low = min(next_low, e)
                        next_high = max(next_high, e)
            if u[p, n] <= cap:
                cost = here + t[p, n]
                if cost < following[n]:
                    following[n] = cost
                    before[chunks, n] = p
        if chunks >= fewest and following[n] < best:
            best = following[n]
            best_chunks = chunks
        layer = following
        layer[n] = np.inf
        low, high = next_low, next_high
    return best, best_chunks, before
