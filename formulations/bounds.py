"""Lower bounds on the time objectives: no plan of the plain schedule, replayed by section 3, is better.

Every bound here is a path through the tasks. Let t_s(i) be the compute time of chunk i on stage s and x(i) the time to
hand chunk i to a neighbouring die. Rules ``die_serial`` and ``activation_ready`` alone give, for any waves v <= w, any
chunks l <= m of wave v and any stages a <= b,

    completion(w) >= ready(v) + sum_{i<l} t_0(i) + sum_{s<a} (t_s(l) + x(l))      stage 0, then chunk l enters a
                     + sum_{l<=i<m} t_a(i) + sum_{a<=s<b} (t_s(m) + x(m))         a works, chunk m crosses to b
                     + sum_{i>=m} t_b(i) + sum_{v<k<=w} sum_i t_b(i)              b works, through the later waves
                     + sum_{s>b} (x(M-1) + t_s(M-1)),                             the last chunk leaves

because each term waits for the one before it: stalls, fetches, waits for memory, link contention and the window only
add to it. Let a and b be the first and last of the stages that have the most work, so that t_a = t_b =: t. Then the
right side is the chunk problem A*sum t + Z*max u, u being the crossing of m, with extra costs on some chunks, whose
minimum over all admissible cuts ``solve_chunks`` finds or bounds. The entering chunk l is the one that covers a given
quantum; a mean over quanta is a bound too, and a better one where stages before a are many: a single small first chunk
cannot lower it (``entry``).

Stages use the fastest die there is and transfers the fastest link and one hop, so the bound holds for every placement.
Objectives are increasing in the completions: a weighted sum of completions is at least the weighted sum of their bounds
under common cuts. The replay rounds each duration to a picosecond, which may shorten a path by half of that for each of
its parts; so much is taken off.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from formulations.admissible import admissible_chunk_tokens
from formulations.chunks.exact import path_value, solve_chunks
from formulations.entry import ChunkProblem, best_mixture
from formulations.stage_path import StagePath, heaviest_stages, stage_path
from formulations.tables import StageTables, Table
from instances.instance import Instance
from instances.workload import Shape, Wave, form_waves

_TOLERANCE = 1e-7
"""Relative accuracy of a chunk problem's bound; a thousandth of what counts as optimal."""


@dataclass(frozen=True)
class BatchBound:
    """What is proved for one batch size.

    Attributes
    ----------
    bound_s, trivial_s
        The bound above, and the bound without the crossing of the slowest chunk; None: no plan of this batch exists.
    cuts
        The relaxation's own minimisers, end positions per request shape: a good place to start a search.
    other_cuts
        Minimisers of all relaxations that were solved, for the same purpose.
    reason
        Why no plan exists, where that is proved.
    """

    batch: int
    bound_s: float | None
    trivial_s: float | None
    cuts: dict[Shape, list[int]]
    other_cuts: dict[Shape, list[list[int]]] = field(default_factory=dict)
    reason: str | None = None

    def less(self, rounding_s: float) -> BatchBound:
        """Bounds with the rounding of durations taken off, and that of the sums behind them."""

        def lowered(bound_s: float | None) -> float | None:
            return None if bound_s is None else bound_s - rounding_s - 1e-12 * abs(bound_s)

        return replace(self, bound_s=lowered(self.bound_s), trivial_s=lowered(self.trivial_s))


class TimeBounds:
    """Bounds of one instance, batch by batch.

    Parameters
    ----------
    instance
        Objective mean_latency, makespan or p95_latency.
    chunks
        Fixed number of chunks, or None for 1..max_chunks.
    most_chunks
        Only plans with at most so many chunks; for a search, as ``largest_chunk_tokens`` of ``batch``.
    """

    def __init__(
        self, instance: Instance, tables: StageTables, chunks: int | None = None, most_chunks: int | None = None
    ) -> None:
        self.instance = instance
        self.tables = tables
        most = instance.pipeline.max_chunks if most_chunks is None else most_chunks
        self.fewest, self.most = (1, most) if chunks is None else (chunks, chunks)

    def batch(
        self,
        batch: int,
        deadline_s: float | None = None,
        *,
        largest_chunk_tokens: int | None = None,
        enough_s: float = math.inf,
        thorough: bool = True,
    ) -> BatchBound:
        """Bound for plans with this batch.

        Parameters
        ----------
        deadline_s
            Seconds for the search over caps; when they are over, the bound is weaker but valid.
        largest_chunk_tokens
            Only plans without a larger chunk; for a search, which wants the cuts (the bound holds for these plans).
        thorough
            Whether to look for the best mixture of entering quanta, or to take the first chunk.
        enough_s
            A trivial bound of at least this is returned as it is.
        """
        requests = self.instance.workload.all_requests()
        waves = form_waves(requests, batch)
        heaviest = heaviest_stages(self.instance, waves)
        paths: dict[tuple[Shape, int], StagePath] = {}
        for key in dict.fromkeys((wave.shape, wave.size) for wave in waves):
            shape, size = key
            limit, reason = admissible_chunk_tokens(self.instance, size, shape)
            limit = limit if largest_chunk_tokens is None else min(limit, largest_chunk_tokens)
            if reason is not None:
                return BatchBound(batch, None, None, {}, reason=reason)
            if self.most * limit < shape[0] - shape[1]:
                reason = f"memory admits chunks of at most {limit} tokens at batch {size}, and {self.most} of them do"
                return BatchBound(batch, None, None, {}, reason=f"{reason} not cover {shape[0] - shape[1]} tokens")
            paths[key] = stage_path(self.tables, size, shape, limit, heaviest)
        work = {key: self._least_work(path, key[0]) for key, path in paths.items()}
        if any(math.isinf(seconds) for seconds in work.values()):
            return BatchBound(batch, None, None, {}, reason="no admissible chunk list has an allowed number of chunks")
        starts = _first_waves(waves, [work[wave.shape, wave.size] for wave in waves])
        if self.instance.objective == "p95_latency" and len({request.arrival_s for request in requests}) > 1:
            found = self._percentile(batch, waves, starts, paths, work)
        else:
            found = self._weighted(batch, waves, starts, paths, deadline_s, enough_s, thorough)
        # Rounded once each: the arrival, the tasks of a path, and for each transfer the duration and the latency. Then
        # the replay's clock and the arrivals are floats of seconds, whose last digits matter late in a long trace.
        parts = 1 + len(waves) * self.most + 3 * (self.instance.pipeline.stages - 1)
        latest_s = max(wave.ready_s for wave in waves)
        return found.less(0.5e-12 * parts + 2**-51 * latest_s)

    def _weighted(
        self,
        batch: int,
        waves: list[Wave],
        starts: list[int],
        paths: dict[tuple[Shape, int], StagePath],
        deadline_s: float | None,
        enough_s: float,
        thorough: bool,
    ) -> BatchBound:
        """A weighted sum of completions: one chunk problem for each request shape."""
        weights = self._weights(waves)
        # Differences first: late arrivals would swallow the digits of short latencies.
        constant = math.fsum(
            weight * math.fsum(waves[start].ready_s - since for since in self._since(wave)) / wave.size
            for weight, wave, start in zip(weights, waves, starts, strict=True)
        )
        problems: dict[Shape, ChunkProblem] = {}
        for w, (weight, start) in enumerate(zip(weights, starts, strict=True)):
            for k in range(start, w + 1) if weight else ():
                shape, size = waves[k].shape, waves[k].size
                problem = problems.setdefault(shape, ChunkProblem(self.tables.grid(shape).quanta))
                problem.add(paths[shape, size], weight, first=k == start, last=k == w)
        first = {shape: problem.tables(problem.first_quantum()) for shape, problem in problems.items()}
        trivial = constant + sum(_without_crossing(*table, self.most, self.fewest) for table in first.values())
        if trivial >= enough_s:
            return BatchBound(batch, trivial, trivial, {})
        value = constant
        cuts: dict[Shape, list[int]] = {}
        others: dict[Shape, list[list[int]]] = {}
        for shape, problem in problems.items():
            clock = None if deadline_s is None else time.monotonic() + deadline_s / len(problems)
            best, cuts[shape] = self._solve(*first[shape], clock)
            others[shape] = [cuts[shape]]
            if thorough:
                solve = partial(self._solve, clock=clock)
                best, cuts[shape], others[shape] = best_mixture(problem, solve, (best, cuts[shape]), clock)
            value += best
        return BatchBound(batch, value, min(trivial, value), cuts, others)

    def _solve(self, t: Table, u: Table, clock: float | None) -> tuple[float, list[int]]:
        left = None if clock is None else max(0.0, clock - time.monotonic())
        found = solve_chunks(t, u, 1.0, 1.0, self.most, self.fewest, deadline_s=left, tolerance=_TOLERANCE)
        assert found.bound is not None
        return found.bound, found.cuts

    def _since(self, wave: Wave) -> tuple[float, ...]:
        """When the clock of the objective starts for each request of a wave."""
        return (0.0,) * wave.size if self.instance.objective == "makespan" else wave.arrivals_s

    def _weights(self, waves: list[Wave]) -> list[float]:
        """Weight of each wave's completion in the objective."""
        total = sum(wave.size for wave in waves)
        if self.instance.objective == "mean_latency":
            return [wave.size / total for wave in waves]
        # Waves end in order, so with equal arrivals a rank belongs to one wave; the makespan is the last one's end.
        rank = total if self.instance.objective == "makespan" else math.ceil(0.95 * total)
        ends = np.cumsum([wave.size for wave in waves])
        return [float(w == int(np.searchsorted(ends, rank))) for w in range(len(waves))]

    def _percentile(
        self,
        batch: int,
        waves: list[Wave],
        starts: list[int],
        paths: dict[tuple[Shape, int], StagePath],
        work: dict[tuple[Shape, int], float],
    ) -> BatchBound:
        """Nearest rank is increasing in every latency, so the rank of the bounds bounds the rank.

        The crossing happens in wave v, whose cuts minimise it; each later wave adds at least its least work.
        """
        entry: dict[tuple[Shape, int], float] = {}
        cuts: dict[Shape, list[int]] = {}
        for (shape, size), path in paths.items():
            problem = ChunkProblem(self.tables.grid(shape).quanta)
            problem.add(path, 1.0, first=True, last=False)
            bound, cuts[shape] = self._solve(*problem.tables(problem.first_quantum()), None)
            entry[shape, size] = bound
        latencies, trivial = [], []
        for w, (wave, start) in enumerate(zip(waves, starts, strict=True)):
            first, later = waves[start], waves[start + 1 : w + 1]
            behind = first.ready_s + sum(work[k.shape, k.size] for k in later)
            latencies += [behind + entry[first.shape, first.size] - arrival for arrival in wave.arrivals_s]
            trivial += [behind + work[first.shape, first.size] - arrival for arrival in wave.arrivals_s]
        return BatchBound(batch, nearest_rank(latencies, 0.95), nearest_rank(trivial, 0.95), cuts)

    def _least_work(self, path: StagePath, shape: Shape) -> float:
        least = path_value(path.work, path.work, math.inf, self.most, self.fewest)
        return math.inf if least is None else least


def nearest_rank(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile: the value at rank ceil(share * n)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _without_crossing(t: Table, u: Table, most: int, fewest: int) -> float:
    """The work alone, with the shortest crossing that any chunk has: the trivial bound of the spec."""
    least = path_value(t, t, math.inf, most, fewest)
    assert least is not None
    return least + float(u[np.isfinite(u)].min())


def _first_waves(waves: list[Wave], work_s: list[float]) -> list[int]:
    """For each wave w the wave v that makes ready(v) + work of v..w largest: any choice is valid."""
    starts: list[int] = []
    best, reach = 0, -math.inf
    for w, wave in enumerate(waves):
        if wave.ready_s > reach:
            best, reach = w, wave.ready_s
        starts.append(best)
        reach += work_s[w]
    return starts
