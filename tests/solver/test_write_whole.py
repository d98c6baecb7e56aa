"""Result files: whole or not at all, and no surprise for who owns the path."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from instances.errors import InputError
from solver.result import Result, write_whole


@pytest.fixture
def umask() -> Iterator[None]:
    """Files of this test are for their owner alone unless a test says otherwise."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_a_new_file_respects_the_umask(tmp_path: Path) -> None:
    write_whole(tmp_path / "r.json", "1")
    assert _mode(tmp_path / "r.json") == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.usefixtures("umask")
def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    write_whole(path, "new")
    assert (path.read_text(encoding="utf-8"), _mode(path)) == ("new", 0o640)


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target.json", tmp_path / "link.json"
    if exists:
        target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_whole(pipe, "through")
    reader.join()
    assert read == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half \ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]


def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    path = tmp_path / f"{'n' * 250}.json"
    write_whole(path, "1")
    assert path.read_text(encoding="utf-8") == "1"


@pytest.mark.parametrize("version", [True, 1.0, "1", 2, None])
def test_the_version_of_a_result_is_a_whole_number(version: object) -> None:
    document = {
        "instance": {},
        "fingerprint": "0123",
        "method": "exact",
        "status": "unknown",
        "stop_reason": "time_limit",
        "objective": {"name": "makespan"},
        "runtime_s": 0.0,
        "seed": 0,
        "engine": {"name": "waferplan", "version": "1", "native_status": ""},
    }
    assert Result.parse({**document, "schema_version": 1}).schema_version == 1
    with pytest.raises(InputError, match="schema_version"):
        Result.parse({**document, "schema_version": version})
