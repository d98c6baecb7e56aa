"""What tests put in place of a run: quick, slow, crashing, raising."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from instances.instance import Instance
from solver.benchmark.environment import Environment, package_version
from solver.benchmark.messages import Alive, Better, Ended, Started
from solver.benchmark.task import Task
from solver.result import Engine, ObjectiveValue, Result

HERE = "tests.solver.benchmark.run_functions"
QUICK_S = 0.15
VERSIONS = {"waferplan": package_version("waferplan") or ""}
ENVIRONMENT = Environment(VERSIONS, "a processor", "abc")
Emit = Callable[[object], None]


def quick(task: Task, emit: Emit) -> Ended:
    """A run of 0.15 s whose value is its seed + 1."""
    emit(Started(ENVIRONMENT))
    time.sleep(QUICK_S)
    return Ended(made_up(task, value=task.seed + 1.0), None, 1000)


def crash(task: Task, emit: Emit) -> Ended:
    """An engine that goes wrong after its first plan."""
    emit(Started(ENVIRONMENT))
    emit(Better(5.0, 2.0, None))
    sys.stderr.write("the engine went wrong\n")
    sys.stderr.flush()
    os.abort()


def hang(task: Task, emit: Emit) -> Ended:
    """A run without end that gives signs of life; the first says its process number in place of a processor."""
    emit(Started(Environment(VERSIONS, str(os.getpid()), None)))
    emit(Better(5.0, None, None))
    while True:
        emit(Alive())
        time.sleep(0.05)


def made_up(task: Task, value: float) -> Result:
    """A result out of thin air."""
    instance = Instance.read(dict(task.instance))
    return Result(
        instance=instance.canonical(),
        fingerprint=instance.fingerprint,
        method=task.choice.method,
        status="feasible",
        stop_reason="iterations",
        objective=ObjectiveValue(name=instance.objective, value=value, bound=None, gap=None),
        runtime_s=QUICK_S,
        seed=task.seed,
        engine=Engine(name="none", version="0", native_status="made up"),
    )
