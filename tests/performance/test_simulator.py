"""The simulator and its yardstick: SimPy finds the same ends of tasks, and both are timed; no assertion on times."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from solver.simulation.engine import run
from solver.simulation.program import NO_LIMIT_UNITS, Program
from solver.simulation.program_file import read_program
from tests.performance import simpy_pipeline
from tests.performance.cases import LARGEST, SMALL, YARDSTICK, Size, program_of

CPU = pytest.mark.benchmark(timer=time.process_time)
"""Seconds of CPU: other work on the machine is not counted."""


def _simpy_agrees(program: Program) -> bool:
    ends: list[int] = run(program).end_ps.tolist()
    return simpy_pipeline.simulate(simpy_pipeline.read(program)) == ends


@pytest.mark.parametrize("size", [SMALL, Size(8, 16, 4), Size(12, 30, 4), YARDSTICK], ids=str)
def test_simpy_agrees(size: Size) -> None:
    program = program_of(size)
    outcome = run(program, traced=True)
    assert outcome.events is not None
    # The case is worth its name: transfers wait for links, and dies stand still to serve fetches.
    assert len(outcome.events.transfers) == size.transfers
    assert (outcome.events.transfers[:, 6] > outcome.events.transfers[:, 5]).mean() > 0.3
    assert outcome.stall_ps.min() > 0
    assert _simpy_agrees(program)
    # With every memory just large enough.
    assert _simpy_agrees(replace(program, capacity_units=outcome.peak_units))


def test_simpy_agrees_where_tasks_wait_for_memory() -> None:
    # Each of two stages keeps 8 of the 9 bytes of its first chunk at its host. The second needs 8 bytes more, there are
    # 16 in all: it waits until the write has arrived.
    document = {
        "die_of": [[0, 0], [0, 1]],
        "compute_s": [[1.13, 1.27, 1.31, 1.09], [1.21, 1.03, 1.17, 1.39]],
        "activation_bytes": [1, 1, 1, 1],
        "kv_bytes": [[9, 8, 7, 6]] * 2,
        "arrivals_s": [0, 0.37],
        "link_bytes_per_s": 2.3,
        "hop_latency_s": 0.011,
        "host": {"host_bytes": 1000, "host_bytes_per_s": 7.3},
        "spill": [
            {"stage": stage, "chunk": chunk, "creditor": "host", "bytes": kept}
            for stage in range(2)
            for chunk, kept in enumerate((8, 7, 6))
        ],
        "capacity_bytes": [16, 16],
    }
    program = read_program(document)
    unlimited = replace(program, capacity_units=np.full(2, NO_LIMIT_UNITS))
    assert (run(program).end_ps > run(unlimited).end_ps).any()
    assert _simpy_agrees(program)
    assert _simpy_agrees(unlimited)


@CPU
@pytest.mark.parametrize("size", [Size(16, 16, 4), YARDSTICK, LARGEST], ids=str)
def test_replay_of_a_program(benchmark: Any, size: Size) -> None:
    program = program_of(size)
    run(program)
    benchmark.extra_info.update(tasks=size.tasks, transfers=size.transfers)
    assert not benchmark(run, program).deadlock


@CPU
def test_simpy_program(benchmark: Any) -> None:
    inputs = simpy_pipeline.read(program_of(YARDSTICK))
    benchmark.extra_info.update(tasks=YARDSTICK.tasks, transfers=YARDSTICK.transfers)
    assert max(benchmark.pedantic(simpy_pipeline.simulate, (inputs,), rounds=3)) > 0
