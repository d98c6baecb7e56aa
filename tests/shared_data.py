"""Bulk test data that is not part of the repository: the folder ``shared`` beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def shared_path(relative: str) -> Path:
    """Path of a file or folder in ``shared`` beside the repository, e.g. ``shared_path("data/hf_configs")``.

    Usable in tests, fixtures and at module level. Where the path is absent the test is skipped, with the reason
    shown; under continuous integration (``CI`` set) it fails instead, since a run that skips these tests checks
    too little. ``WAFERPLAN_NO_SHARED`` set to anything says that there the data is absent on purpose.

    Raises
    ------
    ValueError
        If ``relative`` leaves the folder.
    """
    shared = REPOSITORY.parent / "shared"
    if Path(relative).is_absolute() or ".." in Path(relative).parts:
        raise ValueError(f"{relative!r} is not a path inside the folder of shared data")
    path = shared / relative
    if path.exists():
        return path
    reason = f"no ../shared/{relative} beside the repository"
    if os.environ.get("CI") and not os.environ.get("WAFERPLAN_NO_SHARED"):
        pytest.fail(f"{reason}, and CI is set (set WAFERPLAN_NO_SHARED=1 to skip such tests)", pytrace=False)
    pytest.skip(reason, allow_module_level=True)
