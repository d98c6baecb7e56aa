"""Chunks as a CP-SAT model (twin of `milp`); for checks on small tables, `exact` is the fast way."""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model

from formulations.chunks.variables import ChunkTicks, chunk_name
from formulations.interface import EngineOutcome


@dataclass
class ChunkModel:
    """The model and its variables."""

    ticks: ChunkTicks
    model: cp_model.CpModel
    chunk: dict[tuple[int, int], cp_model.IntVar]
    longest: cp_model.IntVar


def build(ticks: ChunkTicks) -> ChunkModel:
    """The model of A*sum t + Z*max u, in ticks."""
    model = cp_model.CpModel()
    chunk = {arc: model.new_bool_var(chunk_name(*arc)) for arc in ticks.arcs}
    longest = model.new_int_var(0, ticks.largest_crossing, "longest")
    chunked = ChunkModel(ticks, model, chunk, longest)
    chunks_cover(chunked)
    chunk_count(chunked)
    longest_chunk(chunked)
    minimise_time(chunked)
    return chunked


def chunks_cover(chunked: ChunkModel) -> None:
    """One chunk starts at 0, one ends at n, and where one ends in between the next one starts."""
    quanta = chunked.ticks.quanta
    for position in range(quanta + 1):
        ending = cp_model.LinearExpr.sum([literal for (_, e), literal in chunked.chunk.items() if e == position])
        starting = cp_model.LinearExpr.sum([literal for (p, _), literal in chunked.chunk.items() if p == position])
        balance = int(position == quanta) - int(position == 0)
        chunked.model.add_linear_constraint(ending - starting, balance, balance)


def chunk_count(chunked: ChunkModel) -> None:
    """Between the fewest and the most chunks admitted."""
    count = cp_model.LinearExpr.sum(list(chunked.chunk.values()))
    chunked.model.add_linear_constraint(count, chunked.ticks.fewest, chunked.ticks.most)


def longest_chunk(chunked: ChunkModel) -> None:
    """The longest crossing is at least that of the chunk at every start."""
    for position in range(chunked.ticks.quanta):
        crossing = sum(
            int(chunked.ticks.crossing[start, end]) * literal
            for (start, end), literal in chunked.chunk.items()
            if start == position
        )
        chunked.model.add(chunked.longest >= crossing)


def minimise_time(chunked: ChunkModel) -> None:
    """Sum of costs plus the longest crossing."""
    total = sum(int(chunked.ticks.cost[arc]) * literal for arc, literal in chunked.chunk.items())
    chunked.model.minimize(total + chunked.longest)


def extract(chunked: ChunkModel, outcome: EngineOutcome) -> list[int]:
    """Ends of the chunks in quanta."""
    return sorted(end for (_, end), literal in chunked.chunk.items() if outcome.value_of(literal) > 0.5)
