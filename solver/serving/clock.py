"""When an iteration ends on each stage, as soon as it is launched: stages and links are first in, first out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solver.simulation.network import Network, whole_ps


class PipelineClock:
    """Times of iterations that pass the stages one after the other, as rules ``die_serial`` and ``link_fifo`` say.

    Stage s is on die s of the network. Transfers are reserved launch by launch; the replay reserves them in the order
    in which they are requested, which is another one only where hops of several stages share a link.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.stages = len(network.dies)
        self.free_ps = [0] * self.stages
        self._link_free_ps: dict[int, int] = {}

    def launch(
        self, from_ps: int, durations_ps: Sequence[int], send_bytes: int, ready_ps: Sequence[int] = ()
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Durations and ends of an iteration on each stage if it may start at stage 0 from ``from_ps`` on.

        Where a stage is ready only later, see ``ready_ps``, its task waits that long first: the duration grows by it.
        """
        durations, ends = [], []
        at = from_ps
        for stage, duration in enumerate(durations_ps):
            begin = max(at, self.free_ps[stage])
            end = max(begin, ready_ps[stage] if ready_ps else 0) + duration
            self.free_ps[stage] = end
            durations.append(end - begin)
            ends.append(end)
            if stage + 1 < self.stages:
                at = self._arrival_ps(stage, end, send_bytes)
        return tuple(durations), tuple(ends)

    def _arrival_ps(self, stage: int, ready_ps: int, size_bytes: int) -> int:
        network = self.network
        route = network.route(stage, stage + 1)
        start = max([ready_ps, *(self._link_free_ps.get(link, 0) for link in route)])
        seconds = float(np.float64(size_bytes) / network.bottleneck_bytes_per_s[stage, stage + 1])
        free = start + whole_ps(seconds, integer_ns=network.integer_ns)
        for link in route:
            self._link_free_ps[link] = free
        return free + int(network.hops[stage, stage + 1]) * network.hop_latency_ps
