"""A benchmark: the runs of a grid that have no record yet, and a record for each of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from typing import Protocol

from solver.benchmark.record import Record, RunKey
from solver.benchmark.records_file import RecordsFile
from solver.benchmark.task import Task


class Pool(Protocol):
    """Something that does runs: this machine, or many."""

    def records(self, tasks: Sequence[Task], on_start: Callable[[Task], None]) -> Generator[Record, None, None]:
        """Do all tasks; yields each record as its run ends."""
        ...


class Listener(Protocol):
    """Told what happens; calls may come from several threads."""

    def planned(self, total: int, known: int) -> None:
        """So many runs in all, of which so many have a record already."""

    def started(self, task: Task) -> None:
        """A run begins."""

    def ended(self, record: Record) -> None:
        """A run has a record."""


def run_all(
    tasks: Iterable[Task],
    pool: Pool,
    listener: Listener,
    *,
    file: RecordsFile | None = None,
    retry_errors: bool = False,
) -> Generator[Record, None, None]:
    """Records of all tasks, each once: first those in the file, then those of the runs that are still to do.

    Each new record is in the file before it is yielded.

    Parameters
    ----------
    retry_errors
        Do runs again whose record is an error; the new record takes the place of the old one.
    """
    wanted: dict[RunKey, Task] = {task.key: task for task in tasks}
    known: dict[RunKey, Record] = {}
    for record in file.reading.records if file is not None else ():
        if record.key in wanted and not (retry_errors and record.error is not None):
            known[record.key] = record
    listener.planned(len(wanted), len(known))
    yield from known.values()
    left = [task for key, task in wanted.items() if key not in known]
    with closing(pool.records(left, listener.started)) as records:
        for record in records:
            if file is not None:
                file.append(record)
            listener.ended(record)
            yield record
