"""The spill program on plain arrays: what each stage holds, what may leave, and where it may go.

A creditor is a memory: that of a die, or a host. In a plain pipeline stages and dies are the same; in a V die r has the
stages r and 2N-1-r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formulations.spill.rows import MemoryRow

Amounts = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SpillProblem:
    """Data of the program. S stages, M chunks, D dies: creditors 0..D-1, and D for the host.

    Attributes
    ----------
    held_bytes
        (S, M): KV the stage holds once chunk j has started, were nothing spilled.
    spillable_bytes
        (S, M): KV of each chunk that may be spilled.
    free_bytes
        (D,): memory of the die beside its static part.
    host_bytes
        Memory of each host, 0 without one.
    cost_s_per_byte
        (S, D+1): link time of moving a byte from a stage to a creditor; +inf forbids the pair.
    rows
        Moments to keep (see ``rows``).
    die_of_stage
        (S,): die of each stage; empty where they are the same.
    """

    held_bytes: Amounts
    spillable_bytes: Amounts
    free_bytes: Amounts
    host_bytes: float
    cost_s_per_byte: Amounts
    rows: Sequence[MemoryRow]
    die_of_stage: tuple[int, ...] = ()

    @property
    def dies(self) -> tuple[int, ...]:
        """Die of each stage."""
        return self.die_of_stage or tuple(range(len(self.held_bytes)))

    def stages_of(self, die: int) -> list[int]:
        """Stages of a die."""
        return [stage for stage, home in enumerate(self.dies) if home == die]

    def spare_bytes(self, row: MemoryRow) -> float:
        """What is free on the row's die beside all KV of its own stages, were nothing spilled; below 0 some must be."""
        held = sum(float(self.held_bytes[stage, chunk]) for stage, chunk in enumerate(row.held) if chunk >= 0)
        return float(self.free_bytes[row.die]) - held


def always_too_full(data: SpillProblem) -> bool:
    """Whether some die cannot hold a chunk even if all that may leave has left (the program has no such row)."""
    return any(
        data.spare_bytes(row) + sum(float(data.spillable_bytes[s, : left + 1].sum()) for s, left in enumerate(row.left))
        < 0
        for row in data.rows
    )
