"""Programs that no document can say, and programs that the engine would misread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from instances.mesh import Mesh
from solver.simulation.engine import run
from solver.simulation.network import build_network
from solver.simulation.program import Program
from solver.simulation.program_check import check_program
from solver.simulation.program_file import read_program
from tests.solver.simulation.documents import line, spill
from tests.strategies import programs


def _folded(order: list[int]) -> Program:
    """Two stages on one die, chunks of 2 s and 3 s: tasks 0 and 1 are chunk 0 at stages 0 and 1, 2 and 3 chunk 1."""
    program = read_program(line([[2, 3], [2, 3]], activation_bytes=[7, 7], kv_bytes=[[1, 1], [1, 1]]))
    tasks = np.zeros(4, dtype=np.int32)
    memory = np.array([4], dtype=np.int64)
    return replace(
        program,
        die=tasks,
        die_ptr=np.array([0, 4], dtype=np.int64),
        die_tasks=np.array(order, dtype=np.int32),
        group_die=np.zeros(2, dtype=np.int32),
        capacity_units=memory,
        static_units=memory * 0,
        host_capacity_units=memory * 0,
        network=build_network(Mesh(1, 1), [(0, 0)], link_bytes_per_s=1),
    )


def test_two_stages_on_one_die() -> None:
    # A transfer inside the die takes no time: 2 + 2 + 3 + 3. Both stages' KV is in the same memory: 1, 2, 3 units, then
    # stage 0 gives back its 2.
    program = _folded([0, 1, 2, 3])
    check_program(program)
    outcome = run(program)
    assert outcome.end_ps.tolist() == [2 * 10**12, 4 * 10**12, 7 * 10**12, 10 * 10**12]
    assert outcome.peak_units.tolist() == [3]
    assert run(replace(program, capacity_units=program.capacity_units - 2)).deadlock


def test_a_die_runs_its_own_order() -> None:
    # Chunk 1 enters before chunk 0 goes on: 2, then 2 + 3 for task 2, then 7 for task 1, then 10.
    outcome = run(_folded([0, 2, 1, 3]))
    assert outcome.end_ps.tolist() == [2 * 10**12, 7 * 10**12, 5 * 10**12, 10 * 10**12]


def test_an_order_that_waits_for_itself_is_a_deadlock() -> None:
    outcome = run(_folded([1, 0, 2, 3]))
    assert outcome.deadlock
    assert [one.reason for one in outcome.waiting] == ["activation"]


@given(programs())
def test_documents_give_sound_programs_and_traces_change_nothing(document: dict[str, Any]) -> None:
    program = read_program(document)
    check_program(program)
    fast, traced = run(program), run(program, traced=True)
    for name in ("start_ps", "end_ps", "compute_start_ps", "stall_ps", "peak_units", "host_peak_units"):
        assert getattr(fast, name).tolist() == getattr(traced, name).tolist()
    assert fast.link_units.tolist() == traced.link_units.tolist()
    assert fast.link_busy_ps.tolist() == traced.link_busy_ps.tolist()
    assert (fast.byte_hops_units, fast.waiting) == (traced.byte_hops_units, traced.waiting)


SPILLED = line([[1, 1], [1, 1], [1, 1]], kv_bytes=[[3, 1]] * 3, spill=[spill(1, 0, 0, 1), spill(1, 0, 2, 1)])


@pytest.mark.parametrize(
    ("field", "index", "value", "said"),
    [
        ("duration_ps", 0, -1, "duration_ps"),
        ("successor", 0, 6, "successor"),
        ("inputs", 0, 1, "inputs"),
        ("die", 0, 1, "die_tasks and die disagree"),
        ("die_tasks", 0, 2, "every task once"),
        ("group", 0, 1, "group_die or group_stage"),
        ("stage", 0, 1, "group_die or group_stage"),
        ("chunk", 0, 5, "numbered by"),
        ("write_slot", 0, 7, "write_slot"),
        ("write_units", 0, 0, "write_units"),
        ("write_ptr", -1, 9, "write_ptr"),
        ("slot_die", 0, 1, "on the group's own die"),
        ("slot_stage", 0, 2, "order of slot_stage"),
        ("slot_is_host", 1, True, "slot_die of a host"),
        ("closes_group", 1, True, "closes its group"),
        ("static_units", 0, 1 << 61, "bytes add up"),
    ],
)
def test_a_corrupt_program_is_refused(field: str, index: int, value: int, said: str) -> None:
    program = read_program(SPILLED)
    check_program(program)
    array = getattr(program, field).copy()
    array[index] = value
    with pytest.raises(ValueError, match=said):
        check_program(replace(program, **{field: array}))


def test_a_wrong_number_type_or_length_is_refused() -> None:
    program = read_program(SPILLED)
    with pytest.raises(ValueError, match="duration_ps is float64"):
        check_program(replace(program, duration_ps=program.duration_ps.astype(np.float64)))
    with pytest.raises(ValueError, match="capacity_units is"):
        check_program(replace(program, capacity_units=program.capacity_units[:1]))
