"""``simulate``: replay one plan."""

from __future__ import annotations

from instances.check import check
from instances.errors import InfeasibleError
from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluator
from solver.simulation.replay import Replay


def simulate(instance: Instance, plan: Plan, *, traced: bool = False) -> Replay:
    """Replay a plan in the event simulator (spec section 3).

    Parameters
    ----------
    traced
        Keep every transfer, change of memory and stall, for ``solver.simulation.trace``.

    Returns
    -------
    Replay
        With the same numbers as ``Result.metrics``; after a deadlock its times are None and ``reason`` says who waits.

    Raises
    ------
    InputError
        If the plan was made for another instance.
    InfeasibleError
        If the plan breaks a static rule.
    """
    for finding in check(instance, plan):
        if not finding.ok:
            raise InfeasibleError(finding.rule, f"{finding.where} (by {finding.amount:.6g} {finding.unit})")
    return Evaluator(instance).replay(plan, traced=traced)
