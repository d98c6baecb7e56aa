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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pulp

from formulations.interface import EngineOutcome
from formulations.spill.rows import MemoryRow

Amounts = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SpillProblem:
    """Data of the program. N stages, M chunks, creditors 0..N-1 and N for the host.

    Attributes
    ----------
    held_bytes
        (N, M): KV the stage holds once chunk j has started, were nothing spilled.
    spillable_bytes
        (N, M): KV of each chunk that may be spilled.
    free_bytes
        (N,): memory of the die beside its static part.
    host_bytes
        Memory of each host, 0 without one.
    cost_s_per_byte
        (N, N+1): link time of moving a byte from a stage to a creditor; +inf forbids the pair.
    rows
        Moments to keep (see ``rows``).
    """

    held_bytes: Amounts
    spillable_bytes: Amounts
    free_bytes: Amounts
    host_bytes: float
    cost_s_per_byte: Amounts
    rows: Sequence[MemoryRow]


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


def build(data: SpillProblem) -> SpillModel:
    """Build the program; the last chunk is never spilled, so j runs over 0..M-2."""
    stages, chunks = data.held_bytes.shape
    problem = pulp.LpProblem("spill", pulp.LpMinimize)
    unit_bytes = max(float(data.free_bytes.max(initial=0.0)), float(data.held_bytes.max()), 1e-9) / 1000.0
    moved: list[dict[int, list[pulp.LpVariable]]] = []
    for s in range(stages):
        most = np.cumsum(data.spillable_bytes[s, :-1]) / unit_bytes
        moved.append(
            {
                k: [problem.add_variable(f"moved_s{s}_k{k}_i{j}", 0.0, float(most[j])) for j in range(chunks - 1)]
                for k in range(stages + 1)
                if chunks > 1 and np.isfinite(data.cost_s_per_byte[s, k])
            }
        )
    # Moving all chunks to one creditor, each once and then at every later chunk, bounds what a die can serve.
    most_served = float(np.cumsum(data.spillable_bytes[:, :-1], axis=1).sum()) / unit_bytes
    busiest = problem.add_variable("busiest", 0.0, most_served)
    model = SpillModel(problem, moved, busiest, data, unit_bytes)
    problem.setObjective(_traffic(model) + stages * busiest)
    _spill_monotone(model)
    _spill_within_chunk(model)
    _memory_admission(model)
    _serve_stall(model)
    return model


def _traffic(model: SpillModel) -> pulp.LpAffineExpression:
    """Link time of one wave, relative to the cheapest pair: a write, and a fetch at each later chunk.

    Chunk j moves M - j times in all. Over cumulative amounts that is once each step, and twice for the last one.
    """
    cost = model.data.cost_s_per_byte
    cheapest = float(cost[np.isfinite(cost) & (cost > 0)].min(initial=1.0))
    terms: list[tuple[pulp.LpVariable, float]] = []
    for s, creditors in enumerate(model.moved):
        for k, series in creditors.items():
            each = float(cost[s, k]) / cheapest
            terms += [(variable, each) for variable in series[:-1]]
            terms.append((series[-1], 2 * each))
    return pulp.LpAffineExpression(terms)


def _spill_monotone(model: SpillModel) -> None:
    for s, creditors in enumerate(model.moved):
        for k, series in creditors.items():
            for j in range(1, len(series)):
                row = pulp.LpAffineExpression([(series[j], 1.0), (series[j - 1], -1.0)])
                model.problem.addConstraint(row >= 0, f"spill_monotone_s{s}_k{k}_i{j}")


def _spill_within_chunk(model: SpillModel) -> None:
    for s, creditors in enumerate(model.moved):
        for j in range(model.data.held_bytes.shape[1] - 1):
            terms = [(series[j], 1.0) for series in creditors.values()]
            if j:
                terms += [(series[j - 1], -1.0) for series in creditors.values()]
            if terms:
                limit = float(model.data.spillable_bytes[s, j]) / model.unit_bytes
                model.problem.addConstraint(pulp.LpAffineExpression(terms) <= limit, f"spill_within_chunk_s{s}_i{j}")


def _memory_admission(model: SpillModel) -> None:
    data, stages = model.data, model.data.held_bytes.shape[0]
    for number, row in enumerate(data.rows):
        d = row.stage
        terms = [] if row.left < 0 else [(series[row.left], -1.0) for series in model.moved[d].values()]
        terms += [
            (model.moved[s][d][row.hosted[s]], 1.0) for s in range(stages) if row.hosted[s] >= 0 and d in model.moved[s]
        ]
        spare = float(data.free_bytes[d] - data.held_bytes[d, row.chunk]) / model.unit_bytes
        if terms:
            model.problem.addConstraint(pulp.LpAffineExpression(terms) <= spare, f"memory_admission_{number}")
    for s, creditors in enumerate(model.moved):
        if stages in creditors:
            limit = data.host_bytes / model.unit_bytes
            model.problem.addConstraint(pulp.LpAffineExpression([(creditors[stages][-1], 1.0)]) <= limit, f"host_s{s}")


def _serve_stall(model: SpillModel) -> None:
    """No die serves more in a wave than the busiest one: chunks 0..j are fetched by each start of a chunk j+1."""
    for k in range(model.data.held_bytes.shape[0]):
        terms = [(variable, 1.0) for creditors in model.moved if k in creditors for variable in creditors[k]]
        if terms:
            row = pulp.LpAffineExpression([*terms, (model.busiest, -1.0)])
            model.problem.addConstraint(row <= 0, f"serve_stall_k{k}")


def always_too_full(data: SpillProblem) -> bool:
    """Whether some die cannot hold a chunk even if all that may leave has left (the program has no such row)."""
    for row in data.rows:
        leaving = float(data.spillable_bytes[row.stage, : row.left + 1].sum())
        if data.held_bytes[row.stage, row.chunk] - leaving > data.free_bytes[row.stage]:
            return True
    return False


def amounts(model: SpillModel, outcome: EngineOutcome) -> Amounts:
    """Bytes of each chunk at each creditor, shape (N, M, N+1), from a solved program."""
    stages, chunks = model.data.held_bytes.shape
    result = np.zeros((stages, chunks, stages + 1))
    for s, creditors in enumerate(model.moved):
        for k, series in creditors.items():
            total = np.array([outcome.value_of(variable) for variable in series]) * model.unit_bytes
            result[s, :-1, k] = np.maximum(np.diff(total, prepend=0.0), 0.0)
    return result
