"""Program documents whose stages share dies: what they may say, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from instances.errors import InputError
from solver.simulation.program_check import check_program
from solver.simulation.program_file import read_program, replay_document
from tests.solver.simulation.documents import line, run_document, spill

FOLDED = line([[1, 2], [1, 2], [1, 2], [1, 2]], die_of=[[0, 0], [0, 1], [0, 1], [0, 0]], kv_bytes=[[1, 1]] * 4)
V: dict[str, Any] = FOLDED | {"schedule": "vpp-async"}
# Stages 0 and 2 on one die, stage 1 on the other.
MIXED = line([[1, 1], [1, 1], [1, 1]], die_of=[[0, 0], [0, 1], [0, 0]], kv_bytes=[[1, 1]] * 3)
ORDER = [[[0, 0, 0], [0, 2, 0], [0, 0, 1], [0, 2, 1]], [[0, 1, 0], [0, 1, 1]]]


def test_a_v_runs_heads_and_tails_by_turns() -> None:
    # Die 0 (d = 1): H0 0..1, H1 1..3, then T0, T1. Die 1: H0 1..2, T0 2..3, H1 3..5, T1 5..7.
    found = replay_document(V)
    assert [found["start_s"][task] for task in ("0,1,0", "0,2,0", "0,1,1", "0,2,1")] == [1, 2, 3, 5]
    assert [found["start_s"][task] for task in ("0,0,1", "0,3,0", "0,3,1")] == [1, 3, 7]
    assert found["makespan_s"] == 9
    # A die's peak is that of both of its stages. The first gives up two heads before its tails, the second holds two
    # heads and a tail from 3 to 5.
    assert found["peak_memory_bytes"] == [2, 3, 3, 2]


def test_an_order_is_kept() -> None:
    # Die 0 waits for stage 2 before the next chunk of stage 0: 0..1, then (0,1,0) 1..2, (0,2,0) 2..3, then again.
    found = replay_document(MIXED | {"order": ORDER})
    assert found["makespan_s"] == 6
    assert found["start_s"]["0,0,1"] == 3
    heads_first = [[[0, 0, 0], [0, 0, 1], [0, 2, 0], [0, 2, 1]], ORDER[1]]
    assert replay_document(MIXED | {"order": heads_first})["makespan_s"] == 4


def test_an_order_that_cannot_run_deadlocks() -> None:
    backwards = [[[0, 2, 0], [0, 0, 0], [0, 0, 1], [0, 2, 1]], ORDER[1]]
    found = replay_document(MIXED | {"order": backwards})
    assert (found["deadlock"], found["waiting"][0]["reason"]) == (True, "activation")


def test_waves_may_be_interleaved() -> None:
    document = line([[1, 1]], waves=2, order=[[[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]]])
    assert replay_document(document)["latency_s"] == [3, 4]


def test_programs_on_shared_dies_are_sound() -> None:
    for document in (V, MIXED | {"order": ORDER}):
        check_program(read_program(document))


def test_a_creditor_is_known_by_any_of_its_stages() -> None:
    # Stages 1 and 2 share a die: each of them names its memory. One byte goes there in 1..2 and comes back in 2..3,
    # while T0 stands still: 2..4 in place of 2..3.
    for creditor in (1, 2):
        program, run = run_document(V | {"spill": [spill(0, 0, creditor, 1)]})
        assert run.stall_ps.tolist() == [0, 10**12]
        ends = dict(zip(zip(program.chunk, program.stage, strict=True), run.end_ps.tolist(), strict=True))
        assert ends[0, 2] == 4 * 10**12


def _folded(**changes: Any) -> dict[str, Any]:
    return V | changes


def _mixed(**changes: Any) -> dict[str, Any]:
    return MIXED | {"order": ORDER} | changes


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (FOLDED, "die_of"),
        (_folded(schedule="gpipe"), "schedule"),
        (_folded(schedule=3), "schedule"),
        (_folded(die_of=[[0, 0], [0, 1], [0, 2], [0, 0]]), "die_of"),
        (_folded(die_of=[[0, 0], [0, 0], [0, 0], [0, 0]]), "die_of"),
        (line([[1], [1], [1]], schedule="vpp"), "die_of"),
        (_folded(order=[]), "order"),
        (_folded(topology="ring"), "topology"),
        (_folded(topology="switch", disabled_links=[[[0, 0], [0, 1]]]), "disabled_links[0]"),
        (_folded(topology="torus", columns=4, disabled_links=[[[0, 0], [0, 2]]]), "disabled_links[0]"),
        (_folded(capacity_bytes=[9, 9, 9, 8]), "capacity_bytes[3]"),
        (_folded(capacity_bytes=[9] * 4, static_bytes=[1, 1, 2, 1]), "static_bytes[2]"),
        (_folded(spill=[spill(0, 0, 3, 1)]), "spill[0].creditor"),
        (_folded(spill=[spill(0, 0, 1, 0.5), spill(0, 0, 2, 0.5)]), "spill[1]"),
        (MIXED, "die_of"),
        (_mixed(order=[ORDER[0]]), "order"),
        (_mixed(order=3), "order"),
        (_mixed(order=[ORDER[0], [[0, 1, 0]]]), "order[1]"),
        (_mixed(order=[ORDER[0], [[0, 1, 1], [0, 1, 0]]]), "order[1][0]"),
        (_mixed(order=[ORDER[0], [[0, 1, 0], [0, 1, 0]]]), "order[1][1]"),
        (_mixed(order=[ORDER[0], [[0, 2, 0], [0, 1, 1]]]), "order[1][0]"),
        (_mixed(order=[ORDER[0], [[1, 1, 0], [0, 1, 1]]]), "order[1][0]"),
        (_mixed(order=[ORDER[0], [[0, 1, 0], [0, 1, 2]]]), "order[1][1]"),
        (_mixed(order=[ORDER[0], [[0, 1], [0, 1, 1]]]), "order[1][0]"),
        (_mixed(order=[ORDER[0], [[0, 1, 0.5], [0, 1, 1]]]), "order[1][0]"),
    ],
)
def test_what_is_refused(document: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        read_program(document)
    assert caught.value.field == field


def test_equal_entries_of_a_shared_die_are_its_own() -> None:
    program = read_program(_folded(capacity_bytes=[9, 8, 8, 9], static_bytes=[1, 2, 2, 1]))
    assert (program.dies, program.stages) == (2, 4)
    assert (program.capacity_units.tolist(), program.static_units.tolist()) == ([9, 8], [1, 2])
