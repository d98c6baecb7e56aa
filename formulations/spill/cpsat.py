"""Spill amounts for given cuts and a given timeline, as a CP-SAT model in whole units (twin of `milp`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from formulations.interface import EngineOutcome
from formulations.spill.problem import Amounts, SpillProblem
from formulations.spill.variables import cheapest_cost, creditors, most_moved, most_served, moved_name


@dataclass(frozen=True)
class SpillModel:
    """The model and its variables: ``moved[s][k][j]``, and what the ``busiest`` die serves a wave, in units."""

    model: cp_model.CpModel
    moved: list[dict[int, list[cp_model.IntVar]]]
    busiest: cp_model.IntVar
    data: SpillProblem


def build(data: SpillProblem, *, start: Amounts | None = None) -> SpillModel:
    """Build the program; the last chunk is never spilled, so j runs over 0..M-2.

    Parameters
    ----------
    data
        In whole units (see ``variables.in_units``).
    start
        Amounts (S, M, D+1) in units to begin from.
    """
    stages, chunks = data.held_bytes.shape
    model = cp_model.CpModel()
    moved: list[dict[int, list[cp_model.IntVar]]] = []
    for s in range(stages):
        most = most_moved(data, s)
        moved.append(
            {
                k: [model.new_int_var(0, int(most[j]), moved_name(s, k, j)) for j in range(chunks - 1)]
                for k in creditors(data, s)
            }
        )
    busiest = model.new_int_var(0, int(most_served(data)), "busiest")
    spill = SpillModel(model, moved, busiest, data)
    model.minimize(_traffic(spill) + len(data.free_bytes) * int(cheapest_cost(data)) * busiest)
    spill_monotone(spill)
    spill_within_chunk(spill)
    memory_admission(spill)
    serve_stall(spill)
    if start is not None:
        hint(spill, start)
    return spill


def _traffic(spill: SpillModel) -> cp_model.LinearExpr:
    """Link time of one wave: a write, and a fetch at each later chunk.

    Chunk j moves M - j times in all. Over cumulative amounts that is once each step, and twice for the last one.
    """
    terms: list[cp_model.LinearExpr] = []
    for s, keepers in enumerate(spill.moved):
        for k, series in keepers.items():
            each = int(spill.data.cost_s_per_byte[s, k])
            terms += [each * variable for variable in series[:-1]]
            terms.append(2 * each * series[-1])
    return _sum(terms)


def spill_monotone(spill: SpillModel) -> None:
    """What was sent stays until the release."""
    for keepers in spill.moved:
        for series in keepers.values():
            for j in range(1, len(series)):
                spill.model.add(series[j] >= series[j - 1])


def spill_within_chunk(spill: SpillModel) -> None:
    """A chunk sends at most its spillable KV."""
    for s, keepers in enumerate(spill.moved):
        for j in range(spill.data.held_bytes.shape[1] - 1):
            sent: list[cp_model.LinearExpr] = [
                series[j] - series[j - 1] if j else series[j] + 0 for series in keepers.values()
            ]
            spill.model.add(_sum(sent) <= int(spill.data.spillable_bytes[s, j]))


def memory_admission(spill: SpillModel) -> None:
    """Each die at each moment; a host keeps what its own die's stages send, at worst at the same time."""
    data, host = spill.data, len(spill.data.free_bytes)
    for row in data.rows:
        terms: list[cp_model.LinearExpr] = []
        for s, keepers in enumerate(spill.moved):
            if row.left[s] >= 0:
                terms += [-1 * series[row.left[s]] for series in keepers.values()]
            if row.hosted[s] >= 0 and row.die in keepers:
                terms.append(1 * keepers[row.die][row.hosted[s]])
        if terms:
            spill.model.add(_sum(terms) <= round(data.spare_bytes(row)))
    for d in range(host):
        sent = [spill.moved[s][host][-1] + 0 for s in data.stages_of(d) if host in spill.moved[s]]
        if sent:
            spill.model.add(_sum(sent) <= int(data.host_bytes))


def serve_stall(spill: SpillModel) -> None:
    """No die serves more in a wave than the busiest one: chunks 0..j are fetched by each start of a chunk j+1."""
    for k in range(len(spill.data.free_bytes)):
        served = [variable for keepers in spill.moved if k in keepers for variable in keepers[k]]
        if served:
            spill.model.add(_sum(served) <= spill.busiest)


def hint(spill: SpillModel, start: Amounts) -> None:
    """Begin from amounts (S, M, D+1)."""
    total = np.cumsum(start, axis=1)
    for s, keepers in enumerate(spill.moved):
        for k, series in keepers.items():
            for j, variable in enumerate(series):
                spill.model.add_hint(variable, round(float(total[s, j, k])))


def amounts(spill: SpillModel, outcome: EngineOutcome) -> Amounts:
    """Units of each chunk at each creditor, shape (S, M, D+1), from a solved program."""
    stages, chunks = spill.data.held_bytes.shape
    result = np.zeros((stages, chunks, len(spill.data.free_bytes) + 1))
    for s, keepers in enumerate(spill.moved):
        for k, series in keepers.items():
            total = np.array([outcome.value_of(variable) for variable in series])
            result[s, :-1, k] = np.diff(total, prepend=0.0)
    return result


def _sum(terms: Sequence[cp_model.LinearExpr]) -> cp_model.LinearExpr:
    return cp_model.LinearExpr.sum(list(terms))
