"""Orders of tasks on dies (rule ``die_serial``, V-shaped schedules), against the witness and written out."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.plan import Schedule
from solver.simulation.orders import die_orders
from tests.reference.lowering import die_programs
from tests.reference.program import read_program
from tests.solver.simulation.documents import line
from tests.solver.simulation.v_plans import SCHEDULES


def _orders(schedule: Schedule, die_of_stage: list[int], chunks: list[int]) -> list[list[tuple[int, int, int]]]:
    """For each die its tasks as (wave, chunk, stage)."""
    labels = [(w, i, s) for w, count in enumerate(chunks) for i in range(count) for s in range(len(die_of_stage))]
    pointers, tasks = die_orders(schedule, die_of_stage, chunks)
    numbers = tasks.tolist()
    return [[labels[task] for task in numbers[start:stop]] for start, stop in pairwise(pointers)]


def _words(order: list[tuple[int, int, int]], dies: int) -> str:
    return " ".join(("H" if stage < dies else "T") + str(chunk) for _, chunk, stage in order)


@pytest.mark.parametrize(
    ("schedule", "first", "second", "fold"),
    [
        # Three dies, four chunks. First die, d = 2: four heads before T0 (vpp), five, here all four, if swapped.
        ("vpp", "H0 H1 H2 H3 T0 T1 T2 T3", "H0 H1 T0 H2 T1 H3 T2 T3", "H0 T0 H1 T1 H2 T2 H3 T3"),
        ("vpp-async", "H0 H1 H2 H3 T0 T1 T2 T3", "H0 H1 H2 T0 H3 T1 T2 T3", "H0 T0 H1 T1 H2 T2 H3 T3"),
    ],
)
def test_orders_written_out(schedule: Schedule, first: str, second: str, fold: str) -> None:
    orders = _orders(schedule, [0, 1, 2, 2, 1, 0], [4])
    assert [_words(order, 3) for order in orders] == [first, second, fold]


def test_packed_waves_are_one_list() -> None:
    orders = _orders("vpp-packed", [0, 1, 1, 0], [2, 3])
    # The second wave's heads follow the first's: chunks 0 1 | 0 1 2.
    assert [_words(order, 2) for order in orders] == ["H0 H1 H0 T0 H1 T1 H2 T0 T1 T2", "H0 T0 H1 T1 H0 T0 H1 T1 H2 T2"]
    alone = _orders("vpp-async", [0, 1, 1, 0], [2, 3])
    assert _words(alone[0], 2) == "H0 H1 T0 T1 H0 H1 H2 T0 T1 T2"


@given(st.integers(1, 5), st.lists(st.integers(1, 7), min_size=1, max_size=4), st.sampled_from(SCHEDULES))
def test_v_orders_equal_the_witness(dies: int, chunks: list[int], schedule: Schedule) -> None:
    row = [[0, column] for column in range(dies)]
    document = line([[0]] * (2 * dies), die_of=row + row[::-1], schedule=schedule, waves=len(chunks))
    expected = die_programs(read_program(document), chunks)
    found = _orders(schedule, [*range(dies), *reversed(range(dies))], chunks)
    assert found == [[(task.wave, task.chunk, task.stage) for task in order] for order in expected.values()]


@given(st.integers(1, 5), st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_plain_orders(stages: int, chunks: list[int]) -> None:
    found = _orders("chunked", list(range(stages)), chunks)
    assert found == [[(w, i, s) for w, count in enumerate(chunks) for i in range(count)] for s in range(stages)]
