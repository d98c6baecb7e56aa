"""One run, in the process that is its own: limits, a sign of life, what came of it."""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Callable

from instances.instance import Instance
from solver.api import solve
from solver.benchmark.caught import Caught
from solver.benchmark.environment import environment
from solver.benchmark.messages import Alive, Better, Ended, Started
from solver.benchmark.task import Task
from solver.incumbent import Incumbent
from solver.limits import Limits

HEARTBEAT_S = 0.3


def run(task: Task, emit: Callable[[object], None]) -> Ended:
    """Solve, within the limits, and tell of progress through ``emit``.

    The memory limit is on what the process may write to (RLIMIT_DATA): engines reserve more than they use.
    """
    emit(Started(environment()))
    failure, result = Caught(), None
    with failure, Heartbeat(emit):
        limit_memory(task.limits.memory_bytes)
        result = solve(
            Instance.read(dict(task.instance)),
            task.choice.method,
            limits=Limits(time_s=task.limits.time_s),
            seed=task.seed,
            chunks=task.chunks,
            knobs=task.choice.knobs,
            listener=lambda best: emit(_better(best)),
        )
    return Ended(result, failure.error, peak_memory_bytes())


class Heartbeat:
    """Emits a sign of life from a thread while a block runs."""

    def __init__(self, emit: Callable[[object], None]) -> None:
        self._emit = emit
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(HEARTBEAT_S):
            self._emit(Alive())


def peak_memory_bytes() -> int:
    """Largest resident size of this process so far."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else 1024 * largest


def limit_memory(limit_bytes: float | None) -> None:
    """Let this process write to so many bytes at most."""
    if limit_bytes is None:
        return
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    _, hard = resource.getrlimit(kind)
    limit = int(limit_bytes) if hard == resource.RLIM_INFINITY else min(int(limit_bytes), hard)
    resource.setrlimit(kind, (limit, hard))


def _better(best: Incumbent) -> Better:
    return Better(best.value, best.bound, best.plan)
