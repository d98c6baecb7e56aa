"""Chunk tables for tests, and the answer by trying every cut sequence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from formulations.chunks.result import FloatTable


def every_cuts(quanta: int, fewest: int = 1, most: int | None = None) -> Iterator[list[int]]:
    """All cut sequences (ends of chunks) with an admitted number of chunks."""
    for inner in range(1 << (quanta - 1)):
        cuts = [end for end in range(1, quanta) if inner >> (end - 1) & 1] + [quanta]
        if fewest <= len(cuts) <= (quanta if most is None else most):
            yield cuts


def value_of(t: FloatTable, u: FloatTable, A: float, Z: float, cuts: list[int]) -> float:
    """A*sum t + Z*max u, inf where a chunk is forbidden (also when its weight is 0)."""
    arcs = list(zip([0, *cuts[:-1]], cuts, strict=True))
    if any(np.isinf(t[arc]) or np.isinf(u[arc]) for arc in arcs):
        return np.inf
    return float(A * sum(t[arc] for arc in arcs) + Z * max(u[arc] for arc in arcs))


def brute_force(
    t: FloatTable, u: FloatTable, A: float, Z: float, fewest: int = 1, most: int | None = None
) -> float | None:
    """Least value over all cut sequences; None where none is admitted."""
    best = min((value_of(t, u, A, Z, cuts) for cuts in every_cuts(t.shape[0] - 1, fewest, most)), default=np.inf)
    return None if np.isinf(best) else best


def smooth_table(quanta: int, overhead: float, token: float, pair: float, head: float = 0.0) -> FloatTable:
    """overhead + token*l + pair*l*(p + l/2), causal attention; `head` on the last chunk."""
    start, end = np.meshgrid(np.arange(quanta + 1.0), np.arange(quanta + 1.0), indexing="ij")
    length = np.maximum(end - start, 0.0)
    table: FloatTable = overhead + token * length + pair * length * (start + length / 2)
    table[:, quanta] += head
    return table


def random_tables(seed: int, quanta: int, kind: str) -> tuple[FloatTable, FloatTable]:
    """(t, u) of one kind: smooth, kinked (a floor as in measured tables), arbitrary, coarse (ties) or gaps."""
    rng = np.random.default_rng(seed)
    shape = (quanta + 1, quanta + 1)
    if kind in ("smooth", "kinked"):
        t = smooth_table(quanta, rng.random(), 1.0, rng.random() / quanta, 2 * rng.random())
        t = np.maximum(t, quanta / 4) if kind == "kinked" else t
        return t, t + 0.1 * rng.random() * np.arange(quanta + 1.0)[None, :]
    if kind == "coarse":
        return rng.integers(1, 5, shape).astype(float), rng.integers(1, 5, shape).astype(float)
    t, u = rng.random(shape), rng.random(shape)
    if kind == "gaps":
        t[rng.random(shape) < 0.3] = np.inf
        u[rng.random(shape) < 0.1] = np.inf
    return t, u


def toy_table(per_token: float) -> FloatTable:
    """The toy oracle (12 positions, cost = sum of positions, plus per_token for each)."""
    start, end = np.meshgrid(np.arange(13.0), np.arange(13.0), indexing="ij")
    length = np.maximum(end - start, 0.0)
    table: FloatTable = length * (start + 1 + end) / 2 + per_token * length
    return table
