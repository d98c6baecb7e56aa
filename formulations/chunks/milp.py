"""Chunks as a MILP (twin of `cpsat`); for checks on small tables, `exact` is the fast way."""

from __future__ import annotations

from dataclasses import dataclass

import pulp

from formulations.chunks.variables import ChunkTicks, chunk_name
from formulations.interface import EngineOutcome


@dataclass
class ChunkModel:
    """The model and its variables."""

    ticks: ChunkTicks
    model: pulp.LpProblem
    chunk: dict[tuple[int, int], pulp.LpVariable]
    longest: pulp.LpVariable


def build(ticks: ChunkTicks) -> ChunkModel:
    """The model of A*sum t + Z*max u, in ticks."""
    model = pulp.LpProblem("chunks", pulp.LpMinimize)
    chunk = {arc: model.add_variable(chunk_name(*arc), 0, 1, cat=pulp.LpInteger) for arc in ticks.arcs}
    longest = model.add_variable("longest", 0, ticks.largest_crossing)
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
        ending = pulp.lpSum(binary for (_, end), binary in chunked.chunk.items() if end == position)
        starting = pulp.lpSum(binary for (start, _), binary in chunked.chunk.items() if start == position)
        chunked.model += ending - starting == (position == quanta) - (position == 0)


def chunk_count(chunked: ChunkModel) -> None:
    """Between the fewest and the most chunks admitted."""
    count = pulp.lpSum(chunked.chunk.values())
    chunked.model += count >= chunked.ticks.fewest
    chunked.model += count <= chunked.ticks.most


def longest_chunk(chunked: ChunkModel) -> None:
    """The longest crossing is at least that of the chunk at every start."""
    for position in range(chunked.ticks.quanta):
        chunked.model += chunked.longest >= pulp.lpSum(
            int(chunked.ticks.crossing[start, end]) * binary
            for (start, end), binary in chunked.chunk.items()
            if start == position
        )


def minimise_time(chunked: ChunkModel) -> None:
    """Sum of costs plus the longest crossing."""
    total = pulp.lpSum(int(chunked.ticks.cost[arc]) * binary for arc, binary in chunked.chunk.items())
    chunked.model += total + chunked.longest


def extract(chunked: ChunkModel, outcome: EngineOutcome) -> list[int]:
    """Ends of the chunks in quanta."""
    return sorted(end for (_, end), binary in chunked.chunk.items() if outcome.value_of(binary) > 0.5)
