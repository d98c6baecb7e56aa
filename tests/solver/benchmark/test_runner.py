"""Grids: many at a time, what is recorded is not done again, what is interrupted leaves nothing behind."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pytest

from instances.errors import InputError
from solver.benchmark.pools import LocalPool
from solver.benchmark.record import Record
from solver.benchmark.records_file import RecordsFile, read_records
from solver.benchmark.runner import run_all
from solver.benchmark.task import Task
from tests.solver.benchmark.making import record, tasks
from tests.solver.benchmark.run_functions import HERE


class Ear:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.counts: tuple[int, int] = (0, 0)
        self.begun: list[Task] = []
        self.done: list[Record] = []

    def planned(self, total: int, known: int) -> None:
        self.counts = (total, known)

    def started(self, task: Task) -> None:
        self.begun.append(task)

    def ended(self, record: Record) -> None:
        self.done.append(record)


class AtOnce:
    """A pool whose runs take no time; ``failing`` seeds are errors."""

    def __init__(self, failing: Sequence[int] = ()) -> None:
        self.failing = failing

    def records(self, tasks: Sequence[Task], on_start: Callable[[Task], None]) -> Generator[Record, None, None]:
        for task in tasks:
            on_start(task)
            yield made(task, error="no luck" if task.seed in self.failing else None)


def made(task: Task, error: str | None = None) -> Record:
    key = task.key
    return record(
        suite=task.suite,
        fingerprint=task.fingerprint,
        method=task.choice.method,
        knobs=dict(task.choice.knobs),
        seed=task.seed,
        time_limit_s=key.time_limit_s,
        versions={"waferplan": key.version},
        error=error,
    )


def test_only_what_has_no_record_is_done(tmp_path: Path) -> None:
    path, ear = tmp_path / "r.jsonl", Ear()
    with RecordsFile.open(path) as file:
        list(run_all(tasks("gpipe", seeds=(0, 1)), AtOnce(), ear, file=file))
    assert ear.counts == (2, 0)
    ear = Ear()
    with RecordsFile.open(path) as file:
        found = list(run_all(tasks("gpipe", "cpp", seeds=(0, 1, 2)), AtOnce(), ear, file=file))
    assert ear.counts == (6, 2)
    assert len(ear.begun) == len(ear.done) == 4
    assert {one.key for one in found} == {task.key for task in tasks("gpipe", "cpp", seeds=(0, 1, 2))}
    assert len(path.read_bytes().splitlines()) == 6


def test_records_of_other_grids_and_versions_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    old = made(tasks()[0]).model_copy(update={"versions": {"waferplan": "0.0.1"}})
    path.write_bytes(old.line())
    with RecordsFile.open(path) as file:
        found = list(run_all(tasks(), AtOnce(), Ear(), file=file))
    assert [one.versions for one in found] == [{"waferplan": tasks()[0].key.version}]
    assert len(read_records(path).records) == 2


def test_errors_are_done_again_if_asked_for(tmp_path: Path) -> None:
    path, grid = tmp_path / "r.jsonl", tasks(seeds=(0, 1))
    with RecordsFile.open(path) as file:
        list(run_all(grid, AtOnce(failing=(1,)), Ear(), file=file))
    with RecordsFile.open(path) as file:
        assert [one.error for one in run_all(grid, AtOnce(), Ear(), file=file)] == [None, "no luck"]
    with RecordsFile.open(path) as file:
        assert [one.error for one in run_all(grid, AtOnce(), Ear(), file=file, retry_errors=True)] == [None, None]
    assert [one.error for one in read_records(path).records] == [None, None]


def test_many_at_a_time() -> None:
    ear = Ear()
    pool = LocalPool(3, function=f"{HERE}:quick")
    found = list(run_all(tasks(seeds=range(4)), pool, ear))
    assert sorted((one.seed, one.value) for one in found) == [(0, 1.0), (1, 2.0), (2, 3.0), (3, 4.0)]
    assert len(ear.begun) == len(ear.done) == 4
    assert list(run_all([], pool, ear)) == []


def test_an_interruption_kills_what_runs() -> None:
    ear, before = Ear(), set(threading.enumerate())
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(LocalPool(2, function=f"{HERE}:hang").records(tasks(seeds=range(3)), ear.started))
    timer.join()
    # Two were begun, and the third never was; whoever watched them is gone.
    assert len(ear.begun) == 2
    assert set(threading.enumerate()) <= before


def test_what_goes_wrong_in_a_thread_is_raised() -> None:
    def on_start(task: Task) -> None:
        raise InputError("out", "x", "room")

    with pytest.raises(InputError, match="room"):
        list(LocalPool(1, function=f"{HERE}:quick").records(tasks(), on_start))
