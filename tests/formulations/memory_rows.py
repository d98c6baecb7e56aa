"""Rows of plain pipelines, where each die has one stage."""

from __future__ import annotations

from formulations.spill.rows import MemoryRow


def plain_row(stage: int, chunk: int, left: int, hosted: tuple[int, ...]) -> MemoryRow:
    """A start of ``chunk`` on the die of ``stage``; chunks 0..left have left, 0..hosted[s] of the others are hosted."""
    return MemoryRow(
        stage,
        tuple(chunk if s == stage else -1 for s in range(len(hosted))),
        tuple(left if s == stage else -1 for s in range(len(hosted))),
        hosted,
    )
