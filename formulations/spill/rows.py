"""What each die holds at each of its starts, as rows over cumulative spill (rule ``memory_admission``).

A timeline of starts and ends, from a replay without a memory limit, says which chunks are where at each moment. Let
moved[s, k, j] be the bytes of chunks 0..j of one wave of stage s that creditor k keeps. When die d starts its chunk j,
it holds its own KV up to chunk j without what has left, and what it hosts for the others until its next start.
Waves look alike once the pipe is full, so most rows repeat and only the largest of comparable ones are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MemoryRow:
    """One moment at one die.

    Attributes
    ----------
    stage
        Stage whose die this is.
    chunk
        Own chunk that starts: the die holds its own KV up to it.
    left
        Chunks 0..left of the same wave have left for their creditors; -1: none.
    hosted
        Per stage: chunks 0..hosted[s] of its present wave are hosted wherever they were sent; -1: none. Shape (N,).
    """

    stage: int
    chunk: int
    left: int
    hosted: tuple[int, ...]


def memory_rows(start_s: Times, end_s: Times, transfer_s: Times, slack_s: float) -> list[MemoryRow]:
    """Rows of every die at the beginning and at the end of each of its tasks, dominated ones left out.

    Parameters
    ----------
    start_s, end_s
        Shape (W, N, M): starts and ends of the tasks, all waves with the same chunks.
    transfer_s
        Shape (N, M): time for the KV of a chunk to leave.
    slack_s
        What happens at most this much after a start counts as before it, for the die would wait so long; what happens
        so shortly before the next start counts as after it, for it can wait so long.
    """
    _, stages, chunks = start_s.shape
    ends = [np.sort(end_s[:, stage, :].ravel()) for stage in range(stages)]
    rows: set[MemoryRow] = set()
    for stage in range(stages):
        starts = start_s[:, stage, :].ravel()
        gone = np.maximum.accumulate(end_s[:, stage, :] + transfer_s[stage], axis=1)
        begins = starts + slack_s
        for moments in (begins, np.maximum(begins, np.append(starts[1:], end_s[-1, stage, -1]) - slack_s)):
            # Ends count tasks of all waves; within a wave the last chunk's end releases everything.
            ended = np.stack([np.searchsorted(ends[s], moments, side="right") for s in range(stages)], axis=1)
            hosted = np.where(ended % chunks == 0, -1, ended % chunks - 1)
            hosted[:, stage] = -1
            for task, moment in enumerate(moments):
                wave, chunk = divmod(task, chunks)
                left = int(np.searchsorted(gone[wave], moment, side="right")) - 1
                rows.add(MemoryRow(stage, chunk, min(left, chunk - 1), tuple(hosted[task].tolist())))
    return _undominated(rows)


def _undominated(rows: set[MemoryRow]) -> list[MemoryRow]:
    """Drop rows that ask no more than another one of the same die and chunk."""
    kept: list[MemoryRow] = []
    groups: dict[tuple[int, int], list[MemoryRow]] = {}
    for row in sorted(rows, key=lambda r: (r.stage, r.chunk, r.left, r.hosted)):
        groups.setdefault((row.stage, row.chunk), []).append(row)
    for group in groups.values():
        hosted = np.array([row.hosted for row in group])
        left = np.array([row.left for row in group])
        for index, row in enumerate(group):
            covers = (hosted >= hosted[index]).all(axis=1) & (left <= left[index])
            covers[index] = False
            if not covers.any():
                kept.append(row)
    return kept
