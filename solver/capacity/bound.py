"""A proved upper bound on lengths in equal chunks within a budget: found by bisection, proved block by block above it.

``formulations.capacity`` refutes one length with one budget. Where time grows with tokens, a plan for a longer request
in as many equal chunks would be one for this length too, if it had the longer one's budget: every chunk is at least as
long, in tokens, KV and time, and with shorter tasks at the same starts no memory is held longer. The same goes for what
budgets are measured against, plans without memory limits: one for a longer request, scaled down, is one for this
length, and no slower. So a length refuted with the budget of a longer one refutes all lengths between them. Measured
tables may say that more tokens take less time; then lengths are refuted one by one.
"""

from __future__ import annotations

from collections.abc import Callable

from formulations.capacity.bound import HALVINGS, longest_not_refuted
from formulations.interface import EngineLimits
from solver.backends.cpsat import solve_cpsat
from solver.capacity.length import Setting

MOST_ENGINE_S = 20.0
"""Seconds for one model of one length; what takes longer is not refuted."""
MOST_BLOCK_S = 4.0
"""Seconds for a block of lengths; shorter ones are tried then."""
GROWTH = 2
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

    def single(steps: int) -> bool:
        """Whether one length is refuted with its own budget."""
        return _refuted(setting, steps, budget_s(steps), HALVINGS)

    known = _last_not_refuted(single, reached, most)
    growth = 1 if setting.instance.costs.kind == "table" else GROWTH
    low, block = known + 2, 1  # the one after it is refuted
    while low <= most:
        if setting.deadline.over:
            return None
        high = min(low + block - 1, most)
        if high == low and budget_s(high) is None:
            return None  # nor is one known for longer ones
        if single(low) if high == low else _refuted(setting, low, budget_s(high), 0):
            low, block = high + 1, block * growth
        elif high > low:
            block = max(1, block // growth)
        else:
            known, low = high, high + 1
    return known


def _last_not_refuted(refuted: Callable[[int], bool], reached: int, most: int) -> int:
    """A length that is not refuted while the next one is, if there is one up to ``most``, by bisection."""
    good, bad, step = reached, most + 1, 1
    while bad - good > 1:
        middle = min(good + step, (good + bad) // 2) if bad > most else (good + bad) // 2
        if refuted(middle):
            bad = middle
        else:
            good, step = middle, 2 * step
    return good


def _refuted(setting: Setting, steps: int, latency_s: float | None, halvings: int) -> bool:
    """Whether no plan for a length takes at most so long; with more halvings more are refuted, in more time."""
    if latency_s is None:
        return False
    most_s = MOST_ENGINE_S if halvings else MOST_BLOCK_S
    limits = EngineLimits(time_s=setting.deadline.share(0.2, most_s), workers=setting.limits.workers, seed=setting.seed)
    found = longest_not_refuted(
        setting.resized(setting.tokens(steps), host=False),
        [setting.tokens(steps)],
        setting.chunks or 1,
        lambda tokens: latency_s,
        "cpsat",
        solve_cpsat,
        limits,
        batches=[setting.batch],
        halvings=halvings,
    )
    return found.tokens is None
