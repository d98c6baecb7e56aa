"""Who lends to whom in a dynamic rematching, in lockstep: pairs by load, looked at anew every few chunks.

MOCAP's paper (arXiv 2606.22968, Fig. 5 b) names the idea and does not follow it: always pair the most loaded stage with
the least loaded one, and move what was lent before whenever a pair changes. We count in slots: stage s runs chunk i of
a wave in slot s + i, waves follow one another, so loads repeat every M slots. A stage keeps its creditor for ``span``
chunks of its own. With M = N and a span n of at most M/3, chunks i .. i+n-1 of a stage meet chunks M-n-i .. M-1-i of
its creditor: together they hold at most M + n chunks, and lengths grow by 2M/(M + n). With a span of M/2 a stage lends
once, at the end of its wave, so nothing moves; its creditor starts a wave then and need not lend to it in turn. Such
rings reach 3/2 of the length (what is lent and as many chunks of the creditor's fill a die: 2(M - C) = C), where mutual
cross-half pairs reach 4/3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NOBODY = -1


class Loads(NamedTuple):
    """What stages hold and have room for, in any one unit.

    Parameters
    ----------
    held
        KV of a wave from the start of chunk i on. Shape [N, M].
    lendable
        The part of it that may be elsewhere: of chunks that are over when chunk i starts. Shape [N, M].
    room
        Memory for KV. Shape [N].
    hops
        Between the dies of two stages. Shape [N, N].
    """

    held: Int64s
    lendable: Int64s
    room: Int64s
    hops: Int64s


@dataclass(frozen=True)
class Lending:
    """A rematching of one wave.

    Attributes
    ----------
    lent
        What is away while chunk i runs. Shape [N, M].
    creditor
        Where it is then; ``NOBODY`` where nothing is lent. Shape [N, M].
    groups
        First and last chunk of each run of chunks in which nothing that was lent moves.
    """

    lent: Int64s
    creditor: Int64s
    groups: tuple[tuple[int, int], ...]

    @property
    def moved(self) -> int:
        """What moves from one creditor to another, in all of a wave."""
        return sum(int(self.lent[:, first - 1].sum()) for first, _ in self.groups[1:])


def rematched(loads: Loads, span: int, ahead: int = 0) -> Lending | None:
    """Lend what does not fit, to the least loaded stage that is free for the next ``span`` chunks.

    Stages that lend most choose first; a stage has one partner at a time, and does not lend and borrow at once. Equal
    loads: the nearest, then the first.

    Parameters
    ----------
    ahead
        Chunks by which memory is cleared early, so that no chunk waits for a write.

    Returns
    -------
    Lending or None
        None where a stage finds no partner with room.
    """
    stages, chunks = loads.held.shape
    later = np.minimum(np.arange(chunks) + ahead, chunks - 1)
    lent = np.clip(loads.held[:, later] - loads.room[:, None], 0, loads.lendable)
    lent = np.maximum.accumulate(lent, axis=1)
    creditor = np.full((stages, chunks), NOBODY, dtype=np.int64)
    engaged = np.zeros((stages, chunks), dtype=np.bool_)  # by slot, modulo M
    lends = np.zeros((stages, chunks), dtype=np.bool_)
    for stage in range(stages):
        lends[stage, (stage + np.flatnonzero(lent[stage])) % chunks] = True
    todo = [
        (-int(lent[stage, min(first + span, chunks) - 1]), stage, first)
        for stage in range(stages)
        for first in range(0, chunks, span)
    ]
    for most, stage, first in sorted(todo):
        if most == 0:
            break
        own = first + np.flatnonzero(lent[stage, first : first + span])
        slots = (stage + own) % chunks
        found = _least_loaded(loads, stage, slots, lent[stage, own], engaged | lends)
        if found is None:
            return None
        engaged[found, slots] = True
        creditor[stage, own] = found
    return Lending(lent, creditor, _groups(lent, creditor))


def _least_loaded(loads: Loads, stage: int, slots: Int64s, lent: Int64s, taken: Bools) -> int | None:
    """The stage that can hold most beside its own KV in these slots; None if none has room."""
    stages, chunks = loads.held.shape
    best: tuple[int, int, int] | None = None
    for other in range(stages):
        if other == stage or taken[other, slots].any():
            continue
        beside = loads.held[other, (slots - other) % chunks] + lent
        if (beside > loads.room[other]).any():
            continue
        key = (int((beside - loads.room[other]).max()), int(loads.hops[stage, other]), other)
        best = key if best is None else min(best, key)
    return None if best is None else best[2]


def _groups(lent: Int64s, creditor: Int64s) -> tuple[tuple[int, int], ...]:
    """Cut where a stage that has lent something changes its creditor."""
    changes = (lent[:, :-1] > 0) & (creditor[:, 1:] != creditor[:, :-1])
    firsts = [0, *(np.flatnonzero(changes.any(axis=0)) + 1).tolist()]
    return tuple((first, stop - 1) for first, stop in zip(firsts, [*firsts[1:], lent.shape[1]], strict=True))
