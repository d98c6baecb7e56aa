"""Lower bounds on the time objectives: no plan of the plain schedule, replayed by section 3, is better.

Every bound here is a path through the tasks. Let t_s(i) be the compute time of chunk i on stage s and x(i) the time to
hand chunk i to a neighbouring die. Rules ``die_serial`` and ``activation_ready`` alone give, for any waves v <= w, any
chunks l <= m of wave v and any stages a <= b,

    completion(w) >= ready(v) + sum_{i<l} t_0(i) + sum_{s<a} (t_s(l) + x(l))      stage 0, then chunk l enters a
                     + sum_{l<=i<m} t_a(i) + sum_{a<=s<b} (t_s(m) + x(m))         a works, chunk m crosses to b
                     + sum_{i>=m} t_b(i) + sum_{v<k<=w} sum_i t_b(i)              b works, through the later waves
                     + sum_{s>b} (x(M-1) + t_s(M-1)),                             the last chunk leaves

because each term waits for the one before it: stalls, fetches, waits for memory, link contention and the window only
add to it (what a window demands by itself is another bound, ``window``). Let a and b be the first and last of the
stages that have the most work, so that t_a = t_b =: t. Then the right side is the chunk problem A*sum t + Z*max u, u
being the crossing of m, with extra costs on some chunks, whose minimum over all admissible cuts ``solve_chunks`` finds
or bounds. The entering chunk l is the one that covers a given quantum; a mean over quanta is a bound too, and a better
one where stages before a are many: a single small first chunk cannot lower it (``entry``).

Where the layer split is free, which stages have the most work is not known: the bound is the least over cases that
cover all splits (``free_split``), or that of the average stage where it is better.

Stages use the fastest die there is and transfers the fastest link and one hop, so the bound holds for every placement.
Objectives are increasing in the completions: a weighted sum of completions is at least the weighted sum of their bounds
under common cuts. The replay rounds each duration to a picosecond, which may shorten a path by half of that for each of
its parts; so much is taken off.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from formulations.admissible import admissible_chunk_tokens
from formulations.chunks.exact import path_value, solve_chunks
from formulations.entry import ChunkProblem, best_mixture
from formulations.free_split.cases import ReferenceLayers, SplitCase
from formulations.free_split.parts import Parts, may_be_stage
from formulations.free_split.search import SplitSearch
from formulations.stage_path import StagePath, heaviest_stages, stage_path
from formulations.tables import StageTables, Table
from formulations.wave_counts import wave_counts
from formulations.window import window_bound
from instances.gathering import Gathered
from instances.instance import Instance
from instances.workload import Shape

MOST_CELLS = 2 * 4097**2
"""Chunks of all shapes and sizes of waves together, for each of which four numbers are kept: 1 GB."""
_TOLERANCE = 1e-7
"""Relative accuracy of a chunk problem's bound; a thousandth of what counts as optimal."""
_CASE_SHARE = 0.25
"""Share of the time left for one case of a free layer split."""

Paths = Mapping[tuple[Shape, int], StagePath]
"""Path of waves of each shape and size."""


@dataclass(frozen=True)
class BatchBound:
    """What is proved for one batch size.

    Attributes
    ----------
    bound_s, trivial_s
        The bound above, and the bound without the crossing of the slowest chunk; None: no plan of this batch exists,
        or, where there is no reason for that, time was up before anything was known.
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
    in_time
        Whether so many seconds are left; asked before each part of the work. Where they are not, nothing is known.
    """

    def __init__(
        self,
        instance: Instance,
        tables: StageTables,
        chunks: int | None = None,
        most_chunks: int | None = None,
        in_time: Callable[[float], bool] = lambda seconds: True,
    ) -> None:
        self.instance = instance
        self.tables = tables
        self.in_time = in_time
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
        try:
            return self._batch(batch, deadline_s, largest_chunk_tokens, enough_s, thorough)
        except _OutOfTime:
            return BatchBound(batch, None, None, {})

    def _batch(
        self, batch: int, deadline_s: float | None, largest_chunk_tokens: int | None, enough_s: float, thorough: bool
    ) -> BatchBound:
        waves = self.tables.waves(batch)
        heaviest = heaviest_stages(self.instance, waves)
        if sum((self.tables.grid(shape).quanta + 1) ** 2 for shape, _ in waves.kinds) > MOST_CELLS:
            raise _OutOfTime  # of memory, before that
        paths: dict[tuple[Shape, int], StagePath] = {}
        admitted: dict[tuple[Shape, int], int] = {}
        for key in waves.kinds:
            shape, size = key
            self._go_on(self.tables.grid(shape).fill_s)
            limit, reason = admissible_chunk_tokens(self.instance, size, shape)
            limit = limit if largest_chunk_tokens is None else min(limit, largest_chunk_tokens)
            if reason is not None:
                return BatchBound(batch, None, None, {}, reason=reason)
            if self.most * limit < shape[0] - shape[1]:
                reason = f"memory admits chunks of at most {limit} tokens at batch {size}, and {self.most} of them do"
                return BatchBound(batch, None, None, {}, reason=f"{reason} not cover {shape[0] - shape[1]} tokens")
            admitted[key] = limit
            paths[key] = stage_path(self.tables, size, shape, limit, heaviest)
        work = {key: self._least_work(path) for key, path in paths.items()}
        if any(math.isinf(seconds) for seconds in work.values()):
            return BatchBound(batch, None, None, {}, reason="no admissible chunk list has an allowed number of chunks")
        work_s = np.array([work[key] for key in waves.kinds])[waves.kind]
        starts = _first_waves(waves.ready_s.tolist(), work_s.tolist())
        # Requests come in the order of their arrivals.
        ranked = self.instance.objective == "p95_latency" and bool(waves.arrival_s[0] < waves.arrival_s[-1])
        clock = None if deadline_s is None else time.monotonic() + deadline_s

        def on(paths: Paths, share: float, careful: bool) -> BatchBound:
            if ranked:
                return self._percentile(batch, waves, starts, paths, work_s)
            left = None if clock is None else share * max(0.0, clock - time.monotonic())
            return self._weighted(batch, waves, starts, paths, left, enough_s, careful and thorough)

        found = on(paths, 1.0, True)
        if self.instance.fixed_layers is None and self.instance.pipeline.stages > 1:
            found = self._any_split(found, admitted, on, clock, enough_s, concave=not ranked)
        # Rounded once each: the arrival, the tasks of a path, and for each transfer the duration and the latency. Then
        # the replay's clock and the arrivals are floats of seconds, whose last digits matter late in a long trace.
        parts = 1 + waves.waves * self.most + 3 * (self.instance.pipeline.stages - 1)
        latest_s = float(waves.ready_s.max())
        return found.less(0.5e-12 * parts + 2**-51 * latest_s)

    def _any_split(
        self,
        average: BatchBound,
        admitted: Mapping[tuple[Shape, int], int],
        on: Callable[[Paths, float, bool], BatchBound],
        clock: float | None,
        enough_s: float,
        *,
        concave: bool,
    ) -> BatchBound:
        """The better of the average stage's bound and the least over all cases of a layer split (``free_split``)."""
        assert average.bound_s is not None and average.trivial_s is not None
        if average.bound_s >= enough_s:
            return average
        layers = ReferenceLayers(self.tables, admitted)
        parts = Parts(layers.weights, layers.stages, may_be_stage(self.instance, admitted, self.most))
        met: list[BatchBound] = []

        def over() -> bool:
            return not self.in_time(0.0) or (clock is not None and time.monotonic() >= clock)

        def bound(case: SplitCase, careful: bool) -> float:
            found = average  # which holds for every case
            with contextlib.suppress(_OutOfTime):
                found = on(layers.paths(case), _CASE_SHARE if careful else 1.0, careful)
            met.append(found)
            assert found.bound_s is not None
            return found.bound_s

        proved = SplitSearch(parts, bound, concave, enough_s, over).run()
        if proved <= average.bound_s:
            return average
        # The cuts of the case on which the bound rests are the ones to start from.
        known = [case for case in met if case.cuts]
        resting = min(known, key=lambda case: abs((case.bound_s or 0.0) - proved), default=average)
        return replace(resting, bound_s=proved, trivial_s=min(average.trivial_s, proved))

    def _weighted(
        self,
        batch: int,
        waves: Gathered,
        starts: list[int],
        paths: Paths,
        deadline_s: float | None,
        enough_s: float,
        thorough: bool,
    ) -> BatchBound:
        """A weighted sum of completions: one chunk problem for each request shape."""
        weights = completion_weights(self.instance, waves)
        # Differences first: late arrivals would swallow the digits of short latencies.
        since = 0.0 if self.instance.objective == "makespan" else waves.arrival_s
        ahead = waves.ready_s[starts][waves.wave_of_request] - since
        constant = math.fsum(((weights / waves.size)[waves.wave_of_request] * ahead).tolist())
        problems: dict[Shape, ChunkProblem] = {}
        total = self.instance.workload.count if self.instance.objective == "mean_latency" else 1
        counted = wave_counts(waves, starts, weights, total)
        for (shape, size), counts in counted.items():
            problem = problems.setdefault(shape, ChunkProblem(self.tables.grid(shape).quanta))
            problem.count(paths[shape, size], counts)
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
        value = max(value, constant + window_bound(self.tables, counted, paths, self.most, self.fewest))
        # Shapes whose waves the objective does not count need cuts all the same.
        for (shape, _), path in paths.items():
            if shape not in cuts:
                cuts[shape] = self._solve(path.work, path.work, None)[1]
        return BatchBound(batch, value, min(trivial, value), cuts, others)

    def _solve(self, t: Table, u: Table, clock: float | None) -> tuple[float, list[int]]:
        self._go_on()
        left = None if clock is None else max(0.0, clock - time.monotonic())
        found = solve_chunks(t, u, 1.0, 1.0, self.most, self.fewest, deadline_s=left, tolerance=_TOLERANCE)
        assert found.bound is not None
        return found.bound, found.cuts

    def _percentile(
        self,
        batch: int,
        waves: Gathered,
        starts: list[int],
        paths: Paths,
        work_s: npt.NDArray[np.float64],
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
        behind = np.empty(waves.waves)
        for w, (start, ready_s, seconds) in enumerate(zip(starts, waves.ready_s, work_s, strict=True)):
            behind[w] = ready_s if start == w else behind[w - 1] + seconds
        entry_s = np.array([entry[key] for key in waves.kinds])[waves.kind]
        bound, trivial = (
            nearest_rank(((behind + first[starts])[waves.wave_of_request] - waves.arrival_s).tolist(), 0.95)
            for first in (entry_s, work_s)
        )
        return BatchBound(batch, bound, trivial, cuts)

    def _go_on(self, seconds: float = 0.0) -> None:
        if not self.in_time(seconds):
            raise _OutOfTime

    def _least_work(self, path: StagePath) -> float:
        self._go_on()
        least = path_value(path.work, path.work, math.inf, self.most, self.fewest)
        return math.inf if least is None else least


class _OutOfTime(Exception):
    """Time was up before there was a bound."""


def completion_weights(instance: Instance, waves: Gathered) -> npt.NDArray[np.float64]:
    """Weight of each wave's completion in the objective, shape (W,)."""
    total = instance.workload.count
    if instance.objective == "mean_latency":
        return waves.size / total
    # Waves end in order, so with equal arrivals a rank belongs to one wave; the makespan is the last one's end.
    rank = total if instance.objective == "makespan" else math.ceil(0.95 * total)
    weights = np.zeros(waves.waves)
    weights[int(np.searchsorted(np.cumsum(waves.size), rank))] = 1.0
    return weights


def nearest_rank(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile: the value at rank ceil(share * n)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _without_crossing(t: Table, u: Table, most: int, fewest: int) -> float:
    """The work alone, with the shortest crossing that any chunk has: the trivial bound of the spec."""
    least = path_value(t, t, math.inf, most, fewest)
    assert least is not None
    return least + float(u[np.isfinite(u)].min())


def _first_waves(ready_s: Sequence[float], work_s: Sequence[float]) -> list[int]:
    """For each wave w the wave v that makes ready(v) + work of v..w largest: any choice is valid."""
    starts: list[int] = []
    best, reach = 0, -math.inf
    for w, (ready, work) in enumerate(zip(ready_s, work_s, strict=True)):
        if ready > reach:
            best, reach = w, ready
        starts.append(best)
        reach += work
    return starts
