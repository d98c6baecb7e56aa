"""Placement problems in suites: files, values, runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from instances.errors import InputError
from solver.benchmark.execute import execute
from solver.benchmark.placements import read_placing
from solver.benchmark.session import select, tasks_of, update_best_known
from solver.benchmark.task import RunLimits, read_choice

# Flows of 2 between the first and second, 1 and 3 to the last.
ASSIGNMENT = "3\n0 2 1\n2 0 3\n1 3 0\n0 1 2\n1 0 1\n2 1 0\n"


def written(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_graph(tmp_path: Path) -> None:
    placing = read_placing(written(tmp_path, "small-1x3.csv", "source,target,weight\na,b,2\nb,c,3\na,c,1\n"))
    assert (placing.name, placing.objective) == ("small-1x3", "weighted_hops")
    # In a row a, b, c: 2 * 1 + 3 * 1 + 1 * 2; in the order b, a, c: 2 * 1 + 3 * 2 + 1 * 1.
    assert placing.value({"a": (0, 0), "b": (0, 1), "c": (0, 2)}) == 7
    assert placing.value({"a": (0, 1), "b": (0, 0), "c": (0, 2)}) == 9
    for wrong in (
        {"a": (0, 0)},
        {"a": (0, 0), "b": (0, 0), "c": (0, 1)},
        {"a": (0, 0), "b": (0, 1), "c": (1, 0)},
        [1, 2, 3],
    ):
        assert placing.value(wrong) is None


def test_an_assignment_problem(tmp_path: Path) -> None:
    placing = read_placing(written(tmp_path, "small.dat", ASSIGNMENT))
    # Both directions count: 2 * (2 * 1 + 1 * 2 + 3 * 1).
    assert placing.value([1, 2, 3]) == 14
    assert placing.value([1, 1, 3]) is None
    assert placing.value({"a": (0, 0)}) is None


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ends in its mesh"):
        read_placing(written(tmp_path, "small.csv", "a,b,1\n"))
    with pytest.raises(InputError, match="room for the 3 nodes"):
        read_placing(written(tmp_path, "small-1x2.csv", "a,b,1\nb,c,1\n"))


def test_a_run_and_its_best_known_value(tmp_path: Path) -> None:
    folder = tmp_path / "graphs"
    written(folder, "row-1x3.csv", "a,b,2\nb,c,3\na,c,1\n")
    selected = select([str(folder)])
    (task,) = tasks_of(selected, [read_choice("exact")], [0], RunLimits(20.0))
    record = execute(task)
    # The best order keeps b in the middle.
    assert (record.method, record.value, record.bound, record.status) == ("place", 7.0, 7.0, "optimal")
    wrong = record.model_copy(update={"value": 6.0, "bound": None})
    assert len(update_best_known(selected, [wrong]).refused) == 1
    assert update_best_known(selected, [record]).refused == []
    (again,) = select([str(folder)])
    assert again.best_known["row-1x3"].proved
