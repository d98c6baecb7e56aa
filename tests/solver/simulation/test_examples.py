"""The worked replays beside the specification, reproduced exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from solver.simulation.program_file import replay_document
from tests.shared_data import shared_path

EXAMPLES = sorted(shared_path("spec/examples").glob("*.json"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    example = json.loads(path.read_text(encoding="utf-8"))
    expected = example["expected"]
    found = replay_document(example["input"])
    if expected["deadlock"]:
        assert found["deadlock"]
        assert found["says"] == expected["says"]
        return
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key] == (value if isinstance(value, bool) else pytest.approx(value, rel=0, abs=1e-9)), key


def test_all_examples_are_there() -> None:
    assert len(EXAMPLES) == 28
