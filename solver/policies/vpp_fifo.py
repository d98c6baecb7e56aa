"""One order of visits for all dies of a V, as an engine issues them (vllm-project/vllm-ascend 11976, 14945, 16618).

A queue holds the chunks whose second visit is not issued yet, at most Q of them. In each step the engine issues the
second visit of the oldest of them if the queue is full or its first visit is done, else it admits the next chunk that
has arrived. Every die runs all visits in the order of their issue, which is H_1 .. H_Q, T_1, H_{Q+1}, T_2 and so on
where all chunks are there from the start. The fold die runs both visits of a chunk together.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from solver.simulation.network import Network, whole_ps
from solver.simulation.program import Int32s, Int64s, Program


def single_fifo(program: Program, heads: int, *, blocking: bool = False) -> Int32s:
    """``die_tasks`` of a V-shaped program whose dies all run visits in the order of their issue. Shape [T].

    Parameters
    ----------
    heads
        Q, chunks whose second visit is not issued yet.
    blocking
        Whether a die that sends stands still until the arrival, which decides when first visits are done.
    """
    stages, dies = program.stages, program.dies
    chunks = np.flatnonzero(program.stage == 0)
    number, arrivals_ps = np.arange(len(chunks)), program.earliest_ps[chunks]
    if arrivals_ps.min() == arrivals_ps.max():
        at = np.argsort(np.concatenate((2 * number, 2 * (number + heads) - 1)))
    else:
        at = np.array(_Issue(program, blocking).visits(chunks, heads))
    orders = [np.concatenate((chunks + r, chunks + stages - 1 - r))[at] for r in range(dies - 1)]
    fold = np.stack((chunks + dies - 1, chunks + dies), axis=1).ravel()
    return np.concatenate((*orders, fold)).astype(np.int32)


class _Issue:
    """The engine's steps, with the times at which visits end; links are free whenever a die sends."""

    def __init__(self, program: Program, blocking: bool) -> None:
        self.dies, self.blocking = program.dies, blocking
        self.die, self.duration_ps = program.die.tolist(), program.duration_ps.tolist()
        self.arrivals_ps, self.lag_ps = program.earliest_ps.tolist(), hand_off_ps(program).tolist()
        self.free_ps = [0] * program.dies

    def visits(self, chunks: Int64s, heads: int) -> list[int]:
        """Numbers of chunks as their first visits are issued, M plus a number for its second visit."""
        issued: list[int] = []
        waiting: deque[tuple[int, int, int]] = deque()
        first = chunks.tolist()
        now, admitted = 0, 0
        while admitted < len(first) or waiting:
            arrival_ps = self.arrivals_ps[first[admitted]] if admitted < len(first) else None
            if waiting and (len(waiting) == heads or waiting[0][1] <= now):
                number, _, at_ps = waiting.popleft()
                issued.append(len(first) + number)
                self._run(first[number] + self.dies + 1, self.dies - 1, at_ps)
            elif arrival_ps is not None and arrival_ps <= now:
                issued.append(admitted)
                done_ps = self._run(first[admitted], self.dies, arrival_ps)
                waiting.append((admitted, done_ps, self._run(first[admitted] + self.dies, 1, done_ps)))
                admitted += 1
            else:
                done = [done_ps for _, done_ps, _ in waiting]
                now = min(done if arrival_ps is None else [*done, arrival_ps])
        return issued

    def _run(self, task: int, count: int, at_ps: int) -> int:
        """A chunk's tasks on so many stages, one after the other; when it arrives behind them."""
        for each in range(task, task + count):
            die = self.die[each]
            end_ps = max(self.free_ps[die], at_ps) + self.duration_ps[each]
            at_ps = end_ps + self.lag_ps[each]
            self.free_ps[die] = at_ps if self.blocking else end_ps
        return at_ps


def hand_off_ps(program: Program) -> Int64s:
    """Time from each task's end to the arrival of its activation where no other transfer is in the way. Shape [T]."""
    found = np.zeros_like(program.duration_ps)
    known: dict[tuple[int, int, int], int] = {}
    for task in np.flatnonzero(program.successor >= 0).tolist():
        a, b = int(program.die[task]), int(program.die[program.successor[task]])
        if a != b:
            key = a, b, int(program.send_units[task])
            if key not in known:
                known[key] = _alone_ps(program.network, a, b, key[2] / program.units_per_byte)
            found[task] = known[key]
    return found


def _alone_ps(network: Network, a: int, b: int, size_bytes: float) -> int:
    """Length of a transfer over free links (rule ``link_fifo``)."""
    speeds = [float(network.bottleneck_bytes_per_s[a, b])]
    if network.store_and_forward:
        speeds = [float(network.link_bytes_per_s[link]) for link in network.route(a, b)]
    sending = sum(whole_ps(size_bytes / speed, integer_ns=network.integer_ns) for speed in speeds)
    return sending + int(network.hops[a, b]) * network.hop_latency_ps
