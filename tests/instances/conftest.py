"""A reader of small configs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.instances.configs import Reader


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    folder = tmp_path / "some-model"
    folder.mkdir()
    return Reader(folder)
