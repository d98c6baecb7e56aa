"""Quick answers to "is there a plan?": the first plan that replays, whatever its value."""

from __future__ import annotations

import math

from instances.errors import InputError
from instances.instance import Instance
from solver.api import solve
from solver.limits import Deadline, Limits
from solver.result import Result

METHODS: tuple[tuple[str, dict[str, object], float], ...] = (
    ("exact", {"compare": "no"}, 0.8),
    ("cpp", {}, 0.5),
    ("mocap", {"batch": "best", "iterations": 0}, 1.0),
)
"""Methods in turn, with knobs that spare what only makes a plan faster, and their shares of the time left."""


def find_plan(instance: Instance, time_s: float | None) -> Result | None:
    """A result with a plan; else the last one that says why there is none, or None where nothing could be tried.

    Raises
    ------
    KeyboardInterrupt
        If the search was interrupted.
    """
    clock, last = Deadline(time_s), None
    for method, knobs, share in METHODS:
        left = clock.left_s
        if left is not None and left <= 0:
            break
        limits = Limits(time_s=None if left is None else share * left, gap=math.inf, deterministic=True)
        try:
            found = solve(instance, method, limits=limits, knobs=knobs)
        except InputError:  # finer or longer than what is planned for
            return last
        if found.stop_reason == "interrupted":
            raise KeyboardInterrupt
        if found.plan is not None or found.status == "infeasible":
            return found
        last = last if last is not None and last.violations and not found.violations else found
    return last


def find_plan_of_changed(instance: Instance, time_s: float | None) -> Result | None:
    """A result with a plan for an instance changed in memory, which is read again first: a file could hold it."""
    try:
        whole = Instance.read(instance.canonical())
    except InputError:
        return None
    found = find_plan(whole, time_s)
    return found if found is not None and found.plan is not None else None
