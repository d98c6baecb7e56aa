"""Suites by name and by folder; what is known of the shipped ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formulations.interface import relative_gap
from instances.errors import InputError
from instances.instance import Instance
from instances.plan import Plan
from instances.suites import find_suite, suite_names
from solver.benchmark.best_known import load_best_known
from solver.benchmark.placements import Placing
from solver.benchmark.session import select
from solver.evaluate import Evaluator
from tests.builders import small_document
from tests.solver.benchmark.brute_tiny import SPILLING, brute_force


def write(folder: Path, file: str, **changes: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / file).write_text(json.dumps(small_document(**changes)), encoding="utf-8")


@pytest.mark.parametrize("name", suite_names())
def test_what_is_known_of_a_shipped_suite_is_sound(name: str) -> None:
    (one,) = select([name])
    suite, known = one.suite, one.best_known
    assert suite.asks
    if suite.best_known.exists():
        entries = json.loads(suite.best_known.read_text(encoding="utf-8"))["instances"]
        # Nothing is kept of instances that have changed or are gone.
        assert set(known) == set(entries)
    for entry in known.values():
        gap = relative_gap(entry.value, entry.bound)
        assert gap is None or gap > -1e-9
        assert not entry.proved or (gap is not None and gap <= 1e-4)


@pytest.mark.parametrize("name", suite_names())
def test_best_known_values_replay(name: str) -> None:
    (one,) = select([name])
    problems: list[Instance | Placing] = [*one.instances, *one.placings]
    for problem in problems:
        entry = one.best_known.get(problem.name)
        if entry is None or entry.value is None:
            continue
        file = one.suite.plan_file(problem.name)
        if isinstance(problem, Instance):
            value = Evaluator(problem).full(Plan.load(file)).value
        else:
            value = problem.value(json.loads(file.read_text(encoding="utf-8"))["placement"])
        assert value == pytest.approx(entry.value, rel=1e-9), problem.name


@pytest.mark.parametrize("number", range(4))
def test_best_known_values_of_tiny_are_those_of_enumeration(number: int) -> None:
    suite = find_suite("tiny")
    instance = suite.load()[number]
    entry = load_best_known(suite, [instance])[instance.name]
    value, _, _ = brute_force(instance)
    assert entry.value is not None
    if instance.name in SPILLING:
        # Parts of chunks may be spilled too, which is more than enumeration tries.
        assert entry.value <= value
    else:
        assert entry.value == pytest.approx(value, rel=1e-9)


def test_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "mine", "b.json", name="b")
    write(tmp_path / "mine", "a.json", name="a")
    (tmp_path / "mine" / "best_known.json").write_text('{"instances": {}}', encoding="utf-8")
    (tmp_path / "mine" / "README.md").write_text("# mine\n\n**Asks:** what\nelse.\n\nMore.\n", encoding="utf-8")
    suite = find_suite(str(tmp_path / "mine"))
    assert (suite.name, suite.asks) == ("mine", "what else.")
    (one,) = select([str(tmp_path / "mine")])
    assert [instance.name for instance in one.instances] == ["a", "b"]


def test_what_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one of tight"):
        find_suite("tihgt")
    with pytest.raises(InputError, match="instance files"):
        find_suite(str(tmp_path))
    write(tmp_path / "one", "a.json")
    write(tmp_path / "one", "b.json")
    with pytest.raises(InputError, match=r"b\.json.*name"):
        select([str(tmp_path / "one")])
    write(tmp_path / "tiny", "a.json")
    with pytest.raises(InputError, match="different names"):
        select(["tiny", str(tmp_path / "tiny")])
