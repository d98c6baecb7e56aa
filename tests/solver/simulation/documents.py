"""Small program documents for the engine's tests: a line of dies, links of 1 byte/s, nothing else unless asked for."""

from __future__ import annotations

from typing import Any

from solver.simulation.engine import Run, run
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import Program
from solver.simulation.program_file import read_program


def line(compute_s: list[list[float]], *, waves: int = 1, **changes: Any) -> dict[str, Any]:
    """Stages side by side in one row; activations of zero bytes, no KV, all waves at time 0."""
    stages, chunks = len(compute_s), len(compute_s[0])
    document: dict[str, Any] = {
        "die_of": [[0, column] for column in range(stages)],
        "compute_s": compute_s,
        "activation_bytes": [0] * chunks,
        "kv_bytes": [[0] * chunks] * stages,
        "arrivals_s": [0] * waves,
        "link_bytes_per_s": 1,
        "hop_latency_s": 0,
    }
    return document | changes


def spill(stage: int, chunk: int, creditor: int | str, size_bytes: float) -> dict[str, Any]:
    """One row of ``spill``."""
    return {"stage": stage, "chunk": chunk, "creditor": creditor, "bytes": size_bytes}


def run_document(document: dict[str, Any], *, traced: bool = False) -> tuple[Program, Run]:
    """Read and run a document."""
    program = read_program(document)
    return program, run(program, traced=traced)


def times_s(document: dict[str, Any]) -> tuple[dict[tuple[int, int, int], float], dict[tuple[int, int, int], float]]:
    """Start and end of each task, by (wave, stage, chunk)."""
    program, outcome = run_document(document)
    labels = [*zip(program.wave.tolist(), program.stage.tolist(), program.chunk.tolist(), strict=True)]
    starts, ends = (times.tolist() for times in (outcome.start_ps, outcome.end_ps))
    return (
        {label: ps / PICOSECONDS_PER_S for label, ps in zip(labels, starts, strict=True)},
        {label: ps / PICOSECONDS_PER_S for label, ps in zip(labels, ends, strict=True)},
    )
