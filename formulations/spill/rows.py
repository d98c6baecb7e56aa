"""What each die holds at each of its starts, as rows over cumulative spill (rule ``memory_admission``).

A timeline of starts and ends, from a replay without a memory limit, says which chunks are where at each moment. Let
moved[s, k, j] be the bytes of chunks 0..j of one wave of stage s that the die k keeps. When a die starts a chunk, it
holds the KV of its own stages (two in a V) up to their present chunks without what has left, and what it hosts for the
others until its next start. Waves look alike once the pipe is full, so most rows repeat and only the largest of
comparable ones are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MemoryRow:
    """One moment at one die. Chunks count in the present wave of each stage; -1: none.

    Attributes
    ----------
    die
        Whose memory this is.
    held
        Per stage: chunks 0..held[s] have been started here; -1 for stages of other dies. Shape (S,).
    left
        Per stage: chunks 0..left[s] of these have left for their creditors. Shape (S,).
    hosted
        Per stage of the other dies: chunks 0..hosted[s] are hosted wherever they were sent. Shape (S,).
    """

    die: int
    held: tuple[int, ...]
    left: tuple[int, ...]
    hosted: tuple[int, ...]


def memory_rows(
    start_s: Times, end_s: Times, transfer_s: Times, slack_s: float, dies: Sequence[int] | None = None
) -> list[MemoryRow]:
    """Rows of every die at the beginning and at the end of each of its tasks, dominated ones left out.

    Parameters
    ----------
    start_s, end_s
        Shape (W, S, M): starts and ends of the tasks, all waves with the same chunks.
    transfer_s
        Shape (S, M): time for the KV of a chunk to leave.
    slack_s
        What happens at most this much after a start counts as before it, for the die would wait so long; what happens
        so shortly before the next start counts as after it, for it can wait so long.
    dies
        Die of each stage; one each unless given.
    """
    waves, stages, chunks = start_s.shape
    home = np.arange(stages) if dies is None else np.asarray(dies)
    starts = [np.sort(start_s[:, stage, :].ravel()) for stage in range(stages)]
    ends = [np.sort(end_s[:, stage, :].ravel()) for stage in range(stages)]
    gone = np.maximum.accumulate(end_s + transfer_s, axis=2)
    rows: set[MemoryRow] = set()
    for die in np.unique(home).tolist():
        own = np.flatnonzero(home == die)
        begun = np.sort(start_s[:, own, :].ravel())
        begins = begun + slack_s
        done = np.append(begun[1:], end_s[-1, own, -1].max())
        # A wave of a stage is held from its first start on, and until the next start here after its end.
        started = np.stack([np.searchsorted(starts[s], begun, side="right") for s in own], axis=1)
        before = np.stack([np.searchsorted(ends[s], begun, side="right") for s in own], axis=1)
        held = np.full((len(begun), stages), -1)
        held[:, own] = np.where((started == before) & (started % chunks == 0), -1, (started - 1) % chunks)
        wave = (started - 1) // chunks
        for moments in (begins, np.maximum(begins, done - slack_s)):
            # Ends count tasks of all waves; within a wave the last chunk's end releases everything.
            ended = np.stack([np.searchsorted(ends[s], moments, side="right") for s in range(stages)], axis=1)
            hosted = np.where(ended % chunks == 0, -1, ended % chunks - 1)
            hosted[:, own] = -1
            left = np.full((len(begun), stages), -1)
            for column, stage in enumerate(own):
                reached = (gone[np.clip(wave[:, column], 0, waves - 1), stage] <= moments[:, None]).sum(axis=1) - 1
                # The chunk in work has not left, and without a wave nothing has.
                left[:, stage] = np.minimum(reached, held[:, stage] - (started > before)[:, column])
            for number in range(len(begun)):
                rows.add(MemoryRow(die, *(tuple(each[number].tolist()) for each in (held, left, hosted))))
    return _undominated(rows)


def _undominated(rows: set[MemoryRow]) -> list[MemoryRow]:
    """Drop rows that ask no more than another one of the same die and chunks."""
    kept: list[MemoryRow] = []
    groups: dict[tuple[int, tuple[int, ...]], list[MemoryRow]] = {}
    for row in sorted(rows, key=lambda r: (r.die, r.held, r.left, r.hosted)):
        groups.setdefault((row.die, row.held), []).append(row)
    for group in groups.values():
        hosted = np.array([row.hosted for row in group])
        left = np.array([row.left for row in group])
        for index, row in enumerate(group):
            covers = (hosted >= hosted[index]).all(axis=1) & (left <= left[index]).all(axis=1)
            covers[index] = False
            if not covers.any():
                kept.append(row)
    return kept
