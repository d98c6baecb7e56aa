"""The compiled loop is kept on disk under a name that changes with every file that it is made from."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from solver.simulation.compiled import compiled_entry


def _name(part: ModuleType) -> str:
    def loop() -> int:
        return 1

    compiled_entry(part)(loop)
    return loop.__qualname__


def test_an_edit_of_a_part_gives_another_name(tmp_path: Path) -> None:
    source = tmp_path / "part.py"
    part = ModuleType("part")
    part.__file__ = str(source)
    source.write_text("A = 1\n", encoding="utf-8")
    first = _name(part)
    assert first == _name(part)
    source.write_text("A = 2\n", encoding="utf-8")
    assert _name(part) != first
