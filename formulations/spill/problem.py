"""The spill program on plain arrays: what each stage holds, what may leave, and where it may go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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


def always_too_full(data: SpillProblem) -> bool:
    """Whether some die cannot hold a chunk even if all that may leave has left (the program has no such row)."""
    for row in data.rows:
        leaving = float(data.spillable_bytes[row.stage, : row.left + 1].sum())
        if data.held_bytes[row.stage, row.chunk] - leaving > data.free_bytes[row.stage]:
            return True
    return False
