"""What a replay says to people: latencies, bubbles, memory, traffic, and why it got stuck (spec section 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from solver.simulation.engine import Run, run
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import Float64s, Int64s, Program
from solver.simulation.waiting import describe


@dataclass(frozen=True)
class Bubbles:
    """Idle shares of the dies in use; compute seconds count as busy, stalls and waits do not.

    Parameters
    ----------
    makespan
        1 - busy / (dies * makespan).
    span
        1 - busy / sum over dies of (last end - first start).
    steady
        1 - busy inside [latest first start, earliest last end] / (dies * its length); None if that is empty. Compute is
        taken to run without a break from the task's start (without overlap: from the arrival of its fetches).
    """

    makespan: float | None
    span: float | None
    steady: float | None


@dataclass(frozen=True)
class LinkUse:
    """Bytes that a directed link carried, and how long it was held."""

    name: str
    size_bytes: float
    busy_s: float


@dataclass(frozen=True, eq=False)
class Replay:
    """Outcome of one run.

    Times are None where the run deadlocked.

    Parameters
    ----------
    arrivals_s
        Arrival of each request, by wave.
    """

    program: Program
    run: Run
    arrivals_s: tuple[Float64s, ...]

    @property
    def deadlock(self) -> bool:
        """Whether tasks remain that nothing will ever start."""
        return self.run.deadlock

    @property
    def reason(self) -> str | None:
        """The deadlock in words, with the stages that wait and the bytes that they wait for; None without one."""
        if not self.deadlock:
            return None
        return describe(self.program, self.run.waiting, int((self.run.end_ps < 0).sum()))

    @cached_property
    def completion_s(self) -> Float64s | None:
        """End of the last chunk of each wave at the last stage. Shape [waves]."""
        return None if self.deadlock else self._completion_ps / PICOSECONDS_PER_S

    @cached_property
    def latency_s(self) -> Float64s | None:
        """From arrival to completion, for each request, wave by wave. Shape [requests]."""
        if self.deadlock:
            return None
        arrived = [np.rint(arrivals * PICOSECONDS_PER_S).astype(np.int64) for arrivals in self.arrivals_s]
        waited = [done - arrival for done, arrival in zip(self._completion_ps, arrived, strict=True)]
        return np.concatenate(waited) / PICOSECONDS_PER_S

    @property
    def mean_latency_s(self) -> float | None:
        """Mean over requests."""
        return None if self.latency_s is None else float(self.latency_s.mean())

    @property
    def p50_latency_s(self) -> float | None:
        """Median, nearest rank."""
        return self._percentile(50)

    @property
    def p95_latency_s(self) -> float | None:
        """95th percentile, nearest rank."""
        return self._percentile(95)

    @property
    def p99_latency_s(self) -> float | None:
        """99th percentile, nearest rank."""
        return self._percentile(99)

    @property
    def makespan_s(self) -> float | None:
        """From time 0 to the end of the last task."""
        return None if self.deadlock else int(self.run.end_ps.max()) / PICOSECONDS_PER_S

    @property
    def throughput_rps(self) -> float | None:
        """Requests per second of makespan; None if that is zero."""
        requests = sum(len(arrivals) for arrivals in self.arrivals_s)
        return requests / self.makespan_s if self.makespan_s else None

    @cached_property
    def bubbles(self) -> Bubbles | None:
        """Idle shares; None after a deadlock."""
        return None if self.deadlock else _bubbles(self.program, self.run)

    @property
    def peak_memory_bytes(self) -> list[float]:
        """Most that the die of each stage held, static included. Length N."""
        return self._per_stage(self.run.peak_units, self.program.units_per_byte)

    @property
    def host_peak_bytes(self) -> list[float]:
        """Most that the host memory of each stage's die held. Length N."""
        return self._per_stage(self.run.host_peak_units, self.program.units_per_byte)

    @property
    def stall_s(self) -> list[float]:
        """Service time imposed on the die of each stage. Length N."""
        return self._per_stage(self.run.stall_ps, PICOSECONDS_PER_S)

    @property
    def links(self) -> list[LinkUse]:
        """Every link of the network, host links last."""
        rows = zip(self.run.link_units.tolist(), self.run.link_busy_ps.tolist(), strict=True)
        name, per_byte = self.program.network.link_name, self.program.units_per_byte
        return [
            LinkUse(name(link), units / per_byte, busy_ps / PICOSECONDS_PER_S)
            for link, (units, busy_ps) in enumerate(rows)
        ]

    @property
    def byte_hops(self) -> float:
        """Bytes times hops over all transfers; host traffic counts nothing."""
        return self.run.byte_hops_units / self.program.units_per_byte

    @cached_property
    def _completion_ps(self) -> Int64s:
        # Tasks are numbered wave by wave, and nothing of a wave ends after its last chunk at the last stage.
        first = np.flatnonzero(np.diff(self.program.wave, prepend=-1))
        completion: Int64s = np.maximum.reduceat(self.run.end_ps, first)
        return completion

    def _percentile(self, percent: int) -> float | None:
        if self.latency_s is None:
            return None
        rank = math.ceil(percent * len(self.latency_s) / 100)
        return float(np.sort(self.latency_s)[rank - 1])

    def _per_stage(self, per_die: Int64s, divisor: int) -> list[float]:
        return [amount / divisor for amount in per_die[self.program.die_of_stage()].tolist()]


def replay(program: Program, requests: Sequence[ArrayLike], *, traced: bool = False) -> Replay:
    """Run a program.

    Parameters
    ----------
    requests
        For each wave, the arrival times of its requests in seconds.
    traced
        Whether to keep what a trace needs.

    Raises
    ------
    ValueError
        If ``requests`` does not have one non-empty entry for each wave.
    """
    arrivals = tuple(np.asarray(wave, dtype=np.float64) for wave in requests)
    if len(arrivals) != program.waves or not all(len(wave) for wave in arrivals):
        raise ValueError(f"arrivals of the requests of each of the {program.waves} waves are needed")
    return Replay(program, run(program, traced=traced), arrivals)


def _bubbles(program: Program, outcome: Run) -> Bubbles:
    dies, first = program.dies, program.die_ptr[:-1]
    at_die = program.die_tasks
    busy = int(program.duration_ps.sum())
    makespan = int(outcome.end_ps.max())
    begins = outcome.start_ps[at_die[first]]
    ends = outcome.end_ps[at_die[program.die_ptr[1:] - 1]]
    low, high = int(begins.max()), int(ends.min())
    computed = outcome.compute_start_ps + program.duration_ps
    inside = np.minimum(computed, high) - np.maximum(outcome.compute_start_ps, low)
    return Bubbles(
        makespan=_idle_share(busy, dies * makespan),
        span=_idle_share(busy, int((ends - begins).sum())),
        steady=_idle_share(int(np.maximum(inside, 0).sum()), dies * (high - low)),
    )


def _idle_share(busy: int, available: int) -> float | None:
    return 1 - busy / available if available > 0 else None
