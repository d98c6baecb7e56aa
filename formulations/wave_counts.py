"""How often the parts of a path count in a weighted sum of completions, wave by wave without looking at all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from instances.gathering import Gathered, Shape


class Counts(NamedTuple):
    """Weights with which the work, the crossing and the way out of waves of one shape and size count."""

    work: float
    crossing: float
    way_out: float


def wave_counts(
    waves: Gathered, starts: Sequence[int], weights: npt.ArrayLike, total: int
) -> dict[tuple[Shape, int], Counts]:
    """Sum up paths of which the one to wave w starts with wave ``starts[w]`` and counts ``weights[w]`` times.

    Such a path holds the work of the waves ``starts[w]``..w, the crossing of the first and the way out of the last.
    Shapes and sizes that no path with weight holds are left out.

    Parameters
    ----------
    starts
        At most w for each wave w.
    total
        Weights are whole multiples of 1/total, so that they add up exactly.
    """
    units = np.rint(np.asarray(weights) * total).astype(np.int64)
    opened = np.bincount(np.asarray(starts), weights=units, minlength=waves.waves)
    # Paths that start at a wave or before it, less those that end before it.
    held = np.cumsum(opened) - np.cumsum(np.append(0, units[:-1]))
    work, crossing, out = (
        np.bincount(waves.kind, weights=part, minlength=len(waves.kinds)) for part in (held, opened, units)
    )
    return {
        key: Counts(float(work[number]) / total, float(crossing[number]) / total, float(out[number]) / total)
        for number, key in enumerate(waves.kinds)
        if work[number] > 0
    }
