"""What the two spill models share: whole units, and names.

``moved[s,k,j]``: units of chunks 0..j of one wave of stage s that creditor k keeps (cumulative). Fractions of a unit
are rounded so that what fits in whole units fits in bytes: what is held up, what may leave and what is free down.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from formulations.spill.problem import Amounts, SpillProblem
from instances.errors import InputError

COST_UNITS = 1000
"""Whole numbers in which the cost of the cheapest pair is counted."""
LARGEST_SUM = 2**40
"""Objectives stay below this, far from what overflows in an engine."""


def in_units(data: SpillProblem, unit_bytes: float) -> SpillProblem:
    """The same program in whole units, and costs in thousandths of the cheapest.

    Raises
    ------
    InputError
        For a unit that is not positive, or so small that objectives leave the engines' safe range.
    """
    if not unit_bytes > 0:
        raise InputError("unit_bytes", unit_bytes, "a positive number of bytes")
    cost = data.cost_s_per_byte
    cheapest = cheapest_cost(data)
    whole = replace(
        data,
        held_bytes=_whole(data.held_bytes / unit_bytes, up=True),
        spillable_bytes=_whole(data.spillable_bytes / unit_bytes),
        free_bytes=_whole(data.free_bytes / unit_bytes),
        host_bytes=float(_whole(np.array(data.host_bytes / unit_bytes))),
        cost_s_per_byte=np.where(np.isfinite(cost), np.rint(cost / cheapest * COST_UNITS), np.inf),
    )
    dearest = float(whole.cost_s_per_byte[np.isfinite(cost)].max(initial=COST_UNITS))
    if 2 * whole.spillable_bytes.sum() * whole.held_bytes.shape[1] * dearest >= LARGEST_SUM:
        raise InputError("unit_bytes", unit_bytes, f"units so large that all costs stay below {LARGEST_SUM} in sum")
    return whole


def most_moved(data: SpillProblem, stage: int) -> Amounts:
    """Upper bounds of moved[stage, k, j] for j = 0..M-2."""
    most: Amounts = np.cumsum(data.spillable_bytes[stage, :-1])
    return most


def most_served(data: SpillProblem) -> float:
    """Upper bound of what a die serves in a wave: all chunks at one creditor, each once and at every later chunk."""
    return float(np.cumsum(data.spillable_bytes[:, :-1], axis=1).sum())


def creditors(data: SpillProblem, stage: int) -> list[int]:
    """Creditors that a stage may use, D for the host."""
    chunks, memories = data.held_bytes.shape[1], data.cost_s_per_byte.shape[1]
    return [k for k in range(memories) if chunks > 1 and np.isfinite(data.cost_s_per_byte[stage, k])]


def cheapest_cost(data: SpillProblem) -> float:
    """The least cost of any pair, in whose terms traffic is counted."""
    cost = data.cost_s_per_byte
    positive = cost[np.isfinite(cost) & (cost > 0)]
    return float(positive.min()) if positive.size else 1.0


def moved_name(stage: int, creditor: int, chunk: int) -> str:
    """Name of the variable."""
    return f"moved_s{stage}_k{creditor}_i{chunk}"


def _whole(amounts: Amounts, *, up: bool = False) -> Amounts:
    # Whole numbers must survive the rounding of the division.
    near = np.rint(amounts)
    rounded = np.ceil(amounts) if up else np.floor(amounts)
    whole: Amounts = np.where(np.abs(amounts - near) <= 1e-9 * np.maximum(1.0, np.abs(amounts)), near, rounded)
    return whole
