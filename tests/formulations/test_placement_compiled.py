"""What compiled searches are kept under."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from formulations.compiled import name_with_sources


def test_an_edit_in_another_file_changes_the_name(tmp_path: Path) -> None:
    module = ModuleType("part")
    source = tmp_path / "part.py"
    module.__file__ = str(source)
    source.write_text("x = 1\n", encoding="utf-8")
    before = name_with_sources("walk", [module])
    assert before.startswith("walk_")
    assert name_with_sources("walk", [module]) == before
    source.write_text("x = 2\n", encoding="utf-8")
    assert name_with_sources("walk", [module]) != before


def test_a_module_without_a_file_is_no_obstacle() -> None:
    assert name_with_sources("walk", [ModuleType("part")]) == name_with_sources("walk", [])
