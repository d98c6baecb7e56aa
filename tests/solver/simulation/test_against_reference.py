"""The engine and the witness agree exactly on random programs.

Starts, ends, peaks, stalls and deadlocks; every transfer, link occupation and change of memory, in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from solver.simulation.program_file import replay_document
from tests.reference.simulator import replay
from tests.solver.simulation.replay_log import engine_log, first_differences, witness_log
from tests.strategies import programs, random_program

COMPARED = ("deadlock", "makespan_s", "latency_s", "peak_memory_bytes", "stall_s", "start_s", "end_s")
BATCHES, PROGRAMS_PER_BATCH = 10, 100


def differences(document: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Key -> (engine, witness), where they differ: in the result, or in the log of everything that happened."""
    simulator = replay(document)
    engine, witness = replay_document(document), simulator.result()
    if witness["deadlock"] and engine["deadlock"]:
        pairs = {
            "says": (engine["says"], witness["says"]),
            "waiting": (_memory_waits(engine), sorted((row["stage"], row["bytes"]) for row in witness["waiting"])),
        }
    else:
        pairs = {key: (engine.get(key), witness.get(key)) for key in COMPARED}
    differences: dict[str, tuple[Any, ...]] = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
    return differences | first_differences(engine_log(document), witness_log(simulator))


def _memory_waits(engine: dict[str, Any]) -> list[tuple[int, float]]:
    """Stage and bytes of the tasks that wait for memory; the engine also names those that wait for something else."""
    return sorted((row["stage"], row["bytes"]) for row in engine["waiting"] if row["reason"] == "memory")


@settings(max_examples=300)
@given(programs())
def test_engine_and_witness_agree(document: dict[str, Any]) -> None:
    assert differences(document) == {}


@pytest.mark.parametrize("batch", range(BATCHES))
def test_engine_and_witness_agree_in_bulk(batch: int) -> None:
    for number in range(PROGRAMS_PER_BATCH):
        document = random_program(np.random.default_rng((batch, number)))
        assert differences(document) == {}, document
