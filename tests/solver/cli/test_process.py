"""Commands as processes: streams, pipes, signals, exit codes, what is left behind."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from solver.result import Result
from tests.builders import small_document
from tests.solver.cli.running import finish, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and terminals")


@pytest.fixture
def long_run(tmp_path: Path) -> list[str]:
    """A solve that goes on for hours: annealing without an end in sight."""
    path = tmp_path / "long.json"
    document = small_document(workload__tokens=65536, pipeline__max_chunks=64, hardware__die__hbm_bytes="1 GB")
    path.write_text(json.dumps(document), encoding="utf-8")
    return ["solve", "long.json", "--method", "mocap", "--set", "iterations=1000000000", "--time-limit", "10000"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the small instance in it."""
    (tmp_path / "small.json").write_text(json.dumps(small_document()), encoding="utf-8")
    return tmp_path


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["methods"], 0),
        (["solve", "small.json", "--json"], 0),
        (["simulate", "--program", "small.json"], 2),
        (["solve", "small.json", "--chunks", "0"], 2),
        (["solve", "small.json", "--time-limit", "0.000001"], 3),
    ],
    ids=["list", "solve", "bad file", "bad option", "no time"],
)
def test_codes_and_streams(folder: Path, arguments: list[str], code: int) -> None:
    before = listed(folder)
    outcome = finish(start(*arguments, cwd=folder))
    assert outcome.code == code
    assert "Traceback" not in outcome.err
    if code == 2:
        assert (outcome.out, outcome.err.count("\n")) == ("", 1)
    else:
        # No terminal, so no progress.
        assert outcome.err == ""
    if "--json" in arguments:
        assert outcome.json["status"] == "optimal"
    assert listed(folder) == before


def test_infeasible(tmp_path: Path) -> None:
    (tmp_path / "i.json").write_text(json.dumps(small_document(hardware__die__hbm_bytes="50 kB")), encoding="utf-8")
    outcome = finish(start("solve", "i.json", "--json", cwd=tmp_path))
    assert (outcome.code, outcome.json["status"]) == (1, "infeasible")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(folder: Path, long_run: list[str], number: signal.Signals) -> None:
    terminal = Terminal()
    process = start(*long_run, "--json", "--out", "r.json", cwd=folder, stderr=terminal.writing)
    terminal.wait_for_a_value()
    process.send_signal(number)
    shown = terminal.rest()
    outcome = finish(process)
    assert outcome.code == 130
    assert "Traceback" not in shown
    assert outcome.json["stop_reason"] == "interrupted"
    assert outcome.json["plan"] is not None
    assert Result.load(folder / "r.json").objective.value == outcome.json["objective"]["value"]
    assert listed(folder) == ["long.json", "r.json", "small.json"]


def test_interrupted_where_a_script_ignores_the_signal(folder: Path, long_run: list[str]) -> None:
    # A shell starts background jobs of scripts with SIGINT ignored; a process started from here inherits that.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    terminal = Terminal()
    try:
        process = start(*long_run, cwd=folder, stderr=terminal.writing)
    finally:
        signal.signal(signal.SIGINT, before)
    terminal.wait_for_a_value()
    process.send_signal(signal.SIGINT)
    terminal.rest()
    outcome = finish(process)
    assert outcome.code == 130
    assert "interrupted" in outcome.out


def test_a_second_interrupt_ends_at_once(folder: Path, long_run: list[str]) -> None:
    terminal = Terminal()
    process = start(*long_run, "--out", "r.json", cwd=folder, stderr=terminal.writing)
    terminal.wait_for_a_value()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    shown = terminal.rest()
    outcome = finish(process)
    # By itself, or by the signal while Python was shutting down: in a shell both are 130.
    assert outcome.code in (130, -signal.SIGINT)
    assert "Traceback" not in shown
    if "r.json" in listed(folder):
        Result.load(folder / "r.json")


def test_a_closed_pipe_is_quiet(folder: Path) -> None:
    for arguments in (["--help"], ["solve", "small.json", "--json"]):
        reading, writing = os.pipe()
        os.close(reading)
        process = start(*arguments, cwd=folder, stdout=writing)
        os.close(writing)
        outcome = finish(process)
        assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_behind_standard_output_is_said(folder: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        outcome = finish(start("models", cwd=folder, stdout=full))
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert "standard output" in outcome.err


def test_closed_standard_streams(folder: Path) -> None:
    command = f'"{sys.executable}" -m solver solve small.json --out r.json --method cpp'
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    for streams in (">&-", "<&- >&- 2>&-"):
        done = subprocess.run(f"{command} {streams}", shell=True, cwd=folder, env=environment, check=False)
        assert done.returncode == 0, streams
        assert Result.load(folder / "r.json").method == "cpp"
        (folder / "r.json").unlink()


def test_progress_goes_to_a_terminal_only(folder: Path) -> None:
    terminal = Terminal()
    process = start("solve", "small.json", "--json", cwd=folder, stderr=terminal.writing)
    terminal.wait_for_a_value()
    assert "gap" in terminal.rest()
    outcome = finish(process)
    assert (outcome.code, outcome.json["status"]) == (0, "optimal")


class Terminal:
    """A terminal for the standard error of a process."""

    def __init__(self) -> None:
        self.reading, self.writing = pty.openpty()
        self.shown = ""

    def wait_for_a_value(self) -> None:
        """Read until progress shows a value: the search has begun and has a plan."""
        os.close(self.writing)
        while not re.search(r"value \d", self.shown):
            assert self._read(), self.shown

    def rest(self) -> str:
        """All that was shown, once the process has ended."""
        while self._read():
            pass
        os.close(self.reading)
        return self.shown

    def _read(self) -> bool:
        try:
            part = os.read(self.reading, 4096)
        except OSError:  # the process has closed its end
            return False
        self.shown += part.decode(errors="replace")
        return bool(part)


@pytest.mark.parametrize("delay_s", [0.1, 0.3, 0.6])
def test_interrupted_while_it_starts(folder: Path, delay_s: float) -> None:
    process = start("solve", "small.json", "--time-limit", "1000", cwd=folder)
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert outcome.code in (0, 130)
    assert outcome.err == ""
