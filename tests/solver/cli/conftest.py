"""Files of the small instance and its plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import small_document, small_instance, small_plan_document


@pytest.fixture
def instance_file(tmp_path: Path) -> Path:
    """The small instance."""
    path = tmp_path / "small.json"
    path.write_text(json.dumps(small_document()), encoding="utf-8")
    return path


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    """A plan for it."""
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(small_plan_document(small_instance())), encoding="utf-8")
    return path
