"""One run of a placement problem, in the process that is its own."""

from __future__ import annotations

from collections.abc import Callable

from formulations.interface import EngineLimits
from solver.benchmark.caught import Caught
from solver.benchmark.environment import environment
from solver.benchmark.messages import Ended, Started
from solver.benchmark.one_run import Heartbeat, limit_memory, peak_memory_bytes
from solver.benchmark.placements import assignment_of, graph_of
from solver.benchmark.task import Task
from solver.place.run import Placed, place_graph, solve_assignment


def run(task: Task, emit: Callable[[object], None]) -> Ended:
    """Place, within the limits."""
    emit(Started(environment()))
    failure, placed = Caught(), None
    with failure, Heartbeat(emit):
        limit_memory(task.limits.memory_bytes)
        placed = _placed(task, EngineLimits(time_s=task.limits.time_s, seed=task.seed, relative_gap=0.0))
    return Ended(None, failure.error, peak_memory_bytes(), placed)


def _placed(task: Task, limits: EngineLimits) -> Placed:
    if task.objective == "assignment":
        return solve_assignment(assignment_of(task.instance), limits)
    graph, mesh = graph_of(task.instance)
    return place_graph(graph, mesh, 1, limits)
