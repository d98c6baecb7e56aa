"""The child's side of `isolated`: reads a request from standard input, calls the function, writes messages to a pipe.

Started as ``python -m solver.backends.child DESCRIPTOR``.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import pickle
import signal
import sys
import threading
import traceback
from types import TracebackType
from typing import Any, BinaryIO

from solver.backends.frames import LENGTH_BYTES, packed

_STANDARD_INPUT = 0
_SET_PARENT_DEATH_SIGNAL = 1  # prctl option PR_SET_PDEATHSIG


def main() -> None:
    """Serve one request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    results = os.fdopen(int(sys.argv[1]), "wb")
    body = _read(int.from_bytes(_read(LENGTH_BYTES), "big"))
    threading.Thread(target=_die_at_end_of_input, daemon=True).start()
    with _ExceptionsReported(results):
        results.write(_answer(body, results))
        results.flush()


class _ExceptionsReported:
    """Sends an exception to the parent, which decides what it means, and lets it take its course here."""

    def __init__(self, results: BinaryIO) -> None:
        self._results = results

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self._results.write(_exception_message(error))
            self._results.flush()


def _answer(body: bytes, results: BinaryIO) -> bytes:
    def emit(content: Any) -> None:
        results.write(packed("progress", content))
        results.flush()

    path, function_path, kwargs, wants_progress = pickle.loads(body)
    sys.path[:] = path
    module, _, name = function_path.partition(":")
    function = getattr(importlib.import_module(module), name)
    results.write(packed("started", None))
    results.flush()
    return packed("result", function(**kwargs, emit=emit) if wants_progress else function(**kwargs))


def _exception_message(error: Exception) -> bytes:
    """The exception itself where it survives the journey, else its traceback."""
    try:
        body = packed("exception", error)
        pickle.loads(body[LENGTH_BYTES:])
    except (pickle.PickleError, TypeError, AttributeError, ValueError, ImportError):
        return packed("failure", "".join(traceback.format_exception(error)))
    return body


def _die_with_parent() -> None:
    """On Linux the kernel kills the child when its parent goes, even while compiled code holds the interpreter."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL))


def _die_at_end_of_input() -> None:
    """Everywhere: the parent keeps standard input open as long as it lives."""
    while os.read(_STANDARD_INPUT, 1):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _read(length: int) -> bytes:
    """Exactly `length` bytes of standard input, unbuffered: a thread waiting inside a buffer would block the exit."""
    body = bytearray()
    while len(body) < length:
        data = os.read(_STANDARD_INPUT, length - len(body))
        if not data:
            sys.exit("the request ended early")
        body += data
    return bytes(body)


if __name__ == "__main__":
    main()
