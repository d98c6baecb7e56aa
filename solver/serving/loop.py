"""The loop of an engine: requests arrive, iterations return, and the scheduler says what runs next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from solver.serving.clock import PipelineClock
from solver.serving.jobs import Batch, Iteration, Job, Log
from solver.serving.timing import IterationCost


class Scheduler(Protocol):
    """Decides what the next iteration runs."""

    def arrive(self, job: Job, now_ps: int) -> None:
        """Take note of a request."""

    def advance(self, now_ps: int) -> None:
        """Do what is due by now besides iterations."""

    def compose(self, now_ps: int) -> Batch | None:
        """The next iteration; None: nothing can run now."""

    def finish(self, batch: Batch, now_ps: int) -> None:
        """Take note of an iteration that left the last stage."""

    def wake_ps(self, now_ps: int) -> int | None:
        """When something changes by itself, later than now; None: nothing will."""

    def why_idle(self) -> str:
        """Why nothing can run although requests are left."""


def serve(
    scheduler: Scheduler,
    jobs: list[Job],
    cost: IterationCost,
    clock: PipelineClock,
    in_flight: int,
    over: Callable[[], bool],
) -> Log:
    """Run a scheduler over all requests.

    An iteration is composed at the moment when it can start: fewer than ``in_flight`` are inside and stage 0 is free.
    Where several things happen at a time, iterations return first, then requests arrive, then the next is composed.
    ``over`` says whether time for all this is up.

    Returns
    -------
    Log
        With ``stuck`` if requests are left that nothing will ever run.
    """
    log = Log(jobs)
    coming = deque(sorted(jobs, key=lambda job: (job.arrival_ps, job.index)))
    inside: deque[Iteration] = deque()
    now = 0
    while True:
        if over():
            log.stuck = f"time is up after {len(log.iterations)} iterations"
            return log
        while inside and inside[0].ends_ps[-1] <= now:
            scheduler.finish(inside.popleft().batch, now)
        while coming and coming[0].arrival_ps <= now:
            scheduler.arrive(coming.popleft(), now)
        scheduler.advance(now)
        if len(inside) < in_flight and clock.free_ps[0] <= now:
            batch = scheduler.compose(now)
            if batch is not None:
                inside.append(_launched(log, batch, now, cost, clock))
                continue
        times = [job.arrival_ps for job in list(coming)[:1]] + [iteration.ends_ps[-1] for iteration in list(inside)[:1]]
        if len(inside) < in_flight and clock.free_ps[0] > now:
            times.append(clock.free_ps[0])
        wake = scheduler.wake_ps(now)
        if wake is not None and wake > now:
            times.append(wake)
        if not times:
            break
        now = min(times)
    if any(not job.done for job in jobs):
        log.stuck = scheduler.why_idle()
    return log


def _launched(log: Log, batch: Batch, now: int, cost: IterationCost, clock: PipelineClock) -> Iteration:
    durations = cost.durations_ps(batch)
    size = cost.send_bytes(batch)
    durations, ends = clock.launch(now, durations, size, batch.ready_ps)
    found = Iteration(batch, now, durations, ends, size)
    log.iterations.append(found)
    return found
