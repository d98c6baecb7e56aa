"""Maximum pipeline utilisation: the largest wave budget that still gives enough waves to fill the pipeline."""

from __future__ import annotations

import math
from collections.abc import Sequence


def ladder(largest: int, smallest: int) -> list[int]:
    """Budgets from the largest down, halved each time, none below the smallest."""
    budgets = [largest]
    while budgets[-1] // 2 >= max(1, smallest):
        budgets.append(budgets[-1] // 2)
    return budgets


def wave_budget(left: float, in_flight: int, target: int, budgets: Sequence[float]) -> float:
    """The largest B with F + ceil(R/B) >= W*, else the smallest.

    Parameters
    ----------
    left
        R, what ready requests have not issued yet: tokens, or seconds where budgets are seconds.
    in_flight
        F, waves inside.
    target
        W*, waves that fill the pipeline.
    budgets
        From the largest down.
    """
    for budget in budgets:
        # Seconds that were halved and added up again are not exact.
        if in_flight + math.ceil(left / budget - 1e-9) >= target:
            return budget
    return budgets[-1]
