"""Methods as text, grids, and what makes two runs the same."""

from __future__ import annotations

import pytest

from instances.errors import InputError
from solver.benchmark.record import all_knobs
from solver.benchmark.task import RunLimits, label_of, read_choice
from solver.methods import METHODS
from tests.solver.benchmark.making import record, tasks


def test_a_method_with_knobs() -> None:
    choice = read_choice("mocap:batch=best:iterations=7")
    assert choice.method == "mocap"
    assert (choice.knobs["batch"], choice.knobs["iterations"]) == ("best", 7)
    # Everything else is at its default, and only what is not is in the label.
    assert set(choice.knobs) == set(METHODS["mocap"].knobs)
    assert read_choice(choice.label) == choice
    assert read_choice("mocap").label == "mocap"
    assert label_of("unknown", {"knob": 1}, chunks=4) == "unknown:knob=1:chunks=4"


@pytest.mark.parametrize("text", ["none", "mocap:batch", "mocap:none=1", "mocap:batch=worst", "mocap:=best", ""])
def test_what_is_no_method(text: str) -> None:
    with pytest.raises(InputError):
        read_choice(text)


def test_a_grid_has_every_combination_once() -> None:
    found = tasks("gpipe", "cpp", seeds=(0, 1))
    assert [(task.seed, task.choice.method) for task in found] == [(0, "gpipe"), (0, "cpp"), (1, "gpipe"), (1, "cpp")]
    assert len({task.key for task in found}) == 4


def test_limits_and_instance_make_another_run() -> None:
    keys = {
        tasks()[0].key,
        tasks(limits=RunLimits(10.0))[0].key,
        tasks(limits=RunLimits(20.0, 1e9))[0].key,
        tasks(workload__requests=5)[0].key,
    }
    assert len(keys) == 4
    assert tasks(name="another name")[0].key == tasks()[0].key


def test_a_knob_that_a_record_does_not_have_yet_is_at_its_default() -> None:
    known = record(method="mocap", knobs={"batch": "best"})
    assert known.key.knobs == all_knobs("mocap", read_choice("mocap:batch=best").knobs)
    assert record(versions={"waferplan": "0"}).key != record(versions={"waferplan": "1"}).key
