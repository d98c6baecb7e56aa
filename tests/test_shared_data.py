"""Shared data is found, skipped with a reason, or missed loudly under continuous integration."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import shared_data
from tests.shared_data import shared_path


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in an otherwise empty folder, outside continuous integration."""
    monkeypatch.setattr(shared_data, "REPOSITORY", tmp_path / "repository")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("WAFERPLAN_NO_SHARED", raising=False)
    return tmp_path


def test_present_data_is_found(checkout: Path) -> None:
    wanted = checkout / "shared" / "data" / "noc"
    wanted.mkdir(parents=True)
    assert shared_path("data/noc") == wanted


def test_absent_data_skips_with_a_reason(checkout: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"no \.\./shared/data/noc beside"):
        shared_path("data/noc")


def test_absent_data_fails_under_ci(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI is set"):
        shared_path("data/noc")


def test_absent_data_skips_under_ci_if_said_so(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("WAFERPLAN_NO_SHARED", "1")
    with pytest.raises(pytest.skip.Exception):
        shared_path("data/noc")


@pytest.mark.parametrize("relative", ["/data", "data/../../elsewhere"])
def test_paths_outside_are_refused(relative: str) -> None:
    with pytest.raises(ValueError, match="not a path inside"):
        shared_path(relative)
