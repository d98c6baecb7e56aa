"""One search for the longest request, in the process that is its own."""

from __future__ import annotations

from collections.abc import Callable

from instances.instance import Instance
from solver.benchmark.caught import Caught
from solver.benchmark.environment import environment
from solver.benchmark.messages import Ended, Started
from solver.benchmark.one_run import Heartbeat, limit_memory, peak_memory_bytes
from solver.benchmark.task import Task
from solver.capacity.api import capacity
from solver.limits import Limits


def run(task: Task, emit: Callable[[object], None]) -> Ended:
    """The longest request for the way to spill that the task's knob ``way`` names."""
    emit(Started(environment()))
    failure, found = Caught(), None
    with failure, Heartbeat(emit):
        limit_memory(task.limits.memory_bytes)
        found = capacity(
            Instance.read(dict(task.instance)),
            [str(task.choice.knobs["way"])],
            chunks=task.chunks,
            limits=Limits(time_s=task.limits.time_s),
            seed=task.seed,
        )
    return Ended(None, failure.error, peak_memory_bytes(), longest=found)
