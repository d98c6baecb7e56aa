"""Kill -9 in mid-run: what was done is there once, and the rest is done by the next start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from solver.benchmark.record import Record
from solver.benchmark.records_file import read_records
from tests.shared_data import REPOSITORY

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
WAIT_S = 120.0


def begin(path: Path, runs: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.solver.benchmark.driver", str(path), str(runs)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def whole_lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")] if size(path) else []


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_again_and_again(tmp_path: Path, kills: int) -> None:
    path, runs = tmp_path / "records.jsonl", 4 * kills
    kept: list[bytes] = []
    for _ in range(kills):
        process = begin(path, runs)
        end, before = time.monotonic() + WAIT_S, size(path)
        # As soon as something new is in the file, be it a part of a line.
        while size(path) == before and process.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        lines = whole_lines(path)
        # No completed record is lost or changed.
        assert lines[: len(kept)] == kept
        assert len(lines) > len(kept) or len(kept) == runs
        kept = lines
    out, errors = begin(path, runs).communicate(timeout=WAIT_S)
    assert errors == ""
    assert int(out) == runs - len(kept)
    reading = read_records(path)
    assert reading.problems == ()
    assert sorted(record.seed for record in reading.records) == list(range(runs))
    # Each once, and none torn.
    assert [Record.model_validate_json(line).seed for line in whole_lines(path)] == [
        one.seed for one in reading.records
    ]
