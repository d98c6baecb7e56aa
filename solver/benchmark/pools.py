"""Many runs at a time, on this machine: threads that each watch one process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Sequence

from solver.benchmark.execute import StoppedError, execute
from solver.benchmark.record import Record
from solver.benchmark.task import Task

WAIT_S = 5.0
"""Seconds to wait for processes to be killed after an interruption; they die with this process anyway."""

OnStart = Callable[[Task], None]


class LocalPool:
    """So many runs at a time, each in a process of its own."""

    def __init__(self, jobs: int, *, function: str | None = None) -> None:
        self._jobs = jobs
        self._function = function

    def records(self, tasks: Sequence[Task], on_start: OnStart) -> Generator[Record, None, None]:
        """Do all tasks; yields each record as its run ends, in any order.

        A KeyboardInterrupt, or closing the iterator, kills the runs in flight; they leave no record.
        """
        waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)
        ended: queue.SimpleQueue[Record | BaseException] = queue.SimpleQueue()
        stop = threading.Event()
        threads = [
            threading.Thread(target=self._work, args=(waiting, ended, stop, on_start), daemon=True)
            for _ in range(min(self._jobs, len(tasks)))
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in tasks:
                yield _taken(ended)
        finally:
            stop.set()
            for thread in threads:
                thread.join(WAIT_S)

    def _work(
        self,
        waiting: queue.SimpleQueue[Task],
        ended: queue.SimpleQueue[Record | BaseException],
        stop: threading.Event,
        on_start: OnStart,
    ) -> None:
        while not stop.is_set():
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                return
            with _Handed(ended):
                on_start(task)
                ended.put(execute(task, stop.is_set, function=self._function))


def _taken(ended: queue.SimpleQueue[Record | BaseException]) -> Record:
    """The next record; in short waits, so that Ctrl-C is heard on every platform."""
    while True:
        try:
            found = ended.get(timeout=0.2)
        except queue.Empty:
            continue
        if isinstance(found, BaseException):
            raise found
        return found


class _Handed:
    """Hands what goes wrong in a thread to the one that waits for its records; a run given up is nothing wrong."""

    def __init__(self, ended: queue.SimpleQueue[Record | BaseException]) -> None:
        self._ended = ended

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None and not isinstance(error, StoppedError):
            self._ended.put(error)
        return error is not None
