"""What a chunk search found, and the checks every search makes on its tables."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from instances.errors import InputError

FloatTable = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ChunkResult:
    """Cut positions and what is known about them.

    Attributes
    ----------
    cuts
        End of every chunk in quanta, increasing, the last one n; empty when no plan was found.
    value
        A*sum t + Z*max u of these cuts (in the unit of the tables); None when no plan was found.
    bound
        A number no admissible cut sequence can beat; None where the method proves nothing.
    exact
        True when value and bound agree within the tolerance, or when it is proved that nothing beats the caller's
        ``upper_bound`` (then there are no cuts), or that nothing is admissible at all (then ``bound`` is None too).
    paths
        Number of shortest paths (or tables) computed: the work done, for progress and for benchmarks.
    """

    cuts: list[int]
    value: float | None
    bound: float | None
    exact: bool
    paths: int


def checked_table(name: str, table: FloatTable) -> FloatTable:
    """Return `table` as a C-ordered float64 array, or say what is wrong with it.

    Shape (n+1, n+1); only entries [p, e] with p < e are read. +inf marks a chunk that may not be used.
    """
    array = np.ascontiguousarray(table, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] < 2:
        raise InputError(f"{name}.shape", array.shape, "a square table of n+1 rows and columns, n >= 1")
    used = array[np.triu_indices(array.shape[0], 1)]
    wrong = used[np.isnan(used) | (used < 0)]
    if wrong.size:
        raise InputError(name, float(wrong[0]), "chunk costs >= 0 (+inf forbids a chunk)")
    return array


def checked_pair(t: FloatTable, u: FloatTable) -> tuple[FloatTable, FloatTable]:
    """Both tables, checked, of one shape."""
    cost, crossing = checked_table("t", t), checked_table("u", u)
    if cost.shape != crossing.shape:
        raise InputError("u.shape", crossing.shape, f"the shape of t, {cost.shape}")
    return cost, crossing


def checked_weights(A: float, Z: float) -> tuple[float, float]:
    """Return the two objective weights as finite floats >= 0."""
    if not (np.isfinite(A) and np.isfinite(Z) and A >= 0 and Z >= 0):
        raise InputError("A, Z", (A, Z), "finite weights >= 0")
    return float(A), float(Z)


def checked_counts(quanta: int, min_chunks: int, max_chunks: int | None) -> tuple[int, int]:
    """Return (fewest, most) chunks; None means as many as there are quanta."""
    most = quanta if max_chunks is None else min(int(max_chunks), quanta)
    fewest = max(1, int(min_chunks))
    if max_chunks is not None and max_chunks < fewest:
        raise InputError("max_chunks", max_chunks, f"at least min_chunks = {fewest}")
    return fewest, most


def chunk_value(t: FloatTable, u: FloatTable, A: float, Z: float, cuts: list[int]) -> float:
    """A*sum t + Z*max u of the chunks that end at `cuts` (semantics section 5; TeraPipe eq. 5 for A = 1, Z = K-1)."""
    starts = [0, *cuts[:-1]]
    return float(A * sum(t[p, e] for p, e in zip(starts, cuts, strict=True))) + float(
        Z * max(u[p, e] for p, e in zip(starts, cuts, strict=True))
    )
