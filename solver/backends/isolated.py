"""Runs a function in a child process under a watchdog.

Why a process of its own: engines overrun their limits in presolve, abort or crash the process, keep thread settings for
its lifetime, and hang after a fork. The child is started anew (never forked from this process), leads its own process
group, does not see Ctrl-C, and is killed with its group when the time is up, on a keyboard interrupt, or when this
process dies. Standard output of the child goes nowhere; results come back over a pipe of their own.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

from solver.backends.frames import FrameReader, Message

GRACE_S = 5.0
STARTUP_S = 120.0
EXIT_S = 2.0
STDERR_TAIL_BYTES = 4000


class IsolatedError(RuntimeError):
    """The child gave no result; `detail` holds the end of its standard error, or its traceback."""

    def __init__(self, summary: str, detail: str = "") -> None:
        self.detail = detail
        super().__init__(f"{summary}\n{detail}" if detail else summary)


class ChildTimeoutError(IsolatedError):
    """The child was killed after its deadline and grace."""


class ChildCrashedError(IsolatedError):
    """The child ended without a result: a signal, an abort inside an engine, or an early exit."""


class ChildFailedError(IsolatedError):
    """The function raised an exception that cannot be sent to this process; its traceback is the detail."""


def run_isolated(
    function_path: str,
    kwargs: Mapping[str, Any],
    deadline_s: float | None = None,
    *,
    grace_s: float = GRACE_S,
    on_message: Callable[[Any], None] | None = None,
) -> Any:
    """Call a module-level function in a child process and return its result.

    Parameters
    ----------
    function_path
        ``"package.module:function"``, importable with this process's `sys.path`.
    kwargs
        Keyword arguments; they and the result travel as pickles.
    deadline_s
        Seconds the function is meant to take, from the moment its module is imported (that takes a second or two, and
        may take `STARTUP_S`); None: as long as it likes. The child is killed `grace_s` later.
    on_message
        Receives what the function sends before its end, such as incumbents; the function then gets a further keyword
        argument ``emit``, to be called with one picklable object.

    Raises
    ------
    ChildTimeoutError, ChildCrashedError, ChildFailedError
        No result. An exception of the function that can be pickled is raised here as itself.
    KeyboardInterrupt
        Passed on after the child is killed.
    """
    request = pickle.dumps((list(sys.path), function_path, dict(kwargs), on_message is not None))
    clock = _Clock(None if deadline_s is None else deadline_s + grace_s)
    with tempfile.TemporaryFile() as errors:
        child, results = _started(errors)
        try:
            _send(child, request)
            message = _awaited(results, clock, on_message)
            if message is None and not clock.is_past():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(EXIT_S)  # so that its own exit is reported, not the kill that follows
        finally:
            os.close(results)
            _killed(child)
        if message is None and clock.is_past():
            raise ChildTimeoutError(f"{function_path}: no result {grace_s:g} s after its deadline", _tail(errors))
        if message is None:
            raise ChildCrashedError(f"{function_path}: the child ended ({_ending(child)})", _tail(errors))
    if message.kind == "failure":
        raise ChildFailedError(f"{function_path} failed", str(message.content))
    if message.kind == "exception":
        raise message.content
    return message.content


class _Clock:
    """Time until the child is killed: first for its start, then for its work."""

    def __init__(self, allowed_s: float | None) -> None:
        self._allowed_s = allowed_s
        self._end: float | None = time.monotonic() + STARTUP_S

    def restart(self) -> None:
        """The function begins now."""
        self._end = None if self._allowed_s is None else time.monotonic() + self._allowed_s

    def remaining_s(self) -> float | None:
        """Seconds left, None without limit."""
        return None if self._end is None else self._end - time.monotonic()

    def is_past(self) -> bool:
        """True once the time is up."""
        remaining = self.remaining_s()
        return remaining is not None and remaining <= 0


def _started(errors: IO[bytes]) -> tuple[subprocess.Popen[bytes], int]:
    """Start the child; returns it and the descriptor from which its messages are read."""
    reading, writing = os.pipe()
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "solver.backends.child", str(writing)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(writing,),
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path},
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return child, reading


def _send(child: subprocess.Popen[bytes], request: bytes) -> None:
    """Hand over the request; standard input stays open, its end tells the child that this process is gone."""
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # a child that died early is reported by the reader
        child.stdin.write(len(request).to_bytes(8, "big") + request)
        child.stdin.flush()


def _awaited(results: int, clock: _Clock, on_message: Callable[[Any], None] | None) -> Message | None:
    """The last message, or None if the child closed its pipe or the time is up."""
    frames = FrameReader()
    with selectors.DefaultSelector() as selector:
        selector.register(results, selectors.EVENT_READ)
        while True:
            if clock.is_past():
                return None
            if not selector.select(clock.remaining_s()):
                continue
            data = os.read(results, 1 << 16)
            if not data:
                return None
            for message in frames.feed(data):
                if message.kind == "started":
                    clock.restart()
                elif message.kind != "progress":
                    return message
                elif on_message is not None:
                    on_message(message.content)


def _killed(child: subprocess.Popen[bytes]) -> None:
    """End the child's whole process group, if it still runs, and collect it."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.close()


def _ending(child: subprocess.Popen[bytes]) -> str:
    code = child.returncode
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _tail(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - STDERR_TAIL_BYTES))
    return errors.read().decode(errors="replace").strip()
