"""Runs on the workers of a Dask cluster. Needs ``distributed`` here and on them: ``pip install 'waferplan[dask]'``."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from distributed import Client, as_completed

from instances.errors import InputError
from solver.benchmark.execute import execute, lost
from solver.benchmark.record import Record
from solver.benchmark.task import Task

RETRIES = 3
"""How often a run is tried again that ended with an exception, which a run's own failures do not."""
CONNECT_S = 10


class DaskPool:
    """As many runs at a time as the cluster's workers have threads, each in a process of its own.

    A run whose worker dies is given to another one; the scheduler gives it up after its ``allowed-failures``, and then
    that is its record. Records are made where the run was, so that they name that machine's processor and versions.
    """

    def __init__(self, address: str, *, function: str | None = None) -> None:
        self._address = address
        self._function = function

    def records(self, tasks: Sequence[Task], on_start: Callable[[Task], None]) -> Generator[Record, None, None]:
        """Do all tasks; yields each record as its run ends, in any order. Where a run begins is not known here.

        Closing the iterator takes back what has not begun; runs in flight come to their end and are forgotten.

        Raises
        ------
        InputError
            If there is no scheduler at the address.
        """
        if not tasks:
            return
        with self._connected() as client:
            futures: dict[Any, Task] = {
                client.submit(
                    execute,
                    task,
                    function=self._function,
                    key=f"waferplan-{number}-{abs(hash(task.key))}",
                    pure=False,
                    retries=RETRIES,
                ): task
                for number, task in enumerate(tasks)
            }
            try:
                for future in as_completed(list(futures), loop=client.loop):
                    error = future.exception()
                    if error is None:
                        yield future.result()
                    else:
                        yield lost(futures[future], f"{type(error).__name__}: {error}")
            finally:
                client.cancel(list(futures))

    def _connected(self) -> Any:
        try:
            return Client(self._address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            allowed = f"the address of a running Dask scheduler, as tcp://127.0.0.1:8786 ({error})"
            raise InputError("--dask", self._address, allowed) from None
