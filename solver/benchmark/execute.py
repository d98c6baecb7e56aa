"""A run from outside: its process is started and watched, and whatever comes of it becomes a record."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from formulations.interface import relative_gap
from formulations.scope import scope_of
from instances.instance import Instance
from solver.backends.isolated import ChildTimeoutError, IsolatedError, run_isolated
from solver.benchmark.caught import Caught
from solver.benchmark.environment import Environment, environment
from solver.benchmark.messages import Better, Ended, Started
from solver.benchmark.record import Record
from solver.benchmark.task import CAPACITY, PLACE, Task
from solver.capacity.result import CapacityResult
from solver.methods import find_method
from solver.place.run import Placed
from solver.result import ObjectiveValue, Result, StopReason

SOLVE = "solver.benchmark.one_run:run"
OTHERS = {PLACE: "solver.benchmark.placement_run:run", CAPACITY: "solver.benchmark.capacity_run:run"}
"""What a run's process calls, by method where it is not ``solve``."""
LOADING_S = 120.0
"""Seconds that a run may take on top of its limit: for reading, compiling and the last replay."""
OVERRUN = 0.5
"""Share of the limit by which a method may overrun it before it is killed."""


class StoppedError(Exception):
    """The run was given up because the benchmark ends; it has no record."""


def execute(
    task: Task,
    stopped: Callable[[], bool] = lambda: False,
    *,
    function: str | None = None,
    loading_s: float = LOADING_S,
) -> Record:
    """Do one run in a process of its own; a crash, an error and a timeout are records like any other.

    Parameters
    ----------
    stopped
        Asked several times a second; once it says yes the process is killed.
    function
        What to call in the process in place of ``SOLVE`` or one of ``OTHERS``.

    Raises
    ------
    StoppedError
        If ``stopped`` said yes before the run came to its end.
    """
    watch = _Watch(stopped)
    called = function or OTHERS.get(task.choice.method, SOLVE)
    began = time.monotonic()
    grace_s = loading_s + OVERRUN * task.limits.time_s
    ended: Ended | None = None
    killed: str | None = None
    failure = Caught(StoppedError)
    with failure:
        try:
            ended = run_isolated(called, {"task": task}, task.limits.time_s, grace_s=grace_s, on_message=watch.listen)
        except ChildTimeoutError:
            killed = f"killed: it still ran {grace_s:g} s after its time limit of {task.limits.time_s:g} s"
        except IsolatedError as problem:
            failure.error = " | ".join([*str(problem).splitlines()[:1], *problem.detail.splitlines()[-3:]])
    if ended is not None and ended.result is not None:
        return _record(task, watch.environment, ended.result, ended.peak_memory_bytes)
    if ended is not None and ended.placed is not None:
        return _placed(task, watch.environment, ended.placed, ended.peak_memory_bytes)
    if ended is not None and ended.longest is not None:
        return _longest(task, watch.environment, ended.longest, ended.peak_memory_bytes)
    peak = None if ended is None else ended.peak_memory_bytes
    error = killed or failure.error or (None if ended is None else ended.error) or "no result"
    return _failed(task, watch, error, "time_limit" if killed else "error", time.monotonic() - began, peak)


def lost(task: Task, error: str) -> Record:
    """The record of a run of which nothing was heard: the machine that did it is gone, or cannot do it."""
    return _failed(task, _Watch(lambda: False), error, "error", 0.0, None)


class _Watch:
    """Hears what a run says, and gives it up when asked to."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._environment: Environment | None = None
        self.best = Better(None, None, None)

    def listen(self, message: object) -> None:
        if self._stopped():
            raise StoppedError
        if isinstance(message, Started):
            self._environment = message.environment
        elif isinstance(message, Better):
            self.best = message

    @property
    def environment(self) -> Environment:
        """What the run said that it runs on; a run that died at once runs where this process does."""
        return self._environment or environment()


def _record(task: Task, ran_on: Environment, result: Result, peak_memory_bytes: int) -> Record:
    objective = result.objective
    return Record(
        **_common(task, ran_on, objective),
        status=result.status,
        stop_reason=result.stop_reason,
        trivial_bound=objective.trivial_bound,
        bound_scope=objective.bound_scope,
        runtime_s=result.runtime_s,
        peak_memory_bytes=peak_memory_bytes,
        reason=None if result.plan is not None else result.reason,
        metrics=result.metrics,
        plan=result.plan,
    )


def _placed(task: Task, ran_on: Environment, placed: Placed, peak_memory_bytes: int) -> Record:
    objective = ObjectiveValue(name=task.objective, value=placed.value, bound=placed.bound)
    return Record(
        **_common(task, ran_on, objective),
        status=placed.status,
        stop_reason=placed.stop_reason,
        runtime_s=round(placed.runtime_s, 3),
        peak_memory_bytes=peak_memory_bytes,
        reason=None if placed.placement is not None else "no placement was found",
        placement=placed.placement,
    )


def _longest(task: Task, ran_on: Environment, found: CapacityResult, peak_memory_bytes: int) -> Record:
    row = found.methods[0]
    value = None if row.max_tokens is None else float(row.max_tokens)
    return Record(
        **_common(task, ran_on, ObjectiveValue(name=task.objective, value=value)),
        status="unknown" if value is None else "feasible",
        stop_reason="time_limit" if found.stop_reason == "time_limit" else "iterations",
        runtime_s=found.runtime_s,
        peak_memory_bytes=peak_memory_bytes,
        reason=row.note or None,
    )


def _failed(
    task: Task, watch: _Watch, error: str, stop: StopReason, waited_s: float, peak_memory_bytes: int | None
) -> Record:
    """What is known of a run that gave no result: the best that it told of."""
    best = watch.best
    objective = ObjectiveValue(name=task.objective, value=best.value, bound=best.bound)
    scope = None
    if best.bound is not None:
        method = find_method(task.choice.method)
        schedules = method.covers(method.settings(dict(task.choice.knobs)))
        scope = scope_of(Instance.read(dict(task.instance)), schedules, task.chunks)
    return Record(
        **_common(task, watch.environment, objective),
        status="unknown" if best.value is None else "feasible",
        stop_reason=stop,
        bound_scope=scope,
        runtime_s=round(waited_s, 3),
        peak_memory_bytes=peak_memory_bytes,
        error=error,
        plan=best.plan,
    )


def _common(task: Task, ran_on: Environment, objective: ObjectiveValue) -> dict[str, Any]:
    return {
        "suite": task.suite,
        "instance": task.name,
        "fingerprint": task.fingerprint,
        "method": task.choice.method,
        "knobs": dict(task.choice.knobs),
        "chunks": task.chunks,
        "seed": task.seed,
        "time_limit_s": task.limits.time_s,
        "memory_limit_bytes": task.limits.memory_bytes,
        "objective": task.objective,
        "value": objective.value,
        "bound": objective.bound,
        "gap": relative_gap(objective.value, objective.bound),
        "gap_to_best": relative_gap(objective.value, task.best_value),
        "versions": ran_on.versions,
        "cpu": ran_on.cpu,
        "revision": ran_on.revision,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
