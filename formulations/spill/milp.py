"""Spill amounts for given cuts and a given timeline, as a linear program in PuLP.

Variables: ``moved[s,k,j]``, bytes of chunks 0..j of one wave of stage s that creditor k keeps (cumulative, which keeps
the rows short). Constraints, one function a family: ``spill_monotone`` (what was sent stays until the release),
``spill_within_chunk`` (a chunk sends at most its spillable KV), ``memory_admission`` (each die at each start),
``serve_stall`` (no die serves more than the busiest). Objective: the time that links, or the host link, spend on writes
and on every later fetch, and the service time of the busiest die, which slows the whole pipeline.

The timeline is that of a run without memory limits, so the program is neither a relaxation nor a restriction of the
replay: its plan is replayed, and repaired where the replay waits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pulp

from formulations.interface import EngineOutcome
from formulations.spill.problem import Amounts as Amounts
from formulations.spill.problem import SpillProblem as SpillProblem
from formulations.spill.problem import always_too_full as always_too_full
from formulations.spill.variables import cheapest_cost, creditors, most_moved, most_served, moved_name


@dataclass(frozen=True)
class SpillModel:
    """The built program and its variables: ``moved[s][k][j]``, and what the ``busiest`` die serves a wave.

    Amounts are in ``unit_bytes``, a thousandth of the largest memory, which keeps the engine's tolerances out of sight.
    """

    problem: pulp.LpProblem
    moved: list[dict[int, list[pulp.LpVariable]]]
    busiest: pulp.LpVariable
    data: SpillProblem
    unit_bytes: float


def build(data: SpillProblem, *, whole: bool = False, start: Amounts | None = None) -> SpillModel:
    """Build the program; the last chunk is never spilled, so j runs over 0..M-2.

    Parameters
    ----------
    whole
        Whether ``data`` is in whole units (see ``variables.in_units``), and amounts are to be so too: then the value
        times the cheapest cost is that of the twin.
    start
        Amounts (S, M, D+1) to begin from, in the unit of ``data``.
    """
    stages, chunks = data.held_bytes.shape
    problem = pulp.LpProblem("spill", pulp.LpMinimize)
    unit_bytes = max(float(data.free_bytes.max(initial=0.0)), float(data.held_bytes.max()), 1e-9) / 1000.0
    unit_bytes, kind = (1.0, pulp.LpInteger) if whole else (unit_bytes, pulp.LpContinuous)
    moved: list[dict[int, list[pulp.LpVariable]]] = []
    for s in range(stages):
        most = most_moved(data, s) / unit_bytes
        moved.append(
            {
                k: [problem.add_variable(moved_name(s, k, j), 0.0, float(most[j]), cat=kind) for j in range(chunks - 1)]
                for k in creditors(data, s)
            }
        )
    busiest = problem.add_variable("busiest", 0.0, most_served(data) / unit_bytes)
    model = SpillModel(problem, moved, busiest, data, unit_bytes)
    problem.setObjective(_traffic(model) + len(data.free_bytes) * busiest)
    spill_monotone(model)
    spill_within_chunk(model)
    memory_admission(model)
    serve_stall(model)
    if start is not None:
        hint(model, start)
    return model


def _traffic(model: SpillModel) -> pulp.LpAffineExpression:
    """Link time of one wave, relative to the cheapest pair: a write, and a fetch at each later chunk.

    Chunk j moves M - j times in all. Over cumulative amounts that is once each step, and twice for the last one.
    """
    cost, cheapest = model.data.cost_s_per_byte, cheapest_cost(model.data)
    terms: list[tuple[pulp.LpVariable, float]] = []
    for s, keepers in enumerate(model.moved):
        for k, series in keepers.items():
            each = float(cost[s, k]) / cheapest
            terms += [(variable, each) for variable in series[:-1]]
            terms.append((series[-1], 2 * each))
    return pulp.LpAffineExpression(terms)


def spill_monotone(model: SpillModel) -> None:
    for s, keepers in enumerate(model.moved):
        for k, series in keepers.items():
            for j in range(1, len(series)):
                row = pulp.LpAffineExpression([(series[j], 1.0), (series[j - 1], -1.0)])
                model.problem.addConstraint(row >= 0, f"spill_monotone_s{s}_k{k}_i{j}")


def spill_within_chunk(model: SpillModel) -> None:
    for s, keepers in enumerate(model.moved):
        for j in range(model.data.held_bytes.shape[1] - 1):
            terms = [(series[j], 1.0) for series in keepers.values()]
            if j:
                terms += [(series[j - 1], -1.0) for series in keepers.values()]
            if terms:
                limit = float(model.data.spillable_bytes[s, j]) / model.unit_bytes
                model.problem.addConstraint(pulp.LpAffineExpression(terms) <= limit, f"spill_within_chunk_s{s}_i{j}")


def memory_admission(model: SpillModel) -> None:
    """Each die at each moment; a host keeps what its own die's stages send, at worst at the same time."""
    data, host = model.data, len(model.data.free_bytes)
    for number, row in enumerate(data.rows):
        terms: list[tuple[pulp.LpVariable, float]] = []
        for s, keepers in enumerate(model.moved):
            if row.left[s] >= 0:
                terms += [(series[row.left[s]], -1.0) for series in keepers.values()]
            if row.hosted[s] >= 0 and row.die in keepers:
                terms.append((keepers[row.die][row.hosted[s]], 1.0))
        if terms:
            spare = data.spare_bytes(row) / model.unit_bytes
            model.problem.addConstraint(pulp.LpAffineExpression(terms) <= spare, f"memory_admission_{number}")
    for d in range(host):
        sent = [(model.moved[s][host][-1], 1.0) for s in data.stages_of(d) if host in model.moved[s]]
        if sent:
            limit = data.host_bytes / model.unit_bytes
            model.problem.addConstraint(pulp.LpAffineExpression(sent) <= limit, f"host_d{d}")


def serve_stall(model: SpillModel) -> None:
    """No die serves more in a wave than the busiest one: chunks 0..j are fetched by each start of a chunk j+1."""
    for k in range(len(model.data.free_bytes)):
        terms = [(variable, 1.0) for keepers in model.moved if k in keepers for variable in keepers[k]]
        if terms:
            row = pulp.LpAffineExpression([*terms, (model.busiest, -1.0)])
            model.problem.addConstraint(row <= 0, f"serve_stall_k{k}")


def hint(model: SpillModel, start: Amounts) -> None:
    """Begin from amounts (S, M, D+1)."""
    total = np.cumsum(start, axis=1) / model.unit_bytes
    for s, keepers in enumerate(model.moved):
        for k, series in keepers.items():
            for j, variable in enumerate(series):
                variable.setInitialValue(float(total[s, j, k]))


def amounts(model: SpillModel, outcome: EngineOutcome) -> Amounts:
    """Bytes of each chunk at each creditor, shape (S, M, D+1), from a solved program."""
    stages, chunks = model.data.held_bytes.shape
    result = np.zeros((stages, chunks, len(model.data.free_bytes) + 1))
    for s, keepers in enumerate(model.moved):
        for k, series in keepers.items():
            total = np.array([outcome.value_of(variable) for variable in series]) * model.unit_bytes
            result[s, :-1, k] = np.maximum(np.diff(total, prepend=0.0), 0.0)
    return result
