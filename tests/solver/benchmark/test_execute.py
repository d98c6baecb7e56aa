"""One run from outside: whatever comes of it is a record."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from solver.benchmark.execute import StoppedError, execute
from solver.benchmark.task import CAPACITY, Choice, RunLimits, Task
from tests.solver.backends.test_isolated import is_gone
from tests.solver.benchmark.making import tasks
from tests.solver.benchmark.run_functions import HERE


def task(method: str = "gpipe", **limits: float) -> Task:
    return tasks(method, limits=RunLimits(**{"time_s": 20.0, **limits}))[0]


def test_a_run() -> None:
    found = execute(task())
    assert (found.status, found.error, found.suite, found.instance) == ("feasible", None, "small", "small")
    assert found.key == task().key
    assert found.plan is not None
    assert found.metrics is not None
    assert found.value == found.metrics.mean_latency_s
    assert found.bound is not None
    assert found.gap is not None
    # A Python with numpy and ortools in it takes more than 50 MB and less than 4 GB.
    assert found.peak_memory_bytes is not None
    assert 5e7 < found.peak_memory_bytes < 4e9
    assert {"waferplan", "ortools", "python"} <= set(found.versions)


def test_a_run_without_room_is_a_record() -> None:
    found = execute(tasks("exact", limits=RunLimits(20.0, 1.5e8))[0])
    assert (found.status, found.stop_reason, found.value) == ("unknown", "error", None)
    assert found.error is not None


def test_an_error_of_the_method_is_a_record() -> None:
    # What bad data do to a run: this instance has costs for one length of chunks, which no method can use.
    found = execute(tasks(pipeline__chunk_quantum=1, workload__tokens=100_000)[0])
    assert (found.status, found.stop_reason) == ("unknown", "error")
    assert found.error is not None
    assert "InputError: pipeline.chunk_quantum" in found.error


def test_a_crash_is_a_record_with_what_was_known() -> None:
    found = execute(task(), function=f"{HERE}:crash")
    assert (found.status, found.stop_reason, found.value, found.bound) == ("feasible", "error", 5.0, 2.0)
    assert found.gap == pytest.approx((5 - 2) / 5)
    assert found.error is not None
    assert "SIGABRT" in found.error
    assert "the engine went wrong" in found.error
    assert found.cpu == "a processor"


def test_a_run_that_does_not_end_is_killed_and_a_record() -> None:
    # Killed after 0.2 s and half of that again, beside 0.1 s for loading.
    found = execute(task(time_s=0.2), function=f"{HERE}:hang", loading_s=0.1)
    assert (found.status, found.stop_reason, found.value) == ("feasible", "time_limit", 5.0)
    assert found.error is not None
    assert found.error.startswith("killed")
    assert is_gone(int(found.cpu or ""))


def test_a_run_can_be_given_up() -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    began = time.monotonic()
    with pytest.raises(StoppedError):
        execute(task(), stop.is_set, function=f"{HERE}:hang")
    # Far below the limit of 20 s.
    assert time.monotonic() - began < 15


def test_a_search_for_the_longest_request() -> None:
    # Memory for the weights and about three of the four requests' KV.
    base = tasks(hardware__die__hbm_bytes="800 kB", pipeline__max_batch=1, pipeline__max_chunks=4)[0]
    found = execute(replace(base, objective="max_tokens", choice=Choice(CAPACITY, {"way": "none"}), chunks=2))
    assert (found.error, found.objective, found.method, found.chunks) == (None, "max_tokens", "capacity", 2)
    assert found.value is not None
    assert found.value % 256 == 0
