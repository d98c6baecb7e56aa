"""A measured cost model: rows of (chunk, prefix, seconds), interpolated and never extrapolated (spec section 2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from instances.costs.profile import Profile
from instances.errors import PlanError

FloatArray = npt.NDArray[np.float64]


class TimeTable:
    """Piecewise linear in the prefix along each measured chunk size, then linear between neighbouring chunk sizes.

    Chunk sizes may have been measured at different prefixes. A point needs both neighbouring chunk sizes measured up
    to its prefix; at a measured chunk size that one is enough.
    """

    def __init__(self, profile: Profile) -> None:
        self._chunks = np.unique(profile.chunk)
        self._rows = [
            (profile.prefix[profile.chunk == chunk], profile.seconds[profile.chunk == chunk]) for chunk in self._chunks
        ]

    def seconds(self, batch: int, chunk: FloatArray, prefix: FloatArray, outside: float | None = None) -> FloatArray:
        """Whole-model time; rows are for one sequence, and a batch of B takes B times as long.

        ``outside`` is the time of points outside what was measured; without it they are an error.

        Raises
        ------
        PlanError
            For the first point outside what was measured.
        """
        known_prefix, where_prefix = np.unique(prefix, return_inverse=True)
        grid = np.stack([np.interp(known_prefix, p, s, left=np.nan, right=np.nan) for p, s in self._rows])
        upper = np.minimum(np.searchsorted(self._chunks, chunk), len(self._chunks) - 1)
        exact = self._chunks[upper] == chunk
        lower = np.where(exact, upper, np.maximum(upper - 1, 0))
        gap = np.where(exact, 1.0, self._chunks[upper] - self._chunks[lower])
        share = np.where(gap > 0, (chunk - self._chunks[lower]) / np.where(gap > 0, gap, 1.0), np.nan)
        share = np.where((chunk < self._chunks[0]) | (chunk > self._chunks[-1]), np.nan, share)
        column = where_prefix.reshape(prefix.shape)
        low, high = grid[lower, column], grid[upper, column]
        result: FloatArray = batch * (low + share * (high - low))
        if outside is not None:
            result[np.isnan(result)] = outside
        elif np.isnan(result).any():
            c, p = np.broadcast_arrays(chunk, prefix)
            self._refuse(c, p, result)
        return result

    def _refuse(self, chunk: FloatArray, prefix: FloatArray, result: FloatArray) -> None:
        first = int(np.argmax(np.isnan(result).ravel()))
        c, p = float(chunk.ravel()[first]), float(prefix.ravel()[first])
        low, high = self._chunks[0], self._chunks[-1]
        if not low <= c <= high:
            allowed = f"a chunk of {low:g}..{high:g} tokens, the sizes that were measured"
        else:
            near = sorted({int(np.searchsorted(self._chunks, c)), int(np.searchsorted(self._chunks, c, "right")) - 1})
            ranges = [f"{self._rows[i][0][0]:g}..{self._rows[i][0][-1]:g} at {self._chunks[i]:g}" for i in near]
            allowed = f"a prefix inside what was measured for chunks of this size ({', '.join(ranges)})"
        raise PlanError("costs.table", {"chunk": c, "prefix": p}, f"{allowed}; the table is never extrapolated")
