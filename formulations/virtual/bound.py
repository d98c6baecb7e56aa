"""Lower bounds on the time objectives of V-shaped schedules: no V, replayed by section 3, is better.

Die r runs part a = r as heads H_i and part b = 2N-1-r as tails T_i. In all three programs of section 3 the heads of a
die are in order, so are the tails, and H_i comes before T_i. Let t_j(i) be the compute time of chunk i on part j and
x(i) the least time to hand it to another die; at the fold, from part N-1 to N, it stays. ``die_serial`` and
``activation_ready`` alone give, for any waves v <= w, any die and any chunks l of v and m of w, l <= m where v = w,

    completion(w) >= ready(v) + sum_{i<l} t_0(i) + sum_{j<a} (t_j(l) + x(l))       part 0, then chunk l comes to the die
                     + work of the die on the chunks l.. of v, all of the waves between, and ..m of w
                     + sum_{j>b} (x(m) + t_j(m)) + sum_{i>m} t_{2N-1}(i)           chunk m leaves, then the last part,

because all that is counted of the die's work lies between its H_l of v and its T_m of w: heads i >= l of v and their
tails come after H_l; heads and tails of waves between come after both of v and before both of w; heads i <= m of w and
tails i <= m come no later than T_m. Stalls, fetches, waits for memory, link contention and the window only add. So the
bound is a chunk problem without a maximum, a shortest path: the work of both parts of one die, the way of an early
chunk in, the way of a late one out. A mean over such paths is a bound too (``mixture``). Every die gives one; the best
is taken, over the dies that work more than those nearer to the fold.

A chunk enters only when the one 2N-1 before it has left: in period k die 0 runs H_{k+N-1} and T_{k-N+1}, so H_{n+2N-1}
comes behind T_n (and a smaller window on chunks in flight says the same of fewer). So the chunks of one residue modulo
K = 2N-1 pass all parts one after the other, and all transits together, divided by K, are a bound as well.

Where the split is free, the mean over all dies of these paths holds: together the dies do all the work, and each part
has a layer at least. And some chunk passes all parts: sum_{i<l} t_0(i) + all parts of l + sum_{i>l} t_{2N-1}(i), which
is the same with fixed parts, and which counts where there are few chunks.

The fastest die and link are used throughout, so the bound holds for every placement; a free split has no memory rule
but that of single layers. The replay rounds each duration to a picosecond: half of one is taken off for each part.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from formulations.bounds import MOST_CELLS, BatchBound, completion_weights, nearest_rank
from formulations.chunks.exact import path_value
from formulations.tables import StageTables, Table
from formulations.virtual.memory import VirtualMemory
from formulations.virtual.mixture import FoldProblem
from formulations.virtual.path import FoldPath, WaveKind, fold_paths, transit
from formulations.virtual.split import virtual_reason
from formulations.wave_counts import Counts, wave_counts
from instances.gathering import Gathered
from instances.instance import Instance
from instances.workload import Shape

Paths = Mapping[WaveKind, FoldPath]
Ints = npt.NDArray[np.int64]

WORK = Counts(1.0, 0.0, 0.0)
"""Counts of a path's work alone."""


class VirtualBounds:
    """Bounds of the V-shaped plans of one instance, batch by batch; see `formulations.bounds.TimeBounds`.

    Parameters
    ----------
    instance
        Objective mean_latency, makespan or p95_latency.
    chunks
        Fixed number of chunks, or None for 1..max_chunks.
    in_time
        Whether so many seconds are left; asked before each part of the work. Where they are not, nothing is known.
    """

    def __init__(
        self,
        instance: Instance,
        tables: StageTables,
        chunks: int | None = None,
        in_time: Callable[[float], bool] = lambda seconds: True,
    ) -> None:
        self.instance, self.tables, self.in_time = instance, tables, in_time
        self.fewest, self.most = (1, instance.pipeline.max_chunks) if chunks is None else (chunks, chunks)
        self.reason, self.memory = virtual_reason(instance), VirtualMemory(instance)
        pipeline = instance.pipeline
        # Chunks that may be inside at once.
        self.inside = min(2 * pipeline.stages - 1, pipeline.max_in_flight or math.inf)

    def batch(self, batch: int, deadline_s: float | None = None, *, enough_s: float = math.inf) -> BatchBound:
        """Bound for V-shaped plans with this batch.

        Parameters
        ----------
        deadline_s
            Seconds for the search for the best mixture of paths; when they are over, the bound is weaker but valid.
        enough_s
            A bound of at least this is not made better.
        """
        unknown = BatchBound(batch, None, None, {})
        if self.reason is not None:
            return BatchBound(batch, None, None, {}, reason=self.reason)
        waves = self.tables.waves(batch)
        if sum((self.tables.grid(shape).quanta + 1) ** 2 for shape, _ in waves.kinds) > MOST_CELLS:
            return unknown
        clock = None if deadline_s is None else time.monotonic() + deadline_s
        admitted: dict[WaveKind, int] = {}
        for shape, size in waves.kinds:
            limit, reason = self.memory.chunk_tokens(size, shape)
            if reason is None and self.most * limit < shape[0] - shape[1]:
                few = f"memory admits chunks of at most {limit} tokens at batch {size} in a V, and {self.most} of them"
                reason = f"{few} do not cover {shape[0] - shape[1]} tokens"
            if reason is not None:
                return BatchBound(batch, None, None, {}, reason=reason)
            admitted[shape, size] = limit
        best: BatchBound | None = None
        for build in fold_paths(self.tables, waves):
            paths: dict[WaveKind, FoldPath] = {}
            for (shape, size), limit in admitted.items():
                if not self.in_time(self.tables.grid(shape).fill_s):
                    return unknown
                paths[shape, size] = build(size, shape, limit)
            found = self._on(batch, waves, paths, clock, enough_s)
            if found.bound_s is None:
                return found
            if best is None or best.bound_s is None or found.bound_s > best.bound_s:
                best = found
        assert best is not None
        # Rounded once each: the arrival, the tasks of a path, and for each transfer the duration and the latency. Then
        # the replay's clock and the arrivals are floats of seconds, whose last digits matter late in a long trace.
        way, chunks = 6 * self.instance.pipeline.stages, waves.waves * self.most
        parts = 1 + max(2 * chunks + way, way * (1 + chunks / self.inside))
        return best.less(0.5e-12 * parts + 2**-51 * float(waves.ready_s.max()))

    def _on(self, batch: int, waves: Gathered, paths: Paths, clock: float | None, enough_s: float) -> BatchBound:
        """The bound of one family of paths, rounding aside."""
        work: dict[WaveKind, float] = {}
        for (shape, size), path in paths.items():
            least = self._problem(shape, path).solve()
            if least is None:
                reason = "no admissible chunk list has an allowed number of chunks"
                return BatchBound(batch, None, None, {}, reason=reason)
            work[shape, size] = least[0]
        work_s = np.array([work[kind] for kind in waves.kinds])[waves.kind]
        starts = first_waves(waves.ready_s, work_s)
        # Requests come in the order of their arrivals.
        if self.instance.objective == "p95_latency" and bool(waves.arrival_s[0] < waves.arrival_s[-1]):
            return self._percentile(batch, waves, starts, paths, work_s)
        return self._weighted(batch, waves, starts, paths, clock, enough_s)

    def _problem(self, shape: Shape, path: FoldPath | None = None, counts: Counts = WORK) -> FoldProblem:
        problem = FoldProblem(self.tables.grid(shape).quanta, self.fewest, self.most)
        if path is not None:
            problem.count(path, counts)
        return problem

    def _weighted(
        self, batch: int, waves: Gathered, starts: Ints, paths: Paths, clock: float | None, enough_s: float
    ) -> BatchBound:
        """A weighted sum of completions: one chunk problem for each request shape."""
        weights, total = completion_weights(self.instance, waves), self.instance.workload.count
        # Differences first: late arrivals would swallow the digits of short latencies.
        mean = self.instance.objective != "makespan"
        ahead = waves.ready_s[starts][waves.wave_of_request] - (waves.arrival_s if mean else 0.0)
        constant = math.fsum(((weights / waves.size)[waves.wave_of_request] * ahead).tolist())
        value = trivial = constant
        problems: dict[Shape, FoldProblem] = {}
        unit = total if self.instance.objective == "mean_latency" else 1
        counted = wave_counts(waves, starts.tolist(), weights, unit)
        for (shape, size), counts in counted.items():
            if shape not in problems:
                problems[shape] = self._problem(shape)
            problems[shape].count(paths[shape, size], counts)
        found = {}
        for shape, problem in problems.items():
            alone, first = problem.solve(), problem.solve(problem.table(*problem.first_and_last()))
            assert alone is not None and first is not None
            trivial += alone[0]
            found[shape] = first
        promised = value + sum(bound for bound, _ in found.values())
        cuts: dict[Shape, list[int]] = {}
        others: dict[Shape, list[list[int]]] = {}
        for shape, problem in problems.items():
            best, cuts[shape] = found[shape]
            others[shape] = [cuts[shape]]
            if promised < enough_s:
                left = None if clock is None else (clock - time.monotonic()) / (len(problems) - len(cuts) + 1)
                until = None if left is None else time.monotonic() + left
                best, cuts[shape], others[shape] = problem.best_mixture(found[shape], until)
            value += best
        value = max(value, constant + self._one_after_another(counted, paths))
        # Shapes whose waves the objective does not count need cuts all the same.
        for (shape, _), path in paths.items():
            if shape not in cuts:
                alone = self._problem(shape, path).solve()
                assert alone is not None
                cuts[shape] = alone[1]
        return BatchBound(batch, value, min(trivial, value), cuts, others)

    def _one_after_another(self, counted: Mapping[WaveKind, Counts], paths: Paths) -> float:
        """All transits of the waves that are counted, divided by the number of chunks that can be inside."""
        sums: dict[Shape, Table] = {}
        for (shape, size), counts in counted.items():
            if not self.in_time(self.tables.grid(shape).fill_s):
                return -math.inf
            passing = transit(self.tables, size, shape, shape[0])
            seconds = np.where(np.isfinite(paths[shape, size].work), counts.work * passing, np.inf)
            sums[shape] = sums[shape] + seconds if shape in sums else seconds
        least = [path_value(table, table, math.inf, self.most, self.fewest) for table in sums.values()]
        return sum(math.inf if value is None else value for value in least) / self.inside

    def _percentile(
        self, batch: int, waves: Gathered, starts: Ints, paths: Paths, work_s: npt.NDArray[np.float64]
    ) -> BatchBound:
        """Nearest rank is increasing in every latency, so the rank of the bounds bounds the rank.

        The way in is that of the first wave, whose cuts minimise it; each later wave adds at least its least work.
        """
        entry: dict[WaveKind, float] = {}
        cuts: dict[Shape, list[int]] = {}
        for (shape, size), path in paths.items():
            problem = self._problem(shape, path, Counts(1.0, 1.0, 0.0))
            found = problem.solve(problem.table(*problem.first_and_last()))
            assert found is not None
            entry[shape, size], cuts[shape] = found
        done = np.cumsum(work_s)
        behind = waves.ready_s[starts] + done - done[starts]
        entry_s = np.array([entry[kind] for kind in waves.kinds])[waves.kind]
        bound, trivial = (
            nearest_rank(((behind + first[starts])[waves.wave_of_request] - waves.arrival_s).tolist(), 0.95)
            for first in (entry_s, work_s)
        )
        return BatchBound(batch, bound, min(trivial, bound), cuts)


def first_waves(ready_s: npt.NDArray[np.float64], work_s: npt.NDArray[np.float64]) -> Ints:
    """For each wave w the wave v <= w that makes ready(v) + work of v..w largest (any choice is valid). Shape (W,)."""
    slack = ready_s - np.concatenate(([0.0], np.cumsum(work_s)[:-1]))
    return np.maximum.accumulate(np.where(slack >= np.maximum.accumulate(slack), np.arange(len(slack)), 0))
