"""Exhausted instances, and how many of them show that bounds are too high."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from formulations.bounds import BatchBound
from instances.instance import Instance

Hunted = tuple[Instance, dict[int, float]]
"""An instance and the best value of each batch that has a plan."""


def caught(
    cases: Sequence[Hunted], bounds_of: Callable[[Instance], Mapping[int, BatchBound]], factor: float = 1.0
) -> int:
    """Instances in which some bound, times a factor, is above the best value."""
    count = 0
    for instance, best in cases:
        found = bounds_of(instance)
        promised = {batch: found[batch].bound_s for batch in best}
        count += any(bound is None or bound * factor > best[batch] for batch, bound in promised.items())
    return count
