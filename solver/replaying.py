"""``simulate``: replay one plan."""

from __future__ import annotations

from dataclasses import dataclass

from instances.check import check
from instances.errors import InfeasibleError
from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluator
from solver.metrics import metrics_of
from solver.result import Metrics
from solver.simulation.replay import Replay


@dataclass(frozen=True, eq=False)
class PlanReplay(Replay):
    """The replay of a plan of an instance, with the numbers that need both.

    Parameters
    ----------
    metrics
        What ``solve`` reports of the same plan, number for number; None after a deadlock.
    """

    metrics: Metrics | None


def simulate(instance: Instance, plan: Plan, *, traced: bool = False) -> PlanReplay:
    """Replay a plan in the event simulator (spec section 3).

    Parameters
    ----------
    traced
        Keep every transfer, change of memory and stall, for ``solver.simulation.trace``.

    Returns
    -------
    PlanReplay
        ``metrics`` are those of ``Result.metrics``; after a deadlock they and all times are None, and ``reason`` says
        who waits.

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
    found = Evaluator(instance).replay(plan, traced=traced)
    return PlanReplay(found.program, found.run, found.arrivals_s, metrics_of(instance, found))
