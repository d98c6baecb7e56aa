"""Cuts whose chunk times rise from the first chunk, stay level, and fall to the last one: good starts for a V."""

from __future__ import annotations

import numpy as np

from formulations.tables import Table

STEPS = 40
"""Halvings in the search for the smallest level."""


def ramped_cuts(time_s: Table, count: int, rise: int, fall: int) -> list[int] | None:
    """Ends of at most ``count`` chunks, as level as can be between the ramps.

    Parameters
    ----------
    time_s
        Seconds of each chunk, shape (n+1, n+1), growing with its end and falling with a later start.
    rise, fall
        Numbers of chunks over which the limit on a chunk's time grows from a part of the level, and falls again.

    Returns
    -------
    list of int or None
        None where no level makes so few chunks.
    """
    longest = float(np.max(time_s[0, -1]))
    if rise + fall >= count or not np.isfinite(longest):
        return None
    low, high = 0.0, longest * (rise + fall + 2)
    best = _with_level(time_s, high, rise, fall, count)
    if best is None:
        return None
    for _ in range(STEPS):
        level = (low + high) / 2
        cuts = _with_level(time_s, level, rise, fall, count)
        if cuts is None:
            low = level
        else:
            best, high = cuts, level
    return best


def _with_level(time_s: Table, level: float, rise: int, fall: int, count: int) -> list[int] | None:
    """Chunks of at most a level, the first and last ones of less; None if they are more than so many."""
    quanta = len(time_s) - 1
    ends: list[int] = []
    start, stop = 0, quanta
    for step in range(rise):
        if start < stop:
            start = _furthest(time_s, start, stop, level * (step + 1) / (rise + 1))
            ends.append(start)
    tail: list[int] = []
    for step in range(fall):
        if start < stop:
            tail.append(stop)
            stop = _earliest(time_s, start, stop, level * (step + 1) / (fall + 1))
    while start < stop:
        start = _furthest(time_s, start, stop, level)
        ends.append(start)
        if len(ends) + len(tail) > count:
            return None
    return ends + tail[::-1]


def _furthest(time_s: Table, start: int, stop: int, limit: float) -> int:
    """End of the longest chunk from a start within a limit, of one quantum at least."""
    fits = int(np.searchsorted(time_s[start, start + 1 : stop + 1], limit, side="right"))
    return start + max(1, fits)


def _earliest(time_s: Table, start: int, stop: int, limit: float) -> int:
    """Start of the longest chunk up to a stop within a limit, of one quantum at least."""
    fits = int(np.searchsorted(time_s[start:stop, stop][::-1], limit, side="right"))
    return stop - max(1, fits)
