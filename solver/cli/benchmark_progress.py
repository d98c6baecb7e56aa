"""Progress of a benchmark on standard error, if that is a terminal: how far, what runs, time left."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from solver.benchmark.record import Record
from solver.benchmark.task import Task


class Board:
    """Counts runs and tells the time left from the mean length of those done, per method where it can."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._lock = threading.Lock()
        self._running: dict[object, tuple[str, float]] = {}
        self._waiting_s: list[float] = []
        self._began = time.monotonic()
        self.total = self.known = self.done = self.failed = 0

    def planned(self, total: int, known: int) -> None:
        """So many runs in all, of which so many have a record already."""
        self.total, self.known = total, known
        self._began = time.monotonic()

    def started(self, task: Task) -> None:
        """A run begins."""
        with self._lock:
            self._running[task.key] = (task.title, time.monotonic())

    def ended(self, record: Record) -> None:
        """A run has a record."""
        with self._lock:
            _, began = self._running.pop(record.key, ("", time.monotonic() - record.runtime_s))
            self._waiting_s.append(time.monotonic() - began)
            self.done += 1
            self.failed += record.error is not None

    def left_s(self) -> float | None:
        """Seconds left, None before the first run has ended."""
        with self._lock:
            if not self._waiting_s:
                return None
            mean = sum(self._waiting_s) / len(self._waiting_s)
            begun = sum(min(mean, time.monotonic() - began) for _, began in self._running.values())
            left = self.total - self.known - self.done
            return max(0.0, mean * left - begun) / max(1, min(self._workers, left))

    def __rich__(self) -> Text:
        left = self.left_s()
        with self._lock:
            titles = [title for title, _ in self._running.values()]
        parts = [
            f"{self.known + self.done}/{self.total} runs",
            *([f"{self.known} from before"] if self.known else []),
            *([f"{self.failed} failed"] if self.failed else []),
            "time left unknown" if left is None else f"about {duration(left)} left",
            *titles,
        ]
        return Text(" | ".join(parts), no_wrap=True, overflow="ellipsis")


def duration(seconds: float) -> str:
    """A time to wait, in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def shown(board: Board) -> Iterator[None]:
    """Show the board while the block runs, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    console = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    with Live(
        board, console=console, transient=True, refresh_per_second=2, redirect_stdout=False, redirect_stderr=False
    ):
        yield
