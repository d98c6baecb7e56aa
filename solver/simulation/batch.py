"""Replays many plans of one instance in one call (spec section 3): the same outcomes as one by one, sooner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from instances.plan import Plan
from solver.simulation import columns as c
from solver.simulation.amounts import Amounts
from solver.simulation.kernel import simulate
from solver.simulation.lowering import Lowering
from solver.simulation.program import Int64s


@dataclass(frozen=True, eq=False)
class Summary:
    """What one replay came to.

    Attributes
    ----------
    completion_ps
        End of the last chunk of each wave at the last stage. Shape [W].
    byte_hops
        Bytes times hops over all transfers; host traffic counts nothing.
    """

    completion_ps: Int64s
    byte_hops: float


def run_plans(lowering: Lowering, plans: Sequence[Plan]) -> list[Summary | None]:
    """Replay plans whose violations, if any, concern memory alone.

    Plans of one form (all but chunk sizes and spilled tokens the same) are lowered together and run in one call of the
    compiled loop.

    Returns
    -------
    list of Summary or None
        In the order of the plans; None where weights and workspace do not fit, or the replay deadlocks.
    """
    found: list[Summary | None] = [None] * len(plans)
    for numbers, amounts in lowering.amounts(plans):
        for number, summary in zip(numbers, _run(amounts), strict=True):
            found[number] = summary
    return found


def _run(amounts: Amounts) -> list[Summary | None]:
    program = amounts.form.program
    fits = np.flatnonzero(amounts.fits)
    outcomes = np.empty((len(fits), c.FIRST_COMPLETION + program.waves), dtype=np.int64)
    if len(fits):
        untraced = np.empty((0, c.TRACE_COLUMNS), dtype=np.int64)
        table = amounts.table if len(fits) == len(amounts.table) else amounts.table[fits]
        simulate(*amounts.form.tables, float(program.serve_fraction), untraced, table, outcomes)
    found: list[Summary | None] = [None] * len(amounts.table)
    for row, outcome in zip(fits.tolist(), outcomes, strict=True):
        if outcome[c.TASKS_RUN] == program.tasks:
            byte_hops = int(outcome[c.HOP_UNITS]) / program.units_per_byte
            found[row] = Summary(outcome[c.FIRST_COMPLETION :], byte_hops)
    return found
