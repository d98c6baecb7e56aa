"""The paper's heuristic on the instance of a result, for pictures of its chunks beside the result's own.

A result keeps what other methods reached, not their plans. MOCAP takes a second or two, so that its plan is made anew.
"""

from __future__ import annotations

import math

from reports.source import Replayed, replay_of
from solver.api import solve
from solver.limits import Limits

METHOD = "mocap"
MOST_S = 6.0
"""Time that the heuristic may take here; a plan that needs more is not drawn."""


def heuristic_of(view: Replayed) -> Replayed | None:
    """The heuristic's plan, replayed.

    Returns
    -------
    Replayed or None
        None if the result is the heuristic's own, says nothing of a value of it, or it does not reach that value in
        the time that there is: then it would not be the plan that the result speaks of.
    """
    result = view.result
    expected = next((row.value for row in result.compared if row.method == METHOD), None)
    if expected is None or result.method == METHOD:
        return None
    found = solve(view.instance, METHOD, limits=Limits(time_s=MOST_S), seed=result.seed)
    value = found.objective.value
    if value is None or not math.isclose(value, expected, rel_tol=1e-9):
        return None
    return replay_of(found)
