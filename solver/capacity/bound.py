"""A proved upper bound on lengths in equal chunks within a budget: block by block of lengths, all refuted above it.

``formulations.capacity`` refutes one length with one budget. A plan for a longer request in as many equal chunks would
be one for this length too, if it had the longer one's budget: every chunk is at least as long, in tokens, KV and time,
and with shorter tasks at the same starts no memory is held longer. So a length refuted with the budget of a longer one
refutes all lengths between them.
"""

from __future__ import annotations

from collections.abc import Callable

from formulations.capacity.bound import longest_not_refuted
from formulations.interface import EngineLimits
from solver.backends.cpsat import solve_cpsat
from solver.capacity.length import Setting

MOST_ENGINE_S = 20.0
"""Seconds for one length; what takes longer is not refuted."""
GROWTH = 4
"""Further blocks are so many times as long as the one before: far above the bound, lengths are easily refuted."""


def bound_steps(setting: Setting, reached: int, most: int, budget_s: Callable[[int], float | None]) -> int | None:
    """No plan in ``chunks`` equal chunks within the budget has requests longer than so many steps (``Setting.tokens``).

    None if that is not proved in time.

    Parameters
    ----------
    reached
        A length in steps (``Setting.step``) that runs.
    most
        No request is longer than so many steps, whatever its latency.
    budget_s
        Seconds that the objective may take for a length; grows with it, None where it is not known.
    """
    known = reached
    low, block = reached + 1, 1
    while low <= most:
        if setting.deadline.over:
            return None
        high = min(low + block - 1, most)
        latency_s = budget_s(high)
        if latency_s is None and block == 1:
            return None  # nor is one known for longer ones
        if _refuted(setting, low, latency_s):
            low, block = high + 1, block * GROWTH
        elif block > 1:
            block = max(1, block // GROWTH)
        else:
            known, low = high, high + 1
    return known


def _refuted(setting: Setting, steps: int, latency_s: float | None) -> bool:
    """Whether no plan for a length takes at most so long."""
    if latency_s is None:
        return False
    limits = EngineLimits(
        time_s=setting.deadline.share(0.2, MOST_ENGINE_S), workers=setting.limits.workers, seed=setting.seed
    )
    found = longest_not_refuted(
        setting.instance,
        [setting.tokens(steps)],
        setting.chunks or 1,
        lambda tokens: latency_s,
        "cpsat",
        solve_cpsat,
        limits,
        batches=[setting.batch],
    )
    return found.tokens is None
