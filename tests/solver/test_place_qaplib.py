"""Quadratic assignment problems: reading, which matrix is the grid, permutations and values as in QAPLIB."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from formulations.interface import EngineLimits
from formulations.placement.branch import BranchAndBound
from formulations.placement.problem import stated
from instances.errors import InputError
from solver.place.qaplib import QuadraticAssignment, grid_of, is_metric, read_qaplib
from solver.place.run import solve_assignment
from tests.shared_data import shared_path

LINE = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
FLOWS = np.array([[0, 5, 0], [5, 0, 0], [0, 7, 0]])
PROVED = ("nug12", "had12", "scr12", "scr15", "chr12a", "chr12b", "chr12c", "tai12a", "esc16i", "esc16f", "esc16a")
SLOWER = ("nug14", "nug15", "nug16b", "scr20", "esc16b", "esc16c", "esc16d", "esc16e", "esc16g", "esc16h", "esc16j")
REACHED = ("nug20", "nug30", "tho30", "sko42")


def write(folder: Path, text: str) -> Path:
    path = folder / "small.dat"
    path.write_text(text, encoding="utf-8")
    return path


def known_best(name: str) -> int:
    return int(shared_path(f"data/qaplib/{name}.sln").read_text(encoding="utf-8").split()[1])


def test_reads_numbers_in_any_layout(tmp_path: Path) -> None:
    problem = read_qaplib(write(tmp_path, "2\n\n0 1\n1 0  0\n 3 4.0 0\n"))
    assert problem.first.tolist() == [[0, 1], [1, 0]]
    assert problem.second.tolist() == [[0, 3], [4, 0]]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("n", "from 1 to")),
        ("0", ("n", "0")),
        ("1000000", ("n", "1000000")),
        ("2\n0 1 1 0\n0 1 1\n", ("numbers after n", "7", "8 in all")),
        ("2\n0 1 1 0\n0 1 1 0 5\n", ("numbers after n", "9")),
        ("2\n0 1\n1 x\n0 1 1 0\n", ("line 3", "'x'", "whole numbers")),
        ("2\n0 1\n1 -3\n0 1 1 0\n", ("line 3", "'-3'")),
        ("2\n0 1\n1 0.5\n0 1 1 0\n", ("line 3", "'0.5'")),
        ("2\n0 1\n1 12345678901\n0 1 1 0\n", ("line 3", "9 digits")),
        ("2\n1 1 1 0\n0 1 1 2\n", ("diagonals", "zeros")),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        read_qaplib(write(tmp_path, text))
    assert "small.dat" in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


def test_grids_and_metrics() -> None:
    assert grid_of(LINE) == (1, 3)
    assert grid_of(np.array([[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]])) == (2, 2)
    assert grid_of(2 * LINE) is None
    assert is_metric(2 * LINE)
    assert not is_metric(FLOWS)
    # A detour over the middle is shorter.
    assert not is_metric(np.array([[0, 1, 5], [1, 0, 1], [5, 1, 0]]))


@pytest.mark.parametrize("distances_first", [True, False])
def test_permutation_and_value_are_those_of_the_file(distances_first: bool) -> None:
    first, second = (LINE, FLOWS) if distances_first else (FLOWS, LINE)
    problem = QuadraticAssignment(first, second)
    assert problem.distances_first() is distances_first
    answer = solve_assignment(problem, EngineLimits(time_s=10.0))
    assert isinstance(answer.placement, list)
    best = min(problem.value(list(p)) for p in permutations((1, 2, 3)))
    # The flows 5 + 5 and 7 all go one hop: 17.
    assert best == 17
    assert (answer.status, answer.value, answer.bound) == ("optimal", 17.0, 17.0)
    assert problem.value(answer.placement) == 17


def test_the_matrix_with_more_entries_serves_as_distances_where_nothing_else_decides() -> None:
    dense = np.array([[0, 9, 1], [9, 0, 1], [1, 1, 0]])
    assert QuadraticAssignment(dense, FLOWS).distances_first()
    assert not QuadraticAssignment(FLOWS, dense).distances_first()


@pytest.mark.parametrize("name", ["nug12", "tho30", "sko42", "scr20", "nug16b"])
def test_grids_of_the_library_are_found(name: str) -> None:
    hops, _, cells = read_qaplib(shared_path(f"data/qaplib/{name}.dat")).placement_problem()
    assert cells is not None
    assert grid_of(hops) is not None


@pytest.mark.parametrize("name", ["nug12", "had12", "scr12", "scr15", "chr12a", "chr12b", "chr12c", "tai12a"])
def test_branch_and_bound_alone_finds_the_optimum(name: str) -> None:
    # Without a start, and told of none: what it cuts off, symmetric images among it, never holds all optima.
    qap = read_qaplib(shared_path(f"data/qaplib/{name}.dat"))
    hops, flows, cells = qap.placement_problem()
    problem = stated(hops, flows, qap.size, cells)
    search = BranchAndBound(problem, None)
    while not search.finished:
        search.run(10_000)
        assert search.bound is not None
        assert search.bound <= known_best(name)
    assert search.placement is not None
    assert (search.bound, problem.value(search.placement)) == (known_best(name), known_best(name))


def test_products_beyond_64_bits_are_counted_right() -> None:
    size, largest = 40, 999_999_999
    matrix = np.full((size, size), largest) - largest * np.eye(size, dtype=np.int64)
    problem = QuadraticAssignment(matrix, matrix)
    answer = solve_assignment(problem, EngineLimits(time_s=1.0))
    # Every permutation has the same value: 40 * 39 products.
    assert (answer.status, answer.value) == ("optimal", float(40 * 39 * largest**2))


@pytest.mark.parametrize("name", PROVED)
def test_library_problems_are_proved(name: str) -> None:
    prove(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOWER)
def test_larger_library_problems_are_proved(name: str) -> None:
    prove(name)


def prove(name: str) -> None:
    problem = read_qaplib(shared_path(f"data/qaplib/{name}.dat"))
    # Proofs end by themselves, within two minutes on a free core.
    answer = solve_assignment(problem, EngineLimits(time_s=900.0))
    assert (answer.status, answer.value, answer.bound) == ("optimal", known_best(name), known_best(name))
    assert isinstance(answer.placement, list)
    assert problem.value(answer.placement) == answer.value


@pytest.mark.slow
@pytest.mark.parametrize("name", REACHED)
def test_best_known_values_of_the_largest_are_reached(name: str) -> None:
    problem = read_qaplib(shared_path(f"data/qaplib/{name}.dat"))
    answer = solve_assignment(problem, EngineLimits(time_s=15.0))
    assert answer.value == known_best(name)
    assert answer.bound is not None
    assert answer.bound <= known_best(name)
