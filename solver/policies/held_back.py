"""Pooled spill on a timeline with delays, as a program that holds tasks back: what no plan can say.

In the replay of a plan every die starts as soon as it may. A program keeps tasks to a timeline on which all KV together
needs less memory at once (``solver.exact.delays``), and its spill is that of the linear program on this timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from instances.plan import Plan
from instances.workload import form_waves
from solver.exact.delays import least_peak
from solver.exact.pool import MARGINS, Unlimited, spill_problem, spilled_plan
from solver.policies.plan_document import document_of
from solver.search import Search
from solver.serving.prompts import prompts_served
from solver.serving.served import Served
from solver.serving.setting import MOST_TASKS, slow_seams
from solver.simulation.engine import run
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import Int64s, Program

SHARES = (0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
"""Parts of what the budget leaves that are spent on delays; the rest is for what transfers and stalls add."""
WITHOUT_BUDGET = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Delays as shares of the time without memory limits where there is no budget."""


def held_back(
    search: Search, plan: Plan, unlimited: Unlimited, budget_s: float | None, enough: Callable[[], bool]
) -> Iterator[Served]:
    """Programs that run; none where they would be too large to write down.

    Parameters
    ----------
    unlimited
        Run of the plan without memory limits.
    budget_s
        Seconds that the objective may take; None: any.
    """
    instance = search.instance
    if slow_seams(instance.hardware) is not None or unlimited.program.tasks > MOST_TASKS:
        return
    problem = spill_problem(instance, search.evaluator.lowering, plan, unlimited, MARGINS[0])
    if budget_s is None:
        delays_s = [share * unlimited.value for share in WITHOUT_BUDGET]
    else:
        delays_s = [share * (budget_s - unlimited.value) for share in SHARES]
    before: Unlimited | None = None
    for most_s in delays_s:
        if enough() or search.deadline.over:
            return
        if most_s <= 0 or not search.incumbent.affords(plan):
            continue
        found = least_peak(problem, unlimited, most_s, search.deadline)
        if found.excess_bytes > 0 or (before is not None and np.array_equal(before.start_s, found.timeline.start_s)):
            continue
        before = found.timeline
        for margin in MARGINS:
            spilled = spilled_plan(search, plan, found.timeline, margin)
            if spilled is None:
                break
            served = _served(search, spilled, found.timeline)
            if served is not None:
                yield served
                break


def _served(search: Search, spilled: Plan, timeline: Unlimited) -> Served | None:
    """The plan's program held back to a timeline, replayed and measured; None if it gets stuck."""
    program = search.evaluator.lowering.program(spilled)
    until_ps = np.rint(timeline.start_s.transpose(0, 2, 1).ravel() * PICOSECONDS_PER_S).astype(np.int64)
    if run(_until(program, until_ps)).deadlock:
        return None  # seen before the document is written and read, which takes longer
    waves = form_waves(search.evaluator.requests, spilled.batch)
    return prompts_served(search.instance, document_of(search.instance, spilled, program, until_ps), waves)


def _until(program: Program, until_ps: Int64s) -> Program:
    return replace(program, earliest_ps=np.maximum(program.earliest_ps, until_ps))
