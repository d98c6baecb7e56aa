"""A traced run and a fast run of one program give the same totals, and the trace adds up to them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from solver.simulation.engine import Events, Run, run
from solver.simulation.program import Program
from solver.simulation.program_file import read_program
from tests.strategies import random_program

BATCHES, PROGRAMS_PER_BATCH = 10, 100


def _differences(fast: Run, traced: Run) -> list[str]:
    """Fields in which two runs differ, the trace itself aside."""
    names = [field.name for field in fields(Run) if field.name != "events"]
    return [name for name in names if not np.array_equal(getattr(fast, name), getattr(traced, name))]


def _totals_of_the_trace(program: Program, events: Events) -> dict[str, list[int]]:
    """What the events add up to, under the names of the totals."""
    links, dies = len(program.network.link_bytes_per_s), program.dies
    carried, busy_ps = np.zeros(links, dtype=np.int64), np.zeros(links, dtype=np.int64)
    transfer, link, start_ps, end_ps = events.holds.T
    np.add.at(carried, link, events.transfers[transfer, 4])
    np.add.at(busy_ps, link, end_ps - start_ps)
    peaks = np.concatenate((program.static_units, np.zeros(dies, dtype=np.int64)))
    np.maximum.at(peaks, events.memory[:, 1], events.memory[:, 2])
    stall_ps = np.zeros(dies, dtype=np.int64)
    np.add.at(stall_ps, events.stalls[:, 0], events.stalls[:, 2])
    return {
        "link_units": carried.tolist(),
        "link_busy_ps": busy_ps.tolist(),
        "peak_units": peaks[:dies].tolist(),
        "host_peak_units": peaks[dies:].tolist(),
        "stall_ps": stall_ps.tolist(),
        # A host link is no hop: the mesh's links come first.
        "byte_hops_units": [int(carried[(program.network.link_ends >= 0).all(axis=1)].sum())],
    }


@pytest.mark.parametrize("batch", range(BATCHES))
def test_traced_and_fast_totals_agree(batch: int) -> None:
    for number in range(PROGRAMS_PER_BATCH):
        document = random_program(np.random.default_rng((2, batch, number)))
        program = read_program(document)
        fast, traced = run(program), run(program, traced=True)
        assert fast.events is None and traced.events is not None
        assert _differences(fast, traced) == [], document
        expected = _totals_of_the_trace(program, traced.events)
        found = {name: np.atleast_1d(getattr(fast, name)).tolist() for name in expected}
        assert found == expected, document
