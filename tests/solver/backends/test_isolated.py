"""The watchdog: results, failures, crashes, deadlines, interrupts and the end of either process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from instances.errors import InputError
from solver.backends.frames import FrameReader, packed
from solver.backends.isolated import (
    ChildCrashedError,
    ChildFailedError,
    ChildTimeoutError,
    run_isolated,
)

FUNCTIONS = "tests.solver.backends.child_functions"
WAIT_S = 20.0


def is_gone(pid: int) -> bool:
    """True once the process has ended (zombies count as ended)."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
        if not state.stdout.strip() or state.stdout.strip().startswith("Z"):
            return True
        time.sleep(0.02)
    return False


def test_result_comes_back() -> None:
    assert run_isolated(f"{FUNCTIONS}:add", {"left": 2, "right": 3}, 60.0) == 5


def test_large_results_and_requests() -> None:
    # Larger than a pipe's buffer both ways.
    assert len(run_isolated(f"{FUNCTIONS}:large", {"size": 1_000_000}, 60.0)) == 1_000_000
    big = "x" * 500_000
    assert run_isolated(f"{FUNCTIONS}:add", {"left": big, "right": "y"}, None) == big + "y"


def test_output_of_the_child_stays_off_ours(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_isolated(f"{FUNCTIONS}:noisy", {}, 60.0) == "quiet"
    assert capfd.readouterr().out == ""


def test_import_path_is_handed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run_isolated(f"{FUNCTIONS}:import_path", {}, 60.0) == sys.path


def test_messages_arrive_in_order_before_the_result() -> None:
    seen: list[int] = []
    assert run_isolated(f"{FUNCTIONS}:count_up", {}, 60.0, on_message=seen.append) == "done"
    assert seen == [0, 1, 2]


def test_exceptions_are_raised_here() -> None:
    with pytest.raises(ValueError, match="no such thing"):
        run_isolated(f"{FUNCTIONS}:raise_value_error", {}, 60.0)


def test_exceptions_that_cannot_travel_come_as_text() -> None:
    with pytest.raises(ChildFailedError, match="AwkwardError: 1 and 2"):
        run_isolated(f"{FUNCTIONS}:raise_awkward_error", {}, 60.0)


def test_input_errors_keep_their_message() -> None:
    with pytest.raises((InputError, ChildFailedError), match=r"pipeline\.stages: 0 is not allowed"):
        run_isolated(f"{FUNCTIONS}:raise_input_error", {}, 60.0)


def test_unknown_function_is_reported() -> None:
    with pytest.raises(AttributeError, match="nowhere"):
        run_isolated(f"{FUNCTIONS}:nowhere", {}, 60.0)


def test_crash_is_a_typed_error_with_text() -> None:
    with pytest.raises(ChildCrashedError, match="SIGABRT") as caught:
        run_isolated(f"{FUNCTIONS}:abort", {}, 60.0)
    assert "the engine went wrong" in caught.value.detail


def test_early_exit_is_a_crash() -> None:
    with pytest.raises(ChildCrashedError, match="exit code 7"):
        run_isolated(f"{FUNCTIONS}:leave", {}, 60.0)


def test_deadline_kills_the_child_and_its_children() -> None:
    family: list[list[int]] = []
    with pytest.raises(ChildTimeoutError):
        run_isolated(f"{FUNCTIONS}:announce_family_and_sleep", {}, 1.0, grace_s=1.0, on_message=family.append)
    assert all(is_gone(pid) for pid in family[0])


def test_child_ignores_interrupts() -> None:
    assert run_isolated(f"{FUNCTIONS}:interrupt_self", {}, 60.0) == "not interrupted"


def test_interrupt_kills_the_child_and_is_raised() -> None:
    pids: list[int] = []

    def note_and_interrupt(pid: int) -> None:
        pids.append(pid)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        run_isolated(f"{FUNCTIONS}:announce_and_sleep", {}, 60.0, on_message=note_and_interrupt)
    assert is_gone(pids[0])


def test_child_dies_with_its_parent() -> None:
    script = (
        "from solver.backends.isolated import run_isolated\n"
        f"run_isolated('{FUNCTIONS}:announce_and_sleep', {{}}, 60.0, on_message=lambda pid: print(pid, flush=True))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
    assert is_gone(pid)


def test_frames_survive_any_cutting() -> None:
    stream = packed("progress", [1, 2]) + packed("result", {"a": None})
    reader = FrameReader()
    messages = [message for index in range(len(stream)) for message in reader.feed(stream[index : index + 1])]
    assert [(message.kind, message.content) for message in messages] == [("progress", [1, 2]), ("result", {"a": None})]
